"""Clients that are authenticated, over real connections."""

from __future__ import annotations

import time
from typing import Any

import pytest

from broker_core.access.connection_credentials import Sessions
from broker_core.errors import ServerError
from broker_core.service import failure_pace
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand, FeatureFlags
from tests.support.clock import AGES, time_passes
from tests.support.connection_questions import NAMESPACE, lister
from tests.support.eventually import eventually
from tests.support.pulsar_serving import Serving, serving
from tests.support.raw_client import Closed, RawClient
from tests.support.scripted_authenticator import ScriptedAuthenticator

REFRESH = FeatureFlags(supports_auth_refresh=True)


async def stranger(s: Serving) -> RawClient:
    return await s.client(handshake=False)


def connect(data: str, method: str = "token", flags: FeatureFlags | None = None) -> bytes:
    return commands.connect("v", auth_method_name=method, auth_data=data.encode(), feature_flags=flags)


async def logged_in(
    s: Serving, data: str = "alice", method: str = "token", *, refresh: bool = False
) -> RawClient:
    client = await stranger(s)
    await client.send(connect(data, method, REFRESH if refresh else None))
    assert (await client.receive()).type == BaseCommand.CONNECTED
    return client


def the_clock_is_moved(s: Serving, seconds: float) -> None:
    s.admission.live.expiries._clock = lambda: time.time() + seconds


@pytest.mark.parametrize("method", ["token", "slow"])
async def test_what_is_sent_behind_connect_waits_for_the_check(method: str) -> None:
    authenticator = ScriptedAuthenticator()
    async with serving(lister(), authenticator=authenticator) as s:
        client = await stranger(s)
        question = commands.get_topics(7, NAMESPACE)
        await client.send(connect("alice", method) + question + commands.ping() + question[:10])
        await eventually(lambda: authenticator.asked)
        await client.send(question[10:])
        authenticator.gate.set()
        kinds = [(await client.receive()).type for _ in range(4)]
        answer = BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE
        assert sorted(kinds) == sorted([BaseCommand.CONNECTED, answer, BaseCommand.PONG, answer])
        assert kinds[0] == BaseCommand.CONNECTED


@pytest.mark.parametrize("method", ["token", "slow"])
async def test_a_client_that_is_refused_reads_why_and_nothing_of_its_questions_is_done(method: str) -> None:
    authenticator = ScriptedAuthenticator()
    authenticator.gate.set()
    async with serving(lister(), authenticator=authenticator) as s:
        client = await stranger(s)
        question = commands.get_topics(7, NAMESPACE)
        await client.send(connect("!bad_token", method) + question * 500)
        [error] = await client.closed()
        assert (error.error.request_id, error.error.error) == (2**64 - 1, ServerError.AuthenticationError)
        assert error.error.message == "Failed to authenticate"
        client.close()
        await eventually(lambda: s.server.connections == 0)
        assert s.sample("connections_closed_total", reason="authentication") == 1
        assert s.sample("listing_seconds_count") == 0


async def test_a_client_that_does_not_wait_for_the_check() -> None:
    authenticator = ScriptedAuthenticator()
    async with serving(authenticator=authenticator) as s:
        for _ in range(3):
            client = await stranger(s)
            await client.send(connect("alice" + "x" * 100_000, "slow"))
            await eventually(lambda: s.server.load.request_tasks)
            client.vanish()
            await eventually(lambda: s.server.connections == 0)
            await s.nothing_held()


async def test_a_handshake_ends_with_the_interval_of_the_keep_alive() -> None:
    async with serving(authenticator=ScriptedAuthenticator()) as s:
        silent, checked, refused = await stranger(s), await stranger(s), await stranger(s)
        await checked.send(connect("alice", "slow"))
        await refused.send(connect("!bad_token"))
        await eventually(lambda: s.server.load.request_tasks)
        assert len(await refused.closed()) == 1
        s.keep_alive()
        assert await silent.closed() == []
        assert await checked.closed() == []
        assert s.sample("connections_closed_total", reason="handshake") == 2


async def test_an_address_that_fails_often_waits_for_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(authenticator=ScriptedAuthenticator()) as s:
        for _ in range(100):
            s.admission.pace.failed("127.0.0.1")
        client, good = await stranger(s), await logged_in(s, "alice")
        await client.send(connect("!bad_token"))
        refused = {"transport": "pulsar", "outcome": "bad_token"}
        await eventually(lambda: s.sample("authentications_total", **refused) == 1)
        await client.send(commands.ping())
        await good.ping()
        with pytest.raises(BlockingIOError):
            client._socket.recv(10)
        time_passes(monkeypatch, 6.0)
        [error] = await client.closed()
        assert error.error.message == "Failed to authenticate"


async def test_a_client_that_floods_while_its_error_waits_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failure_pace, "_LONGEST", 0.5)
    async with serving(authenticator=ScriptedAuthenticator()) as s:
        for _ in range(100):
            s.admission.pace.failed("127.0.0.1")
        client = await stranger(s)
        await client.send(connect("!bad_token"))
        with pytest.raises(ConnectionError):
            while True:
                await client.send(commands.get_topics(7, NAMESPACE) * 100)
        await s.nothing_held()


async def test_expired_credentials_in_the_midst_of_a_large_answer() -> None:
    names = [f"persistent://{NAMESPACE}/{'t' * 50}{number}" for number in range(50_000)]
    async with serving(lister(names), authenticator=ScriptedAuthenticator(), send_buffer=8192) as s:
        client = await stranger(s)
        await client.send(connect(f"alice@{time.time() + AGES}"))
        assert (await client.receive()).type == BaseCommand.CONNECTED
        await client.send(client.question(NAMESPACE)[1])
        await eventually(lambda: s.permits.direct.acquired)
        the_clock_is_moved(s, AGES)
        await eventually(lambda: s.server.connections == 0)
        await s.nothing_held()
        assert await client.closed() == [], "a part of a frame is no answer"


async def test_a_server_that_stops_waits_for_no_handshake(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(authenticator=ScriptedAuthenticator()) as s:
        for _ in range(100):
            s.admission.pace.failed("127.0.0.1")
        checked, refused = await stranger(s), await stranger(s)
        await checked.send(connect("alice", "slow"))
        await refused.send(connect("!bad_token"))
        await eventually(lambda: s.server.load.request_tasks)
        await eventually(
            lambda: s.sample("authentications_total", transport="pulsar", outcome="bad_token") == 1
        )
        await s.server.stop(60.0)
        assert await checked.closed() == []
        with pytest.raises(Closed):
            await refused.receive()


async def test_credentials_are_nowhere_in_the_log_or_the_metrics() -> None:
    async with serving(authenticator=ScriptedAuthenticator(), sessions=Sessions()) as s:
        client = await stranger(s)
        await client.send(connect("!bad_token"))
        await client.closed()
        alice = await logged_in(s, f"alice@{time.time() + AGES}", refresh=True)
        the_clock_is_moved(s, AGES)
        await alice.receive()
        await alice.send(commands.auth_response("v", "token", b"!expired"))
        await alice.closed()
        shown: list[Any] = [str(line) for line in s.logs]
        assert shown
        assert not any("!bad_token" in line or "!expired" in line or "alice@" in line for line in shown)
