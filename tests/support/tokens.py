"""Tokens as tests need them: any header, any claims, any text, signed by keys that are made here."""

from __future__ import annotations

import base64
import functools
import json
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import get_default_algorithms

__all__ = [
    "SECRET",
    "b64",
    "curve_key",
    "data_url",
    "der",
    "edwards_key",
    "pem",
    "rsa_key",
    "signed",
    "token",
]

#: Long enough for HS512.
SECRET: Final = bytes(range(64))


@functools.cache
def rsa_key(which: int = 0, *, bits: int = 2048) -> rsa.RSAPrivateKey:
    """A key of RSA; the same one for the same arguments."""
    del which
    return rsa.generate_private_key(65537, bits)


@functools.cache
def curve_key(curve: type[ec.EllipticCurve] = ec.SECP256R1) -> ec.EllipticCurvePrivateKey:
    """A key of a curve of NIST."""
    return ec.generate_private_key(curve())


@functools.cache
def edwards_key() -> ed25519.Ed25519PrivateKey:
    """A key of Ed25519."""
    return ed25519.Ed25519PrivateKey.generate()


def der(key: Any) -> bytes:
    """The public key of a private one in DER, as `pulsar tokens create-key-pair` writes it."""
    written: bytes = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return written


def pem(key: Any) -> bytes:
    """The key in PEM."""
    written: bytes = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return written


def data_url(key: bytes) -> str:
    """A key in a setting."""
    return f"data:;base64,{base64.b64encode(key).decode()}"


def b64(data: bytes | str | dict[str, Any]) -> bytes:
    """A part of a token."""
    if isinstance(data, dict):
        data = json.dumps(data)
    if isinstance(data, str):
        data = data.encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def signed(
    header: bytes | str | dict[str, Any], payload: bytes | str | dict[str, Any], key: Any, by: str
) -> bytes:
    """A token of these parts, signed by the algorithm ``by`` whatever the header says."""
    parts = b64(header) + b"." + b64(payload)
    algorithm: Any = get_default_algorithms()[by]
    signature: bytes = algorithm.sign(parts, key)
    return parts + b"." + b64(signature)


def token(
    claims: bytes | str | dict[str, Any], *, key: Any = None, by: str = "RS256", **header: Any
) -> bytes:
    """A token with these claims and these further headers, by the first key of RSA."""
    return signed({"alg": by, **header}, claims, rsa_key() if key is None else key, by)
