"""The authentication of a client, by a handler without a socket."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core.access.asker import Asker
from broker_core.access.connection_credentials import ClientCredentials, Sessions
from broker_core.errors import ServerError
from broker_core.metrics.metrics import Metrics
from broker_core.servers.connection import Awaited, Closing
from broker_core.servers.pulsar.command_handler import Reply
from broker_core.servers.pulsar.handshake import announced_message_size
from broker_core.service import Admission
from broker_core.settings import PulsarSettings
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import (
    BaseCommand,
    CommandConnect,
    FeatureFlags,
)
from tests.support.clock import time_passes
from tests.support.eventually import eventually
from tests.support.memory_lister import MemoryLister
from tests.support.pulsar_handlers import Talk, decoded, talk
from tests.support.scripted_authenticator import ScriptedAuthenticator


class Scene:
    """A handler that authenticates, at second 100 of the wall clock."""

    def __init__(self, **settings: object) -> None:
        self.now = 100.0
        self.authenticator = ScriptedAuthenticator(**settings)
        self.sessions = Sessions()
        self.askers: list[Asker] = []
        self.talk: Talk = talk(
            MemoryLister(["persistent://t/n/a"]), identify=self._identify, admission=self._admitting
        )

    def _identify(self, asker: Asker) -> Asker:
        self.askers.append(asker)
        return asker

    def _admitting(self, metrics: Metrics) -> Admission:
        admission = Admission(self.authenticator, metrics, self.sessions)
        self.expiries = admission.live.expiries
        self.expiries._clock = lambda: self.now
        return admission

    def connect(self, data: str = "alice", method: str | None = "token", **fields: Any) -> Reply:
        body = CommandConnect(client_version="Pulsar-Java-v4", protocol_version=21, **fields)
        if method is not None:
            body.auth_method_name = method
        body.auth_data = data.encode()
        return self.talk.say(commands.encode(BaseCommand(type=BaseCommand.CONNECT, connect=body)))

    def connect_with_refresh(self, data: str) -> None:
        reply = self.connect(data, feature_flags=FeatureFlags(supports_auth_refresh=True))
        assert isinstance(reply, bytes)

    def respond(self, data: str) -> Reply:
        return self.talk.say(commands.auth_response("v", "token", data.encode()))

    def time_passes(self, seconds: float) -> None:
        """The wall clock goes on, or is moved, and is looked at."""
        self.now += seconds
        timer = self.expiries._timer
        if timer is not None:
            timer.cancel()
            self.expiries._look()

    def count(self, outcome: str) -> float | None:
        return self.talk.metrics.registry.get_sample_value(
            "broker_core_authentications_total", {"transport": "pulsar", "outcome": outcome}
        )


def last_error(reply: Reply) -> tuple[int, int, str]:
    """Request id, code and text that a client reads before its connection is closed."""
    assert isinstance(reply, Closing)
    assert reply.reason == "authentication"
    error = decoded(reply.last).error
    return error.request_id, error.error, error.message


FAILED = (2**64 - 1, ServerError.AuthenticationError, "Failed to authenticate")
INVALID_ROLES = (2**64 - 1, ServerError.AuthorizationError, "Invalid roles.")


async def test_a_client_with_good_credentials_is_let_in_with_its_role() -> None:
    scene = Scene()
    reply = scene.connect("alice")
    assert isinstance(reply, bytes)
    assert decoded(reply).type == BaseCommand.CONNECTED
    [asker] = scene.askers
    assert (asker.role, asker.original_principal) == ("alice", None)
    [(method, data, peer)] = scene.authenticator.asked
    assert (method, data, peer.remote_address, peer.transport) == (
        "token",
        b"alice",
        "192.0.2.1:4711",
        "pulsar",
    )
    assert scene.sessions.any_of("alice", None) == ClientCredentials("token", b"alice")
    assert scene.count("ok") == 1
    assert scene.talk.handler.tick(quiet=True) == commands.ping()
    scene.talk.handler.closed()
    assert scene.sessions.any_of("alice", None) is None


async def test_a_client_whose_credentials_are_refused_reads_one_text_and_is_closed() -> None:
    for reason in ("bad_token", "expired", "no_credentials", "bad_password"):
        scene = Scene()
        with capture_logs() as logs:
            assert last_error(scene.connect(f"!{reason}")) == FAILED
        [line] = logs
        assert (line["event"], line["reason"], line["peer"]) == (
            "authentication failed",
            reason,
            "192.0.2.1:4711",
        )
        assert not scene.askers
        assert len(scene.sessions) == 0
        assert (scene.count(reason), scene.count("ok")) == (1, 0)
        closing = scene.talk.handler.tick(quiet=True)
        assert isinstance(closing, Closing)


async def test_nothing_of_the_credentials_is_said() -> None:
    scene = Scene()
    with capture_logs() as logs:
        scene.connect("!s3cret")
        scene.connect(
            "s3cret@1", original_auth_data="s3cret", feature_flags=FeatureFlags(supports_auth_refresh=True)
        )
        scene.time_passes(0)
        scene.respond("other-s3cret")
    assert "s3cret" not in "".join(
        str({key: value for key, value in line.items() if key not in ("reason", "role", "other")})
        for line in logs
    )
    assert "s3cret" not in repr(scene.talk.unasked)


@pytest.mark.parametrize(
    ("fields", "method"),
    [
        ({"auth_method_name": "token", "auth_method": 2}, "token"),
        ({"auth_method_name": ""}, ""),
        ({"auth_method_name": "Token"}, "Token"),
        ({"auth_method": 0}, "none"),
        ({"auth_method": 1}, "ycav1"),
        ({"auth_method": 2}, "athens"),
        ({"auth_method": 9}, "unknown"),
        ({}, None),
    ],
)
async def test_the_method_is_the_name_or_else_the_old_number(fields: Any, method: str | None) -> None:
    scene = Scene()
    scene.connect(method=None, **fields)
    assert scene.authenticator.asked[0][0] == method


async def test_a_check_that_takes_long_is_awaited() -> None:
    scene = Scene()
    reply = scene.connect("alice", "slow")
    assert isinstance(reply, Awaited)
    assert reply.holds
    closing = scene.talk.handler.tick(quiet=True)
    assert isinstance(closing, Closing)
    assert closing.values == {"waiting_for": "the check of its credentials"}
    scene.authenticator.gate.set()
    frame = await reply.reply()
    assert isinstance(frame, bytes)
    assert decoded(frame).type == BaseCommand.CONNECTED
    assert [asker.role for asker in scene.askers] == ["alice"]


async def test_a_check_that_takes_long_may_fail() -> None:
    scene = Scene()
    scene.authenticator.gate.set()
    reply = scene.connect("!bad_password", "slow")
    assert isinstance(reply, Awaited)
    assert last_error(await reply.reply()) == FAILED
    assert scene.count("bad_password") == 1


async def test_a_bug_lets_nobody_in() -> None:
    scene = Scene()
    with pytest.raises(KeyError):
        scene.connect("bug")
    assert not scene.askers


# -- proxies --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "original"),
    [
        ("proxy", None),
        ("proxy", ""),
        ("proxy", "proxy"),
        ("proxy", "proxy2"),
        ("alice", "bob"),
        ("alice", "alice"),
    ],
)
async def test_roles_that_are_no_good(role: str, original: str | None) -> None:
    scene = Scene(proxy_roles=["proxy", "proxy2"])
    fields = {} if original is None else {"original_principal": original}
    assert last_error(scene.connect(role, **fields)) == INVALID_ROLES
    assert not scene.askers
    assert scene.count("invalid_roles") == 1


async def test_a_proxy_speaks_for_its_client() -> None:
    scene = Scene(proxy_roles=["proxy"])
    fields = {"original_auth_method": "token", "original_auth_data": "alices", "proxy_version": "4"}
    assert isinstance(scene.connect("proxy", original_principal="alice", **fields), bytes)
    [asker] = scene.askers
    assert (asker.role, asker.original_principal) == ("proxy", "alice")
    assert scene.sessions.any_of("proxy", "alice") == ClientCredentials("token", b"proxy", "token", "alices")


# -- credentials that end -------------------------------------------------------------------------------------


async def test_a_client_that_cannot_renew_its_credentials_is_closed_when_they_end() -> None:
    scene = Scene()
    scene.connect("alice@150")
    scene.time_passes(49)
    assert not scene.talk.unasked
    scene.time_passes(1)
    [closing] = scene.talk.unasked
    assert isinstance(closing, Closing)
    assert (closing.reason, closing.last) == ("expired", b""), "without an ERROR, as at the broker"


async def test_a_client_is_asked_for_new_credentials() -> None:
    scene = Scene()
    scene.connect_with_refresh("alice@150")
    scene.time_passes(50)
    [frame] = scene.talk.unasked
    assert isinstance(frame, bytes)
    challenge = decoded(frame).authChallenge
    assert (challenge.challenge.auth_method_name, challenge.challenge.auth_data) == (
        "token",
        b"PulsarAuthRefresh",
    )
    assert (challenge.server_version, challenge.protocol_version) == ("broker-core", 21)
    job = scene.talk.say(commands.get_topics(7, "t/n"))
    assert job is not None, "requests go on meanwhile"
    job.release()  # type: ignore[union-attr]

    assert scene.respond("alice@200") is None
    assert scene.sessions.any_of("alice", None) == ClientCredentials("token", b"alice@200")
    assert (scene.count("ok"), scene.count("renewed")) == (1, 1)
    scene.time_passes(49)
    assert len(scene.talk.unasked) == 1
    scene.time_passes(1)
    assert len(scene.talk.unasked) == 2, "the new ones end too"
    assert scene.respond("alice") is None
    scene.time_passes(10_000)
    assert (len(scene.talk.unasked), len(scene.expiries)) == (2, 0)


async def test_a_client_that_does_not_answer_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    scene.connect_with_refresh("alice@150")
    scene.time_passes(50)
    time_passes(monkeypatch, 29)
    await asyncio.sleep(0)
    assert len(scene.talk.unasked) == 1
    time_passes(monkeypatch, 31)
    await eventually(lambda: len(scene.talk.unasked) == 2)
    closing = scene.talk.unasked[1]
    assert isinstance(closing, Closing)
    assert (closing.reason, closing.last) == ("expired", b"")


async def test_one_that_answers_is_not_closed_later(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    scene.connect_with_refresh("alice@150")
    scene.time_passes(50)
    scene.respond("alice")
    time_passes(monkeypatch, 3600)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(scene.talk.unasked) == 1


async def test_new_credentials_of_another_principal_close_without_a_word() -> None:
    scene = Scene()
    scene.connect_with_refresh("alice@150")
    scene.time_passes(50)
    with capture_logs() as logs:
        closing = scene.respond("bob")
    assert isinstance(closing, Closing)
    assert (closing.reason, closing.last) == ("authentication", b"")
    assert (logs[0]["reason"], logs[0]["role"], logs[0]["other"]) == ("other_principal", "alice", "bob")
    assert scene.sessions.any_of("bob", None) is None
    assert scene.count("other_principal") == 1


async def test_an_answer_without_data_is_no_good() -> None:
    scene = Scene()
    scene.connect_with_refresh("alice@150")
    scene.time_passes(50)
    command = BaseCommand(type=BaseCommand.AUTH_RESPONSE)
    command.authResponse.SetInParent()
    assert last_error(scene.talk.say(commands.encode(command))) == FAILED


async def test_an_answer_that_nobody_asked_for_is_ignored() -> None:
    scene = Scene()
    scene.connect_with_refresh("alice@150")
    assert scene.respond("bob") is None
    scene.time_passes(50)
    assert scene.respond("alice@200") is None
    assert scene.respond("bob") is None
    assert len(scene.authenticator.asked) == 2
    plain = talk()
    plain.connect()
    assert plain.say(commands.auth_response("v", "token", b"alice")) is None, "nobody is authenticated here"


async def test_one_answer_is_checked_at_a_time_and_requests_go_on() -> None:
    scene = Scene()
    scene.authenticator.gate.set()
    reply = scene.connect("alice@150", "slow", feature_flags=FeatureFlags(supports_auth_refresh=True))
    assert isinstance(reply, Awaited)
    await reply.reply()
    scene.time_passes(50)
    answer = scene.respond("alice@200")
    assert isinstance(answer, Awaited)
    assert not answer.holds
    assert scene.respond("bob") is None
    assert await answer.reply() is None
    scene.time_passes(50)
    answer = scene.respond("!bad_password")
    assert isinstance(answer, Awaited)
    assert last_error(await answer.reply()) == FAILED


async def test_nothing_outlives_the_connection() -> None:
    scene = Scene()
    scene.connect_with_refresh("alice@150")
    scene.talk.handler.closed()
    scene.time_passes(50)
    assert (scene.talk.unasked, len(scene.expiries)) == ([], 0)


async def test_a_challenge_ends_with_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    scene.connect_with_refresh("alice@150")
    scene.time_passes(50)
    scene.talk.handler.closed()
    scene.talk.handler.closed()
    time_passes(monkeypatch, 3600)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(scene.talk.unasked) == 1


@pytest.mark.parametrize(
    ("version", "follows"),
    [
        ("Pulsar-Go-v0.19.0", True),
        ("Pulsar-Java-v4.0.0", True),
        ("Pulsar-Java-v5.0.0-M1", True),
        ("Pulsar-Java-v10.1.0", True),
        ("Pulsar-Java-v3.3.9", False),
        ("Pulsar-CPP-v4.2.0", False),
        ("Pulsar-Python-4", False),
        ("", False),
    ],
)
def test_only_clients_that_read_by_it_are_told_a_larger_frame(version: str, follows: bool) -> None:
    same = PulsarSettings()
    assert announced_message_size(version, same) == same.max_message_size
    auto = PulsarSettings.model_validate({"advertise_frame": "auto", "max_listing": "20MB"})
    assert announced_message_size(version, auto) == (20 * 1024**2 if follows else auto.max_message_size)
    small = PulsarSettings.model_validate({"advertise_frame": "auto", "max_listing": "1MB"})
    assert announced_message_size(version, small) == small.max_message_size
