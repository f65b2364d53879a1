"""The method basic: users of an htpasswd file, kept verdicts, and a file that changes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker_core.access.authentication.basic import basic_verifier as module
from broker_core.access.authentication.basic.basic_verifier import BasicVerifier, _Verdicts
from broker_core.access.authentication.basic.htpasswd_file import matches
from broker_core.access.authentication.failures import AuthenticationFailed
from broker_core.access.peer import Peer
from broker_core.access.principal import Principal
from broker_core.settings import BasicSettings
from tests.support.eventually import eventually
from tests.support.htpasswd import bcrypt_hash, write_htpasswd
from tests.support.verified import takes_waiting, waited_for

PEER = Peer("127.0.0.1:1", "pulsar")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_htpasswd(tmp_path / "htpasswd", alice="secret:with:colons", bob="")


@pytest.fixture
async def verifier(file: Path) -> AsyncIterator[BasicVerifier]:
    verifier = BasicVerifier(BasicSettings(file=file))
    yield verifier
    verifier.close()


async def _reason(verifier: BasicVerifier, data: bytes) -> str:
    with pytest.raises(AuthenticationFailed) as refused:
        await waited_for(verifier.verify(data, PEER))
    assert "secret" not in str(refused.value)
    return refused.value.reason


async def test_a_verdict_is_given_at_once_when_it_is_known(verifier: BasicVerifier) -> None:
    right, wrong = b"alice:secret:with:colons", b"alice:other"
    assert takes_waiting(verifier.verify(right, PEER))
    assert takes_waiting(verifier.verify(wrong, PEER))
    assert await waited_for(verifier.verify(right, PEER)) == Principal("alice")
    assert await _reason(verifier, wrong) == "bad_password"
    assert verifier.verify(right, PEER) == Principal("alice")
    with pytest.raises(AuthenticationFailed):
        verifier.verify(wrong, PEER)
    assert await waited_for(verifier.verify(b"bob:", PEER)) == Principal("bob")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "no_credentials"),
        (b"alice", "bad_password"),
        (b":", "bad_password"),
        (b":secret:with:colons", "bad_password"),
        (b"nobody:secret:with:colons", "bad_password"),
        (b"Alice:secret:with:colons", "bad_password"),
        (b"alice :secret:with:colons", "bad_password"),
        (b"\xff:x", "bad_password"),
        (b"x" * 2000 + b":x", "bad_password"),
        (b"alice:" + b"x" * 100_000, "bad_password"),
    ],
)
async def test_others_are_refused(verifier: BasicVerifier, data: bytes, reason: str) -> None:
    assert await _reason(verifier, data) == reason


async def test_a_changed_file_counts_at_once(verifier: BasicVerifier, file: Path) -> None:
    right = b"alice:secret:with:colons"
    await waited_for(verifier.verify(right, PEER))
    write_htpasswd(file, alice="another")
    assert verifier.verify(right, PEER) == Principal("alice")
    verifier.reload()
    assert takes_waiting(verifier.verify(right, PEER))
    assert await _reason(verifier, right) == "bad_password"
    assert await waited_for(verifier.verify(b"alice:another", PEER)) == Principal("alice")


async def test_a_broken_file_changes_nothing(verifier: BasicVerifier, file: Path) -> None:
    await asyncio.to_thread(file.write_text, "alice")
    with pytest.raises(ValueError, match="line 1"):
        verifier.reload()
    await asyncio.to_thread(file.unlink)
    with pytest.raises(FileNotFoundError):
        verifier.reload()
    assert await waited_for(verifier.verify(b"alice:secret:with:colons", PEER)) == Principal("alice")
    assert verifier.files == (file,)


async def test_a_file_that_changes_while_a_password_is_verified(
    verifier: BasicVerifier, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def slow(hashed: str, password: bytes) -> bool:
        begun.set()
        may_end.wait(60)
        return matches(hashed, password)

    monkeypatch.setattr(module, "matches", slow)
    asked = asyncio.create_task(waited_for(verifier.verify(b"alice:secret:with:colons", PEER)))
    await eventually(begun.is_set)
    write_htpasswd(file, alice="another")
    verifier.reload()
    may_end.set()
    with pytest.raises(AuthenticationFailed):
        await asked
    assert takes_waiting(verifier.verify(b"alice:another", PEER))


def test_verdicts_are_kept_by_user_and_password() -> None:
    verdicts = _Verdicts({"alice": bcrypt_hash("secret")})
    digest = verdicts.digest("alice", b"secret")
    assert verdicts.kept(digest) is None
    assert verdicts.decide("alice", b"secret")
    verdicts.keep(digest, verdict=True)
    verdicts.keep(verdicts.digest("alice", b"wrong"), verdict=False)
    assert verdicts.kept(verdicts.digest("alice", b"secret")) is True
    assert verdicts.kept(verdicts.digest("alice", b"wrong")) is False
    assert verdicts.kept(verdicts.digest("alice:sec", b"ret")) is None
    assert verdicts.kept(verdicts.digest("alicesec", b"ret")) is None


def test_the_hash_has_a_key_of_its_own() -> None:
    users = {"alice": bcrypt_hash("secret")}
    assert _Verdicts(users).digest("alice", b"secret") != _Verdicts(users).digest("alice", b"secret")
    verdicts = _Verdicts(users)
    verdicts.keep(verdicts.digest("alice", b"secret"), verdict=True)
    assert "secret" not in repr(vars(verdicts))


def test_bad_verdicts_are_bounded_and_drive_no_good_one_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT", 8 * 1024)
    verdicts = _Verdicts({"alice": bcrypt_hash("secret")})
    good = verdicts.digest("alice", b"secret")
    verdicts.keep(good, verdict=True)
    wrong = [verdicts.digest("alice", b"%d" % number) for number in range(100)]
    for digest in wrong:
        verdicts.keep(digest, verdict=False)
    assert verdicts.kept(good) is True
    assert verdicts.kept(wrong[-1]) is False
    assert verdicts.kept(wrong[0]) is None


def test_an_unknown_user_costs_as_much_as_a_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes = {f"user{number}": bcrypt_hash("secret") for number in range(3)}
    hashed: list[str] = []

    def matches(hash_of_user: str, password: bytes) -> bool:
        hashed.append(hash_of_user)
        return password == b"secret"

    monkeypatch.setattr(module, "matches", matches)
    verdicts = _Verdicts(hashes)
    assert verdicts.decide("user1", b"secret")
    assert hashed == [hashes["user1"]]
    assert not verdicts.decide("nobody", b"secret")
    assert not verdicts.decide("nobody", b"other")
    assert len(hashed) == 3
    assert hashed[1] == hashed[2]  # the same one for the same name, as if it were a user
    assert hashed[1] in hashes.values()
    for number in range(30):
        assert not verdicts.decide(f"nobody{number}", b"secret")
    assert set(hashed[3:]) == set(hashes.values())
