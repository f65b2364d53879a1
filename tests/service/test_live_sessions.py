"""Sessions that end when their credentials are good no more, and those that go on."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from jwt.algorithms import HMACAlgorithm
from structlog.testing import capture_logs

from broker_core.access.authentication import Authenticator, Grounds
from broker_core.access.peer import Peer
from broker_core.access.principal import Principal
from broker_core.errors import BrokerCoreError
from broker_core.service import Admission, Admitted, Ended, LiveSession, LoginAttempt, Logins, live_sessions
from broker_core.settings import AuthenticationSettings
from tests.support.eventually import eventually
from tests.support.htpasswd import bcrypt_hash, write_htpasswd
from tests.support.kafka_logins import StoredUsersOfTest, attempt_of_kafka, logins_of
from tests.support.tokens import SECRET, data_url, token

OTHER = SECRET[::-1]


class Door:
    """An admission by these settings of authentication, and the sessions of the clients that it has let in by name."""

    def __init__(self, users: StoredUsersOfTest | None = None, **settings: Any) -> None:
        authenticator = Authenticator(AuthenticationSettings.model_validate(settings))
        self.logins: Logins = logins_of(users, authenticator)
        self.admission: Admission = self.logins.admission
        self.authenticator = authenticator
        self.ended: dict[str, str] = {}
        self.sessions: dict[str, LiveSession] = {}

    async def enter(self, name: str, method: str | None = None, data: str = "", **more: Any) -> None:
        attempt = LoginAttempt(Peer("192.0.2.1:1", "pulsar"), "v", method, data.encode(), **more)
        self.begin(name, await self.admission.later(attempt))

    async def enter_as_user(self, name: str, user: str, password: str) -> None:
        """By PLAIN of Kafka."""
        self.begin(name, await self.logins.password(attempt_of_kafka(), user, password.encode()))

    def begin(self, name: str, admitted: Admitted | None) -> None:
        def ended(why: Ended) -> None:
            assert name not in self.ended, "it ends once"
            self.ended[name] = why.reason

        self.sessions[name] = self.admission.live.begin(admitted, ended)

    def reloads(self, **settings: Any) -> None:
        self.authenticator.prepare(AuthenticationSettings.model_validate(settings))()

    async def swept(self) -> dict[str, str]:
        """Why sessions have ended by now."""
        await self.admission.live.sweep()
        return self.ended


def tokens(key: bytes = SECRET, **more: Any) -> dict[str, Any]:
    return {"methods": ["token"], "token": {"key": data_url(key), "algorithms": ["HS256"], **more}}


def key_set(*keys: tuple[str, bytes]) -> str:
    jwks = [HMACAlgorithm.to_jwk(key, as_dict=True) | {"kid": name} for name, key in keys]

    return data_url(json.dumps({"keys": jwks}).encode())


def hs256(subject: str, key: bytes = SECRET, **claims: Any) -> str:
    return token({"sub": subject, **claims}, key=key, by="HS256").decode()


async def test_a_removed_user_and_a_replaced_password_of_the_file_end_and_nobody_else(tmp_path: Path) -> None:
    kept = f"alice:{bcrypt_hash('a')}\n"
    file = tmp_path / "users"
    file.write_text(kept + f"bob:{bcrypt_hash('b')}\ncarol:{bcrypt_hash('c')}\n")
    door = Door(methods=["basic"], basic={"file": file})
    for user in ("alice", "bob", "carol"):
        await door.enter(user, "basic", f"{user}:{user[0]}")
    assert await door.swept() == {}
    file.write_text(kept + f"carol:{bcrypt_hash('other')}\ndave:{bcrypt_hash('d')}\n")
    assert await door.swept() == {}, "it was not read again"
    door.authenticator.reload()
    assert await door.swept() == {"bob": "revoked", "carol": "revoked"}
    assert len(door.admission.live) == 1
    await door.enter("carol again", "basic", "carol:other")
    door.authenticator.reload()
    assert len(await door.swept()) == 2


async def test_a_file_that_cannot_be_used_ends_nobody(tmp_path: Path) -> None:
    file = write_htpasswd(tmp_path / "users", alice="a")
    door = Door(methods=["basic"], basic={"file": file})
    await door.enter("alice", "basic", "alice:a")
    for text in ("", "alice\n", "alice:plain\n"):
        file.write_text(text)
        with pytest.raises(BrokerCoreError):
            door.authenticator.reload()
        assert await door.swept() == {}
    file.unlink()
    with pytest.raises(BrokerCoreError):
        door.authenticator.reload()
    assert await door.swept() == {}


async def test_tokens_of_a_key_that_was_taken_away_end_and_those_of_another_do_not() -> None:
    both = key_set(("old", SECRET), ("new", OTHER))
    door = Door(methods=["token"], token={"jwks": both, "algorithms": ["HS256"]})
    await door.enter("old", "token", hs256("alice"))
    await door.enter("new", "token", hs256("alice", OTHER))
    assert await door.swept() == {}
    door.reloads(methods=["token"], token={"jwks": key_set(("new", OTHER)), "algorithms": ["HS256"]})
    assert await door.swept() == {"old": "revoked"}


@pytest.mark.parametrize(
    ("changed", "over"),
    [
        ({}, set()),
        ({"leeway": 5}, set()),
        ({"audience": "ours"}, {"without"}),
        ({"subject_claim": "name"}, {"without"}),
    ],
)
async def test_settings_that_let_a_token_in_as_nobody_or_another(
    changed: dict[str, Any], over: set[str]
) -> None:
    door = Door(**tokens())
    await door.enter("with", "token", hs256("alice", aud="ours", name="alice"))
    await door.enter("without", "token", hs256("bob", name="other"))
    door.reloads(**tokens(**changed))
    assert set(await door.swept()) == over


async def test_a_large_token_has_to_be_shown_again_after_a_change() -> None:
    door = Door(**tokens())
    await door.enter("large", "token", hs256("alice", more="x" * 20_000))
    assert await door.swept() == {}
    door.authenticator.reload()
    assert await door.swept() == {"large": "revoked"}


async def test_roles_that_the_settings_take_away(tmp_path: Path) -> None:
    users: dict[str, Any] = {
        "methods": ["basic"],
        "basic": {"file": write_htpasswd(tmp_path / "users", alice="a", proxy="p")},
    }
    door = Door(**users, anonymous_role="guest", proxy_roles=["proxy"])
    await door.enter("guest")
    await door.enter("alice", "basic", "alice:a")
    await door.enter("through", "basic", "proxy:p", original_principal="carol", proxy_version="v")
    door.reloads(**users, anonymous_role="guest", proxy_roles=["proxy", "other"])
    assert await door.swept() == {}
    door.reloads(**users, anonymous_role="visitor", proxy_roles=["other"])
    assert await door.swept() == {"guest": "revoked", "through": "revoked"}
    door.reloads(**users, proxy_roles=["alice"])
    assert set(await door.swept()) == {"guest", "through", "alice"}


async def test_a_method_that_is_taken_away_and_clients_that_nobody_has_authenticated() -> None:
    door = Door()
    door.begin("before", None)
    assert await door.swept() == {}
    door.reloads(**tokens())
    assert await door.swept() == {"before": "revoked"}
    await door.enter("alice", "token", hs256("alice"))
    door.reloads(anonymous_role="guest")
    assert await door.swept() == {"before": "revoked", "alice": "revoked"}


async def test_users_of_the_catalogue_end_with_their_stored_key() -> None:
    users = StoredUsersOfTest(alice="a", bob="b", carol="c", dave="d")
    door = Door(users)
    for user in ("alice", "bob", "carol", "dave"):
        await door.enter_as_user(user, user, user[0])
    await _scram(door, "scram", "alice", "SCRAM-SHA-256")
    assert await door.swept() == {}
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        del users.rows["bob", mechanism]
        users.put("carol", mechanism, "other")
    users.put("dave", "SCRAM-SHA-256", "other")  # the other one has the former password
    users.put("erin", "SCRAM-SHA-256", "e")
    assert await door.swept() == {"bob": "revoked", "carol": "revoked"}
    del users.rows["alice", "SCRAM-SHA-256"]
    assert set(await door.swept()) == {"bob", "carol", "scram"}
    door.logins.close()


async def test_users_that_cannot_be_read_end_nobody_and_the_log_says_so_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    users = StoredUsersOfTest(alice="a")
    door = Door(users)
    await door.enter_as_user("alice", "alice", "a")

    def broken() -> Any:
        raise BrokerCoreError("the disk is gone")

    monkeypatch.setattr(door.admission.live, "users", broken)
    with capture_logs() as logs:
        for _ in range(3):
            assert await door.swept() == {}
    assert [line["error"] for line in logs] == ["the disk is gone"]
    users.rows.clear()
    monkeypatch.undo()
    door.admission.live.users = users.kafka_users
    assert await door.swept() == {"alice": "revoked"}
    door.logins.close()


async def test_a_client_that_is_let_in_by_what_has_changed_meanwhile() -> None:
    users = StoredUsersOfTest(alice="a")
    door = Door(users, **tokens())
    attempt, by_token = (
        attempt_of_kafka(),
        LoginAttempt(Peer("h:1", "pulsar"), "v", "token", hs256("bob").encode()),
    )
    by_password = await door.logins.password(attempt, "alice", b"a")
    admitted = door.admission.now(by_token)
    await door.enter("carol", "token", hs256("carol"))
    del users.rows["alice", "SCRAM-SHA-256"], users.rows["alice", "SCRAM-SHA-512"]
    door.reloads(**tokens(OTHER))
    assert await door.swept() == {"carol": "revoked"}
    door.begin("alice", by_password)
    door.begin("bob", admitted)
    assert await door.swept() == dict.fromkeys(("carol", "alice", "bob"), "revoked")
    door.logins.close()


async def test_what_a_plugin_took_is_good_until_its_end() -> None:
    async def ask(_method: str, data: bytes, _peer: Peer) -> Principal:
        return Principal(data.decode())

    authenticator = Authenticator(AuthenticationSettings(), ask)
    door = Door()
    door.admission.authenticator = door.admission.live._authenticator = door.authenticator = authenticator
    await door.enter("alice", "special", "alice")
    door.reloads(**tokens())
    assert await door.swept() == {}


async def test_a_sweep_without_a_change_looks_at_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    door = Door(**tokens())
    for number in range(10):
        await door.enter(str(number), "token", hs256("alice"))
    asked: list[Grounds] = []

    def upholds(grounds: Grounds) -> bool:
        asked.append(grounds)
        return True

    monkeypatch.setattr(door.authenticator, "upholds", upholds)
    assert (await door.swept(), asked) == ({}, [])
    door.authenticator.reload()
    door.sessions["3"].cancel()
    for _ in range(3):
        assert await door.swept() == {}
    assert len(asked) == 9


async def test_nothing_of_the_credentials_is_shown() -> None:
    text = hs256("alice")
    door = Door(**tokens())
    await door.enter("alice", "token", text)
    assert text[:20] not in repr(door.sessions["alice"].grounds)


async def _scram(door: Door, name: str, user: str, mechanism: str) -> None:
    attempt = attempt_of_kafka()
    await door.logins.credential(attempt, mechanism, user)
    door.begin(name, await door.admission.later(attempt, lambda: Principal(user)))


async def test_a_sweep_that_fails_is_done_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_sessions, "_PERIOD", 0.001)
    door = Door(**tokens())
    await door.enter("alice", "token", hs256("alice"))
    looks: list[Grounds] = []

    def upholds(grounds: Grounds) -> bool:
        looks.append(grounds)
        if len(looks) < 3:
            raise KeyError("a bug")
        return False

    monkeypatch.setattr(door.authenticator, "upholds", upholds)
    door.authenticator.look_again()
    with capture_logs() as logs:
        watching = asyncio.create_task(door.admission.live.watch())
        await eventually(lambda: door.ended)
        watching.cancel()
    assert door.ended == {"alice": "revoked"}
    assert [line["log_level"] for line in logs] == ["error"] * 2
