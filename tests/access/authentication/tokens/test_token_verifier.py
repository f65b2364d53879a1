"""Whole tokens against a server's keys, as Pulsar's broker decided: docs/reference/pulsar-behaviour.md#tokens"""

from __future__ import annotations

import hashlib
import hmac
import threading
from pathlib import Path
from typing import Any

import pytest

from broker_core.access.authentication.failures import AuthenticationFailed
from broker_core.access.authentication.tokens.token_verifier import TokenVerifier
from broker_core.access.peer import Peer
from broker_core.access.principal import Principal
from broker_core.settings import TokenSettings
from tests.support.tokens import SECRET, b64, data_url, der, pem, rsa_key, signed, token
from tests.support.verified import takes_waiting, waited_for

PEER = Peer("127.0.0.1:1", "pulsar")
NOW = 1_700_000_000.0
OURS: dict[str, Any] = {"sub": "alice"}
RSA = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"]


def _verifier(key: bytes | None = None, **settings: Any) -> TokenVerifier:
    table = {"key": data_url(key or der(rsa_key())), **settings}
    return TokenVerifier(TokenSettings.model_validate(table), clock=lambda: NOW)


def _reason(verifier: TokenVerifier, data: bytes) -> str:
    with pytest.raises(AuthenticationFailed) as refused:
        verifier.verify(data, PEER)
    return refused.value.reason


@pytest.mark.parametrize("key", [der(rsa_key()), pem(rsa_key())])
def test_a_token_of_a_public_key(key: bytes) -> None:
    assert _verifier(key).verify(token(OURS), PEER) == Principal("alice")
    assert _verifier(key).verify(token(OURS | {"exp": NOW + 5}), PEER) == Principal("alice", NOW + 5)


@pytest.mark.parametrize("algorithm", RSA)
def test_the_algorithms_of_the_settings(algorithm: str) -> None:
    made = token(OURS, by=algorithm)
    assert _verifier(algorithms=RSA).verify(made, PEER) == Principal("alice")
    if algorithm != "RS256":
        assert _reason(_verifier(), made) == "bad_token"


@pytest.mark.parametrize("algorithm", ["HS256", "HS384", "HS512"])
def test_a_token_of_a_secret(algorithm: str) -> None:
    made = token(OURS, key=SECRET, by=algorithm)
    assert _verifier(SECRET, algorithms=["HS256", "HS384", "HS512"]).verify(made, PEER) == Principal("alice")
    assert _reason(_verifier(), made) == "bad_token"


def test_a_wrong_key() -> None:
    assert _reason(_verifier(), token(OURS, key=rsa_key(1))) == "bad_token"
    assert (
        _reason(_verifier(SECRET, algorithms=["HS256"]), token(OURS, key=SECRET[::-1], by="HS256"))
        == "bad_token"
    )


@pytest.mark.parametrize("name", ["none", "None", "NONE", "nOnE", "hs256", "rs256", ""])
def test_no_algorithm(name: str) -> None:
    parts = b64({"alg": name}) + b"." + b64(OURS)
    for signature in (b"", b64(b"x"), b64(hmac.digest(SECRET, parts, "sha256"))):
        assert _reason(_verifier(), parts + b"." + signature) == "bad_token"
        assert _reason(_verifier(SECRET, algorithms=["HS256"]), parts + b"." + signature) == "bad_token"
    assert _reason(_verifier(), signed({}, OURS, rsa_key(), "RS256")) == "bad_token"
    assert _reason(_verifier(), signed({"alg": name}, OURS, rsa_key(), "RS256")) == "bad_token"


@pytest.mark.parametrize("public", [der(rsa_key()), pem(rsa_key()), pem(rsa_key()).strip()])
@pytest.mark.parametrize("digest", ["sha256", "sha384", "sha512"])
def test_an_hmac_by_the_public_key(public: bytes, digest: str) -> None:
    parts = b64({"alg": "HS" + digest[3:]}) + b"." + b64(OURS)
    made = parts + b"." + b64(hmac.new(public, parts, getattr(hashlib, digest)).digest())
    assert _reason(_verifier(), made) == "bad_token"
    assert _reason(_verifier(pem(rsa_key())), made) == "bad_token"


def test_a_header_that_says_another_algorithm() -> None:
    assert (
        _reason(_verifier(algorithms=RSA), signed({"alg": "RS512"}, OURS, rsa_key(), "RS256")) == "bad_token"
    )
    assert (
        _reason(_verifier(algorithms=RSA), signed({"alg": "PS256"}, OURS, rsa_key(), "RS256")) == "bad_token"
    )


def test_a_changed_claim() -> None:
    header, _, signature = token(OURS).split(b".")
    assert _reason(_verifier(), header + b"." + b64({"sub": "root"}) + b"." + signature) == "bad_token"


def test_the_claims_of_a_wrong_signature_are_not_looked_at() -> None:
    assert _reason(_verifier(), token({"sub": "alice", "exp": 1}, key=rsa_key(1))) == "bad_token"
    assert _reason(_verifier(), token({"sub": "alice", "exp": 1})) == "expired"


