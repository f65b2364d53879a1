"""Keys of tokens: forms, kinds, sets; and no key verifies by an algorithm of another kind."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm, HMACAlgorithm, OKPAlgorithm, RSAAlgorithm

from broker_core.access.authentication.tokens.token_keys import MOST_TRIED, TokenKeys
from broker_core.settings import TokenSettings
from tests.support.tokens import SECRET, curve_key, data_url, der, edwards_key, pem, rsa_key, token

RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
SECRETS = ("HS256", "HS384", "HS512")


def _keys(key: bytes, *algorithms: str, is_set: bool = False) -> TokenKeys:
    settings = {("jwks" if is_set else "key"): data_url(key), "algorithms": algorithms}
    return TokenKeys.read(TokenSettings.model_validate(settings))


def _verifies(keys: TokenKeys, by: str, key: Any, key_id: str | None = None) -> bool:
    return _problem(keys, by, key, key_id) is None


def _problem(keys: TokenKeys, by: str, key: Any, key_id: str | None = None) -> str | None:
    signed, _, signature = token({"sub": "a"}, key=key, by=by).rpartition(b".")
    return keys.problem(by, key_id, signed, base64.urlsafe_b64decode(signature + b"=="))


def _jwk(algorithm: Any, key: Any, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = algorithm.to_jwk(key, as_dict=True)
    return found | more


def _set(*members: object) -> bytes:
    return json.dumps({"keys": members}).encode()


@pytest.mark.parametrize("form", [der, pem])
@pytest.mark.parametrize("algorithm", RSA)
def test_an_rsa_key_verifies_all_algorithms_of_rsa_that_are_allowed(form: Any, algorithm: str) -> None:
    assert _verifies(_keys(form(rsa_key()), algorithm), algorithm, rsa_key())
    assert not _verifies(_keys(form(rsa_key()), algorithm), algorithm, rsa_key(1))
    other = next(name for name in RSA if name != algorithm)
    assert not _verifies(_keys(form(rsa_key()), other), algorithm, rsa_key())


@pytest.mark.parametrize("algorithm", SECRETS)
def test_a_secret(algorithm: str) -> None:
    assert _verifies(_keys(SECRET, *SECRETS), algorithm, SECRET)
    assert not _verifies(_keys(SECRET, *SECRETS), algorithm, SECRET[::-1])


@pytest.mark.parametrize(
    ("curve", "algorithm"), [(ec.SECP256R1, "ES256"), (ec.SECP384R1, "ES384"), (ec.SECP521R1, "ES512")]
)
def test_curves(curve: type[ec.EllipticCurve], algorithm: str) -> None:
    assert _verifies(_keys(der(curve_key(curve)), algorithm), algorithm, curve_key(curve))
    with pytest.raises(ValueError, match="is a key of the curve"):
        _keys(der(curve_key(curve)), next(name for name in ("ES256", "ES384") if name != algorithm))


def test_edwards_curve() -> None:
    assert _verifies(_keys(der(edwards_key()), "EdDSA"), "EdDSA", edwards_key())


def test_an_hmac_with_the_public_key_is_none() -> None:
    for public in (der(rsa_key()), pem(rsa_key())):
        signature = HMACAlgorithm(HMACAlgorithm.SHA256).sign(b"a.b", public)
        assert _keys(public, "RS256").problem("HS256", None, b"a.b", signature) is not None
        for written in (public, base64.encodebytes(public)):
            with pytest.raises(ValueError, match="it is no secret"):
                _keys(written, "HS256")


@pytest.mark.parametrize("algorithm", ["none", "None", "hs256", "rs256", "", "ES256K", "unknown"])
def test_other_algorithms(algorithm: str) -> None:
    said = _keys(der(rsa_key()), "RS256").problem(algorithm, None, b"a.b", b"")
    assert said is not None
    assert "is not one of authentication.token.algorithms" in said


@pytest.mark.parametrize(
    ("key", "algorithms", "said"),
    [
        (der(curve_key()), ["RS256"], "a key of the curve secp256r1"),
        (b"", ["RS256"], "^it is empty$"),
        (b"\n", ["HS256"], "^it is empty$"),
    ],
    ids=lambda value: "key" if isinstance(value, bytes) else str(value),  # keys are made anew for each run
)
def test_keys_that_do_not_fit(key: bytes, algorithms: list[str], said: str) -> None:
    with pytest.raises(ValueError, match=said) as refused:
        _keys(key, *algorithms)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("setting", ["key", "jwks"])
def test_an_error_names_the_file(tmp_path: Path, setting: str) -> None:
    file = tmp_path / "wrong"
    for data in (b"", b"hunter2"):
        file.write_bytes(data)
        with pytest.raises(ValueError, match=f"^{file}: it is ") as refused:
            TokenKeys.read(TokenSettings.model_validate({setting: f"file:{file}"}))
        assert "hunter2" not in str(refused.value)


def test_a_missing_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        TokenKeys.read(TokenSettings.model_validate({"key": f"file:{tmp_path}/no.der"}))
    with pytest.raises(ValueError, match="is not set"):
        TokenKeys.read(TokenSettings())


def test_keys_are_not_shown() -> None:
    keys = _keys(SECRET, "HS256")
    assert keys.kinds == ("a secret of 64 bytes",)
    assert str(SECRET[:8]) not in repr(vars(keys))


def test_a_set_chooses_by_the_id_of_the_key() -> None:
    keys = _keys(
        _set(
            _jwk(RSAAlgorithm, rsa_key().public_key(), kid="one"),
            _jwk(RSAAlgorithm, rsa_key(1).public_key(), kid="two", use="sig", alg="RS512"),
            _jwk(ECAlgorithm, curve_key().public_key(), kid="three"),
        ),
        "RS256",
        "RS512",
        "ES256",
        is_set=True,
    )
    assert len(keys) == 3
    assert _verifies(keys, "RS256", rsa_key(), "one")
    assert _verifies(keys, "RS512", rsa_key(), "one")
    assert not _verifies(keys, "RS256", rsa_key(1), "one")
    assert _verifies(keys, "RS512", rsa_key(1), "two")
    assert not _verifies(keys, "RS256", rsa_key(1), "two")  # its own algorithm is another
    assert _verifies(keys, "ES256", curve_key(), "three")
    assert not _verifies(keys, "ES256", curve_key(), "one")
    assert not _verifies(keys, "RS256", rsa_key(), "four")


def test_a_token_without_an_id_is_of_any_key_of_a_set() -> None:
    keys = _keys(
        _set(
            _jwk(RSAAlgorithm, rsa_key().public_key(), kid="one"),
            _jwk(RSAAlgorithm, rsa_key(1).public_key(), kid="two", alg="RS512"),
            _jwk(ECAlgorithm, curve_key().public_key()),
        ),
        "RS256",
        "RS512",
        "ES256",
        is_set=True,
    )
    assert _verifies(keys, "RS256", rsa_key())
    assert _verifies(keys, "RS512", rsa_key(1))
    assert not _verifies(keys, "RS256", rsa_key(1)), "its own algorithm is another"
    assert _verifies(keys, "ES256", curve_key())
    assert not _verifies(keys, "RS256", rsa_key(2))


def test_a_key_of_a_set_without_an_id_is_of_any_token() -> None:
    one = _keys(_set(_jwk(OKPAlgorithm, edwards_key().public_key())), "EdDSA", is_set=True)
    assert _verifies(one, "EdDSA", edwards_key())
    assert _verifies(one, "EdDSA", edwards_key(), "whatever")
    two = _keys(
        _set(
            _jwk(RSAAlgorithm, rsa_key().public_key(), kid="one"), _jwk(RSAAlgorithm, rsa_key(1).public_key())
        ),
        "RS256",
        is_set=True,
    )
    assert _verifies(two, "RS256", rsa_key(1), "whatever")
    assert not _verifies(two, "RS256", rsa_key(1), "one")
    assert not _verifies(two, "RS256", rsa_key(), "whatever")


def test_few_keys_are_tried_for_a_token_without_an_id() -> None:
    public = [rsa_key().public_key(), rsa_key(1).public_key()]
    members = [_jwk(RSAAlgorithm, public[number > 0], kid=str(number)) for number in range(MOST_TRIED)]
    keys = _keys(_set(*members), "RS256", is_set=True)
    assert keys.crowded == ()
    assert _verifies(keys, "RS256", rsa_key())
    keys = _keys(_set(*members, _jwk(RSAAlgorithm, public[1], kid="one more")), "RS256", "RS512", is_set=True)
    assert keys.crowded == ("RS256", "RS512")
    assert _problem(keys, "RS256", rsa_key()) == (
        "it names no key ('kid'), and the set has more than 8 keys for RS256"
    )
    assert _verifies(keys, "RS256", rsa_key(), "0")


def test_a_refusal_says_why() -> None:
    alone = _keys(der(rsa_key()), "RS256")
    assert _problem(alone, "RS256", rsa_key(1)) == "it is not signed by the key of this server"
    assert _problem(alone, "HS256", SECRET) == (
        "it is signed by HS256, which is not one of authentication.token.algorithms"
    )
    assert alone.problem("hunter2", None, b"", b"") == (
        "it is signed by an unknown algorithm, which is not one of authentication.token.algorithms"
    )
    members = [
        _jwk(RSAAlgorithm, key.public_key(), kid=str(number), alg="RS256")
        for number, key in enumerate((rsa_key(), rsa_key(1)))
    ]
    keys = _keys(_set(*members), "RS256", "RS512", is_set=True)
    assert _problem(keys, "RS256", rsa_key(2)) == "no key of the set has signed it"
    assert _problem(keys, "RS256", rsa_key(), "1") == "it is not signed by the key of the set that it names"
    assert _problem(keys, "RS512", rsa_key(), "1") == "the key of the set that it names is not for RS512"
    assert _problem(keys, "RS512", rsa_key()) == "the set has no key for RS512"
    assert _problem(keys, "RS256", rsa_key(), "2") == "it names a key ('kid') that the set does not have"
    one = _keys(_set(members[0]), "RS256", is_set=True)
    assert _problem(one, "RS256", rsa_key(2)) == "it is not signed by the only key of the set"


def test_a_key_alone_has_no_id() -> None:
    assert _verifies(_keys(der(rsa_key()), "RS256"), "RS256", rsa_key(), "whatever")


def test_members_for_something_else_are_left_out() -> None:
    keys = _keys(
        _set(
            _jwk(RSAAlgorithm, rsa_key(1).public_key(), kid="a", use="enc"),
            _jwk(RSAAlgorithm, rsa_key(1).public_key(), kid="b", key_ops=["encrypt"]),
            _jwk(RSAAlgorithm, rsa_key(1).public_key(), kid="c", alg="RSA-OAEP"),
            _jwk(RSAAlgorithm, rsa_key(bits=1024).public_key(), kid="d"),
            {"kty": "oct", "k": base64.urlsafe_b64encode(SECRET).decode(), "kid": "e"},
            {"kty": "new", "kid": "f"},
            7,
            _jwk(RSAAlgorithm, rsa_key().public_key(), kid="g"),
        ),
        "RS256",
        is_set=True,
    )
    assert len(keys) == 1
    assert _verifies(keys, "RS256", rsa_key(), "g")
    assert not _verifies(keys, "RS256", rsa_key(1), "a")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "it is empty"),
        (b"x", "no JSON Web Key Set"),
        (b"[]", "no JSON Web Key Set"),
        (b"{}", "no JSON Web Key Set"),
        (b'{"keys": {}}', "'keys' is no list"),
        (b'{"keys": []}', "has no key for RS256"),
        (_set({"kty": "oct", "k": "hunter2hunter2"}), "has no key for RS256"),
        (
            _set(
                _jwk(RSAAlgorithm, rsa_key().public_key(), kid="a"),
                _jwk(RSAAlgorithm, rsa_key(1).public_key(), kid="a"),
            ),
            "two keys of the set have the id 'a'",
        ),
        (_set(_jwk(RSAAlgorithm, rsa_key().public_key(), kid=7)), "is no text"),
        (_set(_jwk(RSAAlgorithm, rsa_key(), kid="a")), "a private key"),
    ],
)
def test_broken_sets(data: bytes, said: str) -> None:
    with pytest.raises(ValueError, match=said) as refused:
        _keys(data, "RS256", is_set=True)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("odd", ["none", [], {}, 7, "HS256"])
def test_a_key_of_an_odd_algorithm_is_left_out_of_the_set(odd: object) -> None:
    members = (
        _jwk(RSAAlgorithm, rsa_key().public_key(), kid="one"),
        _jwk(RSAAlgorithm, rsa_key(1).public_key(), kid="two") | {"alg": odd},
    )
    keys = _keys(_set(*members), "RS256", is_set=True)
    assert _verifies(keys, "RS256", rsa_key())
    assert not _verifies(keys, "RS256", rsa_key(1))
