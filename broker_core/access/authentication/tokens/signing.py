"""Keys of tokens, made and read with their private half, and tokens signed by them: the work of an operator's tool.

Files and defaults are those of ``pulsar tokens``: docs/reference/pulsar-behaviour.md#tokens
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_der_private_key,
    load_pem_private_key,
)

from broker_core.access.authentication.tokens.key_kinds import SECRETS, algorithms_of, kind_of
from broker_core.settings import Algorithm

__all__ = ["PrivateKey", "new_key_pair", "new_secret", "private_key", "signed_token"]

PrivateKey: TypeAlias = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | Ed25519PrivateKey

#: Bits of a new RSA key by the size of the hash, as of Pulsar's tool.
_RSA_BITS: Final = {"256": 2048, "384": 3072, "512": 4096}
_CURVES: Final[Mapping[str, ec.EllipticCurve]] = {
    "ES256": ec.SECP256R1(),
    "ES384": ec.SECP384R1(),
    "ES512": ec.SECP521R1(),
}


def new_secret(algorithm: Algorithm) -> bytes:
    """A random secret of the size of the algorithm's hash. Raises :exc:`ValueError` for algorithms of key pairs."""
    if algorithm not in SECRETS:
        raise ValueError(f"{algorithm} signs by a key pair: {', '.join(SECRETS)} have a secret")
    return secrets.token_bytes(SECRETS[algorithm])


def new_key_pair(algorithm: Algorithm) -> tuple[bytes, bytes]:
    """A private key (PKCS #8) and its public key (X.509), in DER.

    Raises :exc:`ValueError` for algorithms of secrets.
    """
    if algorithm in SECRETS:
        raise ValueError(f"{algorithm} signs by a secret, not by a key pair")
    key: PrivateKey
    if algorithm in _CURVES:
        key = ec.generate_private_key(_CURVES[algorithm])
    elif algorithm == "EdDSA":
        key = Ed25519PrivateKey.generate()
    else:
        key = rsa.generate_private_key(public_exponent=65537, key_size=_RSA_BITS[algorithm[-3:]])
    return (
        key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()),
        key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
    )


def private_key(data: bytes) -> PrivateKey:
    """The private key in DER or PEM. Raises :exc:`ValueError` in words that show no key."""
    load = load_pem_private_key if b"-----BEGIN " in data else load_der_private_key
    try:
        key = load(data, None)
    except TypeError:
        raise ValueError("it has a password: tokens are signed by a key without one") from None
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, PrivateKey):
        raise ValueError("it is no private key in DER or PEM (RSA, P-256, P-384, P-521 or Ed25519)")  # noqa: TRY004
    return key


def signed_token(
    key: bytes | PrivateKey,
    subject: str,
    *,
    expires: datetime | None = None,
    headers: Mapping[str, str] | None = None,
    algorithm: Algorithm | None = None,
) -> str:
    """A token of this subject in compact form. Without an ``algorithm``, it is signed by the strongest hash that fits a
    secret or a curve, and by the one that fits the size of an RSA key, as by Pulsar's tool.

    Raises :exc:`ValueError` for a key that is too weak, or is not one for the algorithm.
    """
    import jwt

    public = key if isinstance(key, bytes) else key.public_key()
    possible = algorithms_of(public)
    if not possible:
        raise ValueError(
            f"it is {kind_of(public)}, which is too weak, or of a curve that tokens have no algorithm for"
        )
    chosen = algorithm or _usual(public, possible)
    if chosen not in possible:
        raise ValueError(f"it is {kind_of(public)}, which is not one for {chosen}")
    claims: dict[str, Any] = {"sub": subject}
    if expires is not None:
        claims["exp"] = expires
    signing: Any = key
    # Without `typ`, as Pulsar's tool leaves it out.
    return jwt.encode(claims, signing, chosen, headers={"typ": None, **(headers or {})})


def _usual(public: Any, possible: tuple[str, ...]) -> str:
    if isinstance(public, rsa.RSAPublicKey):
        return next(f"RS{size}" for size in ("512", "384", "256") if public.key_size >= _RSA_BITS[size])
    return possible[-1]
