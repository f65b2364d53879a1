"""Kept verdicts: by a keyed hash, of bounded size; an unknown user costs what a known one does."""

from __future__ import annotations

import pytest

from broker_core.access.authentication.basic import verdicts as module
from broker_core.access.authentication.basic.verdicts import Verdicts
from tests.support.htpasswd import bcrypt_hash


def test_verdicts_are_kept_by_user_and_password() -> None:
    verdicts = Verdicts({"alice": bcrypt_hash("secret")})
    digest = verdicts.digest("alice", b"secret")
    assert verdicts.kept(digest) is None
    assert verdicts.decide("alice", b"secret")
    verdicts.keep(digest, verdict=True)
    verdicts.keep(verdicts.digest("alice", b"wrong"), verdict=False)
    assert verdicts.kept(verdicts.digest("alice", b"secret")) is True
    assert verdicts.kept(verdicts.digest("alice", b"wrong")) is False
    assert verdicts.kept(verdicts.digest("alice:sec", b"ret")) is None
    assert verdicts.kept(verdicts.digest("alicesec", b"ret")) is None
    assert len(verdicts) == 1


def test_the_hash_has_a_key_of_its_own() -> None:
    users = {"alice": bcrypt_hash("secret")}
    assert Verdicts(users).digest("alice", b"secret") != Verdicts(users).digest("alice", b"secret")
    verdicts = Verdicts(users)
    verdicts.keep(verdicts.digest("alice", b"secret"), verdict=True)
    assert "secret" not in repr(vars(verdicts))


def test_bad_verdicts_are_bounded_and_drive_no_good_one_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_KEPT", 8 * 1024)
    verdicts = Verdicts({"alice": bcrypt_hash("secret")})
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
    verdicts = Verdicts(hashes)
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
