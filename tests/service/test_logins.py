from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from broker_core.access.authentication import AuthenticationFailed, Authenticator
from broker_core.access.principal import Principal
from broker_core.catalog import CatalogUnusable
from broker_core.kafka.scram.credentials import ScramCredential
from broker_core.service.logins import Logins, role_of
from broker_core.settings import AuthenticationSettings
from tests.support.htpasswd import write_htpasswd
from tests.support.kafka_logins import StoredUsersOfTest, attempt_of_kafka, logins_of


@pytest.fixture
def users() -> StoredUsersOfTest:
    return StoredUsersOfTest(alice="pencil")


@pytest.fixture
def logins(users: StoredUsersOfTest) -> Iterator[Logins]:
    logins = logins_of(users)
    yield logins
    logins.close()


async def test_a_stored_user_has_its_password(logins: Logins) -> None:
    attempt = attempt_of_kafka()
    admitted = await logins.password(attempt, "alice", b"pencil")
    assert admitted.principal.role == "alice"
    assert (attempt.method, attempt.data) == ("basic", b"alice:pencil")
    assert "pencil" not in f"{admitted} {attempt}"


@pytest.mark.parametrize("user", ["alice", "mallory", "a:b", " ", "m" * 2000])
async def test_everybody_else_is_refused_alike(logins: Logins, user: str) -> None:
    with pytest.raises(AuthenticationFailed) as refused:
        await logins.password(attempt_of_kafka(), user, b"wrong")
    assert str(refused.value) == "bad_password: no such user, or another password"


async def test_an_unknown_user_takes_the_work_of_a_known_one(
    logins: Logins, users: StoredUsersOfTest, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[tuple[str, int]] = []
    has_password = ScramCredential.has_password

    def counted(credential: ScramCredential, password: bytes) -> bool:
        done.append((credential.mechanism, credential.iterations))
        return has_password(credential, password)

    monkeypatch.setattr(ScramCredential, "has_password", counted)
    work = []
    for user in ("alice", "mallory"):
        done.clear()
        users.asked.clear()
        with pytest.raises(AuthenticationFailed):
            await logins.password(attempt_of_kafka(), user, b"wrong")
        work.append((list(done), len(users.asked)))
    assert work[0] == work[1]
    assert len(work[0][0]) == 2


async def test_passwords_that_are_verified_together_have_each_its_verdict(logins: Logins) -> None:
    verdicts = await asyncio.gather(
        *(
            logins.password(attempt_of_kafka(), "alice", password)
            for password in (b"pencil", b"wrong", b"pencil")
        ),
        return_exceptions=True,
    )
    assert [isinstance(each, AuthenticationFailed) for each in verdicts] == [False, True, False]


async def test_a_decoy_is_the_same_after_a_restart(users: StoredUsersOfTest) -> None:
    first, second = logins_of(users), logins_of(users)
    decoys = [
        await each.credential(attempt_of_kafka(), "SCRAM-SHA-256", "mallory") for each in (first, second)
    ]
    assert decoys[0].salt == decoys[1].salt
    for each in (first, second):
        each.close()


async def test_a_password_of_the_file_is_good_too(users: StoredUsersOfTest, tmp_path: Path) -> None:
    settings = AuthenticationSettings.model_validate(
        {"methods": ["basic"], "basic": {"file": write_htpasswd(tmp_path / "users", bob="bob's")}}
    )
    authenticator = Authenticator(settings)
    logins = logins_of(users, authenticator)
    assert (await logins.password(attempt_of_kafka(), "bob", b"bob's")).principal.role == "bob"
    assert (await logins.password(attempt_of_kafka(), "alice", b"pencil")).principal.role == "alice"
    with pytest.raises(AuthenticationFailed):
        await logins.password(attempt_of_kafka(), "bob", b"pencil")
    logins.close()
    authenticator.close()


@pytest.mark.parametrize("has_users", [True, False])
async def test_a_wrong_password_is_not_anonymous(users: StoredUsersOfTest, has_users: bool) -> None:
    authenticator = Authenticator(AuthenticationSettings(anonymous_role="guest"))
    logins = logins_of(users if has_users else None, authenticator)
    with pytest.raises(AuthenticationFailed):
        await logins.password(attempt_of_kafka(), "alice", b"wrong")
    with pytest.raises(AuthenticationFailed):
        await logins.token(attempt_of_kafka(), b"x.y.z")
    logins.close()


async def test_a_catalogue_that_cannot_be_read_is_nobodys_fault() -> None:
    class Broken(StoredUsersOfTest):
        def kafka_user(self, name: str, mechanism: str) -> NoReturn:
            raise CatalogUnusable("the disk is gone")

    logins = logins_of(Broken())
    with pytest.raises(AuthenticationFailed) as refused:
        await logins.password(attempt_of_kafka(), "alice", b"pencil")
    assert refused.value.reason == "catalog"
    assert not logins.admission.pace._failures
    with pytest.raises(AuthenticationFailed):
        await logins.credential(attempt_of_kafka(), "SCRAM-SHA-512", "alice")
    logins.close()


def test_a_name_that_is_no_role_is_refused() -> None:
    with pytest.raises(AuthenticationFailed):
        role_of("a\nb")


async def test_credentials_may_be_verified_elsewhere_alone(users: StoredUsersOfTest) -> None:
    asked: list[tuple[str, bytes]] = []

    async def verify(method: str, data: bytes) -> Principal:
        asked.append((method, data))
        if data.endswith(b"wrong"):
            raise AuthenticationFailed("bad_password")
        return Principal("ann")

    local = logins_of(users)
    logins = Logins(local.admission, users, verify)
    attempt = attempt_of_kafka()
    assert (await logins.password(attempt, "ann", b"pen")).principal.role == "ann"
    assert attempt.elsewhere
    assert (await logins.token(attempt_of_kafka(), b"a.b.c")).principal.role == "ann"
    with pytest.raises(AuthenticationFailed):
        await logins.password(attempt_of_kafka(), "alice", b"wrong")
    assert asked == [("basic", b"ann:pen"), ("token", b"a.b.c"), ("basic", b"alice:wrong")]
    logins.close()
    local.close()
