"""Keys and tokens that are made here are those that Pulsar's own tool makes."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

from broker_core.access.authentication.tokens.key_kinds import algorithms_of, usable_key
from broker_core.access.authentication.tokens.signing import (
    new_key_pair,
    new_secret,
    private_key,
    signed_token,
)
from broker_core.settings import Algorithm
from tests.support.pulsar_tokens import RECORDED
from tests.support.tokens import curve_key, der, pem, rsa_key


@pytest.mark.parametrize("kind", ["secret", "rsa"])
def test_a_token_is_the_one_that_pulsars_tool_makes(kind: str) -> None:
    recorded = RECORDED[kind]
    data = base64.b64decode(recorded.get("key") or recorded["private"])
    key = data if kind == "secret" else private_key(data)
    assert signed_token(key, "bob") == recorded["token"]


def test_headers_and_the_end_are_in_it() -> None:
    end = datetime(2040, 1, 1, tzinfo=UTC)
    header, claims, _ = signed_token(bytes(64), "bob", expires=end, headers={"kid": "k"}).split(".")
    assert base64.urlsafe_b64decode(header + "==") == b'{"alg":"HS512","kid":"k"}'
    assert base64.urlsafe_b64decode(claims + "==") == b'{"sub":"bob","exp":2208988800}'


@pytest.mark.parametrize(("algorithm", "size"), [("HS256", 32), ("HS384", 48), ("HS512", 64)])
def test_a_secret_has_the_size_of_its_hash_and_is_another_one_each_time(
    algorithm: Algorithm, size: int
) -> None:
    assert len({new_secret(algorithm) for _ in range(3)}) == 3
    assert len(new_secret(algorithm)) == size
    with pytest.raises(ValueError, match=f"{algorithm} signs by a secret"):
        new_key_pair(algorithm)


@pytest.mark.parametrize(
    ("algorithm", "kind"),
    [
        ("RS256", "RSA key of 2048"),
        ("PS384", "RSA key of 3072"),
        ("ES256", "secp256r1"),
        ("EdDSA", "Ed25519"),
    ],
)
def test_both_halves_of_a_new_pair_are_of_one_key(algorithm: Algorithm, kind: str) -> None:
    private, public = new_key_pair(algorithm)
    key = private_key(private)
    assert der(key) == public
    assert algorithm in algorithms_of(usable_key(public, [algorithm]))
    assert kind in _refusal(key)
    with pytest.raises(ValueError, match=f"{algorithm} signs by a key pair"):
        new_secret(algorithm)


def _refusal(key: object) -> str:
    with pytest.raises(ValueError, match="which is not one for HS256") as raised:
        signed_token(key, "bob", algorithm="HS256")  # type: ignore[arg-type]
    return str(raised.value)


@pytest.mark.parametrize(("bits", "algorithm"), [(2048, "RS256"), (3072, "RS384"), (4096, "RS512")])
def test_an_rsa_key_signs_by_the_hash_of_its_size(bits: int, algorithm: str) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=bits)
    header = signed_token(key, "bob").partition(".")[0]
    assert base64.urlsafe_b64decode(header + "==") == b'{"alg":"%s"}' % algorithm.encode()


def test_weak_and_unreadable_keys_sign_nothing() -> None:
    with pytest.raises(ValueError, match="a secret of 31 bytes, which is too weak"):
        signed_token(bytes(31), "bob")
    locked = rsa_key().private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x"))
    with pytest.raises(ValueError, match="it has a password"):
        private_key(locked)
    for data in (der(curve_key()), pem(rsa_key()), b"nothing", b"-----BEGIN nothing"):
        with pytest.raises(ValueError, match="it is no private key"):
            private_key(data)
