"""What is wrong with a key of another kind than the algorithms need is said in words that show no key."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)

from broker_core.access.authentication.tokens.key_kinds import algorithms_of, kind_of, usable_key
from tests.support.certificates import Authority
from tests.support.tokens import SECRET, curve_key, der, edwards_key, pem, rsa_key

NO_PASSWORD = NoEncryption()


def private(
    encoding: Encoding,
    form: PrivateFormat = PrivateFormat.PKCS8,
    password: KeySerializationEncryption = NO_PASSWORD,
) -> bytes:
    return rsa_key().private_bytes(encoding, form, password)


def refused(key: bytes, *algorithms: str) -> str:
    with pytest.raises(ValueError, match=r"^it is ") as error:
        usable_key(key, algorithms)
    return str(error.value)


def test_keys_that_fit() -> None:
    for key, algorithm in (
        (SECRET, "HS512"),
        (der(rsa_key()), "PS256"),
        (pem(curve_key(ec.SECP384R1)), "ES384"),
        (der(edwards_key()), "EdDSA"),
    ):
        assert algorithm in algorithms_of(usable_key(key, [algorithm]))
    assert kind_of(usable_key(der(edwards_key()), ["EdDSA"])) == "an Ed25519 key"


def test_keys_that_are_too_small() -> None:
    assert refused(SECRET[:31], "HS256") == "it is a secret of 31 bytes, and HS256 needs at least 32"
    assert refused(SECRET[:32], "HS256", "HS512") == "it is a secret of 32 bytes, and HS512 needs at least 64"
    small = der(rsa_key(bits=1024))
    assert refused(small, "RS256") == "it is an RSA key of 1024 bits, and RS256 needs at least 2048"


def test_public_keys_of_another_kind() -> None:
    assert refused(der(rsa_key()), "RS256", "ES256") == (
        "it is an RSA key of 2048 bits, which is not one for ES256"
    )
    assert "a key of the curve secp256r1" in refused(der(curve_key()), "RS256")
    assert "an Ed25519 key" in refused(pem(edwards_key()), "RS256")
    assert "Base64 text of a public key" in refused(base64.encodebytes(der(rsa_key())), "RS256")


def test_a_secret_in_place_of_a_public_key_is_hinted_at() -> None:
    hint = 'for a secret, authentication.token.algorithms is ["HS256"]'
    assert hint in refused(SECRET, "RS256")
    broken = refused(b"-----BEGIN PUBLIC KEY-----\nhunter2\n-----END PUBLIC KEY-----", "RS256")
    assert "no public key" in broken
    assert hint not in broken
    assert "hunter2" not in broken


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(private(Encoding.PEM), id="PEM"),
        pytest.param(private(Encoding.DER), id="DER"),  # as `pulsar tokens create-key-pair` writes it
        pytest.param(private(Encoding.DER, PrivateFormat.TraditionalOpenSSL), id="PKCS#1"),
        pytest.param(
            private(Encoding.DER, password=BestAvailableEncryption(b"secret")), id="with a password"
        ),
        pytest.param(base64.encodebytes(private(Encoding.DER)), id="Base64"),
    ],
)
def test_private_keys(key: bytes) -> None:
    assert refused(key, "RS256").startswith("it is a private key")
    assert refused(key, "HS256").startswith("it is no secret")


def test_certificates(tmp_path: Path) -> None:
    in_pem = Authority(tmp_path).ca.read_bytes()
    in_der = x509.load_pem_x509_certificate(in_pem).public_bytes(Encoding.DER)
    for certificate in (in_pem, in_der):
        assert refused(certificate, "ES256").startswith("it is a certificate: `openssl x509 -in FILE -pubkey")
        assert refused(certificate, "HS256").startswith("it is no secret")
