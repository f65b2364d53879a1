"""The kinds of a token's key: the algorithms that each verifies, and the error for a key of another kind."""

from __future__ import annotations

import base64
from collections.abc import Collection
from typing import Final, TypeAlias, cast

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import (
    load_der_private_key,
    load_der_public_key,
    load_pem_public_key,
)

from broker_core.counted import counted
from broker_core.settings import Algorithm

__all__ = ["SECRETS", "Key", "algorithms_for", "algorithms_of", "kind_of", "usable_key"]

Key: TypeAlias = bytes | RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey

#: Bytes of a secret, at least (RFC 7518, 3.2).
SECRETS: Final = {"HS256": 32, "HS384": 48, "HS512": 64}
_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
#: Bits of an RSA key, at least (RFC 7518, 3.3).
_RSA_BITS: Final = 2048
_CURVES: Final = {"secp256r1": "ES256", "secp384r1": "ES384", "secp521r1": "ES512"}
#: A key in DER begins with a sequence of objects.
_SEQUENCE: Final = 0x30
_PEM: Final = b"-----BEGIN "


def algorithms_of(key: Key) -> tuple[str, ...]:
    """The algorithms that a key can verify; none for a key that is too weak."""
    if isinstance(key, bytes):
        return tuple(name for name, size in SECRETS.items() if len(key) >= size)
    if isinstance(key, RSAPublicKey):
        return _RSA if key.key_size >= _RSA_BITS else ()
    if isinstance(key, EllipticCurvePublicKey):
        return (_CURVES[key.curve.name],) if key.curve.name in _CURVES else ()
    return ("EdDSA",)


def algorithms_for(data: bytes, *, is_secret: bool) -> tuple[Algorithm, ...]:
    """The algorithms that the key in ``data`` can verify. Raises :exc:`ValueError` in words that show no key."""
    usual = ("HS256",) if is_secret else ("RS256",)
    found = algorithms_of(_key_of(data, usual)) or algorithms_of(usable_key(data, usual))
    return cast("tuple[Algorithm, ...]", found)


def kind_of(key: Key) -> str:
    """The kind of a key, in words."""
    if isinstance(key, bytes):
        return f"a secret of {counted(len(key), 'byte')}"
    if isinstance(key, RSAPublicKey):
        return f"an RSA key of {key.key_size} bits"
    if isinstance(key, EllipticCurvePublicKey):
        return f"a key of the curve {key.curve.name}"
    return "an Ed25519 key"


def usable_key(data: bytes, algorithms: Collection[str]) -> Key:
    """The key in ``data``, which can verify all of ``algorithms``.

    Raises :exc:`ValueError` in words that show no key.
    """
    key = _key_of(data, algorithms)
    unfit = [name for name in algorithms if name not in algorithms_of(key)]
    if not unfit:
        return key
    if isinstance(key, bytes):
        needed = max(SECRETS[name] for name in unfit)
        raise ValueError(f"it is {kind_of(key)}, and {', '.join(unfit)} needs at least {needed}")  # noqa: TRY004 - as for all that is wrong
    if isinstance(key, RSAPublicKey) and key.key_size < _RSA_BITS:
        raise ValueError(f"it is {kind_of(key)}, and {', '.join(unfit)} needs at least {_RSA_BITS}")
    raise ValueError(f"it is {kind_of(key)}, which is not one for {', '.join(unfit)}")


def _key_of(data: bytes, algorithms: Collection[str]) -> Key:
    if all(name in SECRETS for name in algorithms):
        # As a secret, a public key or a certificate would be one that everybody knows.
        if data.lstrip().startswith(_PEM) or any(map(_is_no_secret, (data, _base64(data)))):
            raise ValueError(f"it is no secret, which {', '.join(algorithms)} needs, but another kind of key")
        return data
    if _is_private_key(data) or _is_private_key(_base64(data)):
        raise ValueError(
            "it is a private key: only the one who makes tokens has it, the server has the public key"
        )
    key = _public_key(data)
    if key is not None:
        return key
    if _is_certificate(data):
        raise ValueError("it is a certificate: `openssl x509 -in FILE -pubkey -noout` prints its public key")
    if _public_key(_base64(data)) is not None:
        raise ValueError("it is the Base64 text of a public key: `base64 -d` makes the key of it")
    said = "it is no public key in PEM or DER (RSA, P-256, P-384, P-521 or Ed25519)"
    if _PEM not in data and data[0] != _SEQUENCE:
        said += '; for a secret, authentication.token.algorithms is ["HS256"]'
    raise ValueError(said)


def _base64(data: bytes) -> bytes:
    """The bytes of a Base64 file, as other tools write keys; empty if it is none."""
    try:
        return base64.b64decode(b"".join(data.split()), validate=True)
    except ValueError:
        return b""


def _is_no_secret(data: bytes) -> bool:
    return _public_key(data) is not None or _is_private_key(data) or _is_certificate(data)


def _is_private_key(data: bytes) -> bool:
    if b"PRIVATE KEY-----" in data:
        return True
    if not data or data[0] != _SEQUENCE:
        return False
    try:
        load_der_private_key(data, None)
    except (TypeError, UnsupportedAlgorithm):
        return True  # it has a password, or is of a rare kind
    except ValueError:
        return False
    return True


def _is_certificate(data: bytes) -> bool:
    if b"CERTIFICATE-----" in data:
        return True
    if not data or data[0] != _SEQUENCE:
        return False
    from cryptography import x509  # takes long to import

    try:
        x509.load_der_x509_certificate(data)
    except ValueError:
        return False
    return True


def _public_key(data: bytes) -> Key | None:
    try:
        if _PEM in data:
            key = load_pem_public_key(data)
        elif data and data[0] == _SEQUENCE:
            key = load_der_public_key(data)
        else:
            return None
    except (ValueError, UnsupportedAlgorithm):
        return None
    return key if isinstance(key, RSAPublicKey | EllipticCurvePublicKey | Ed25519PublicKey) else None