def test_the_clock_decides() -> None:
    assert _reason(_verifier(), token(OURS | {"exp": NOW - 1})) == "expired"
    assert _reason(_verifier(), token(OURS | {"nbf": NOW + 1})) == "not_yet_valid"
    assert _verifier().verify(token(OURS | {"iat": NOW + 9999}), PEER) == Principal("alice")


def test_audience() -> None:
    assert _verifier().verify(token(OURS | {"aud": "other"}), PEER) == Principal("alice")
    assert _reason(_verifier(audience="pulsar"), token(OURS | {"aud": "other"})) == "audience"
    assert _verifier(audience="pulsar").verify(token(OURS | {"aud": ["pulsar"]}), PEER) == Principal("alice")


def test_subjects() -> None:
    assert _reason(_verifier(), token({})) == "no_subject"
    assert _reason(_verifier(), token({"sub": ["alice"]})) == "bad_token"
    assert _verifier(subject_claim="roles").verify(token({"roles": ["ops"]}), PEER) == Principal("ops")


@pytest.mark.parametrize("behind", [b"=", b"==", b"\x00", b"!"])
def test_spellings_of_one_token(behind: bytes) -> None:
    assert _verifier().verify(token(OURS) + behind, PEER) == Principal("alice")


@pytest.mark.parametrize("before", [b"Bearer ", b"bearer ", b" ", b"\n", b"\t", b"token:"])
def test_text_before_a_token(before: bytes) -> None:
    assert _reason(_verifier(), before + token(OURS)) == "bad_token"


@pytest.mark.parametrize("behind", [b" ", b"\n", b"\r\n", b".", b".a"])
def test_text_behind_a_token(behind: bytes) -> None:
    assert _reason(_verifier(), token(OURS) + behind) == "bad_token"


def test_no_token() -> None:
    assert _reason(_verifier(), b"") == "no_credentials"
    for text in (b" ", b".", b"..", b"...", b"a.b.c", b"\xff", b"x" * 1000):
        assert _reason(_verifier(), text) == "bad_token"


@pytest.mark.parametrize(
    "payload",
    ['{"sub":"alice","sub":"alice"}', '{"sub":"alice","a":NaN}', '\ufeff{"sub":"alice"}', '"alice"', "alice",
     '{"sub":"alice","a":' + "[" * 2000 + "]" * 2000 + "}"],
)  # fmt: skip
def test_payloads_that_are_refused(payload: str) -> None:
    assert _reason(_verifier(), token(payload)) == "bad_token"


def test_payloads_that_are_odd() -> None:
    assert _verifier().verify(token('{"sub":"alice"} and more'), PEER) == Principal("alice")
    assert _verifier().verify(token(b'{"sub":"alice","a":"\xff"}'), PEER) == Principal("alice")


@pytest.mark.parametrize(
    "header", [{"cty": "JWT"}, {"crit": ["new"], "new": 1}, {"zip": "DEF"}, {"kid": 7}, {"typ": 7}]
)
def test_headers_that_are_refused(header: dict[str, Any]) -> None:
    assert _reason(_verifier(), token(OURS, **header)) == "bad_token"


@pytest.mark.parametrize("size", [64 * 1024, 1024 * 1024])
async def test_large_tokens_are_verified_in_a_thread(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    verifier = _verifier()
    threads: list[threading.Thread] = []
    inner = verifier._verify

    def seen(data: bytes) -> Principal:
        threads.append(threading.current_thread())
        return inner(data)

    monkeypatch.setattr(verifier, "_verify", seen)
    made = token(OURS | {"padding": "x" * size})
    assert takes_waiting(verifier.verify(made, PEER))
    assert await waited_for(verifier.verify(made, PEER)) == Principal("alice")
    with pytest.raises(AuthenticationFailed):
        await waited_for(verifier.verify(token(OURS | {"padding": "x" * size}, key=rsa_key(1)), PEER))
    assert threading.main_thread() not in threads
    assert verifier.verify(token(OURS), PEER) == Principal("alice")
    assert threads[2] is threading.main_thread()


def test_reload_reads_the_key_again_and_a_broken_one_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "public.der"
    file.write_bytes(der(rsa_key()))
    verifier = TokenVerifier(TokenSettings.model_validate({"key": f"file:{file}"}), clock=lambda: NOW)
    assert verifier.files == (file,)
    file.write_bytes(b"broken")
    with pytest.raises(ValueError, match="no public key"):
        verifier.reload()
    file.unlink()
    with pytest.raises(FileNotFoundError):
        verifier.reload()
    assert verifier.verify(token(OURS), PEER) == Principal("alice")
    file.write_bytes(der(rsa_key(1)))
    verifier.reload()
    assert _reason(verifier, token(OURS)) == "bad_token"
    assert verifier.verify(token(OURS, key=rsa_key(1)), PEER) == Principal("alice")


def test_a_failure_shows_nothing_of_the_token() -> None:
    made = token({"sub": "alice", "password": "hunter2"}, key=rsa_key(1))
    with pytest.raises(AuthenticationFailed) as refused:
        _verifier().verify(made, PEER)
    said = f"{refused.value} {refused.value.detail} {refused.value!r}"
    assert not any(part.decode() in said for part in made.split(b"."))
    assert "alice" not in said
