"""Redirects and owners over real sockets: brokers that redirect, redirect in circles, lie, are slow, or half-open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from broker_core.access.asker import Asker
from broker_core.client import ServerRefused, UnexpectedAnswer
from broker_core.client.pulsar.redirects import MAX_REDIRECTS
from broker_core.errors import ServerError
from broker_core.settings import UpstreamSettings
from broker_core.upstream.pulsar import UpstreamCluster, UpstreamConnections, UpstreamOptions
from broker_core.upstream.pulsar.broker_lookups import BrokerLookups
from broker_core.wire.pulsar import LOOKUP_COMMANDS, commands
from broker_core.wire.pulsar.frames import FrameDecoder
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import (
    BaseCommand,
    CommandGetOrCreateSchemaResponse,
    CommandLookupTopicResponse,
)
from tests.support.clock import AGES, time_passes
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.scripted_server import Peer, ScriptedServer, answer_nothing

Lookup: Any = CommandLookupTopicResponse
TOPIC = "persistent://t/n/x"
OWNER = "pulsar://owner.example:6650"
ASKER = Asker(remote_address="10.0.0.1:1")

#: Answers LOOKUP number ``n`` at a broker; ``None`` says nothing.
Answers = Callable[[int, Any], Any]


def lookup(**fields: Any) -> BaseCommand:
    (raw,) = FrameDecoder(1 << 20).feed(commands.lookup(1, TOPIC, **fields))
    return commands.decode(raw)


def redirect(url: str, *, authoritative: bool = False, tls: str = "") -> Any:
    return Lookup(
        response="Redirect", brokerServiceUrl=url, brokerServiceUrlTls=tls, authoritative=authoritative
    )


def connect(url: str = OWNER, **fields: Any) -> Any:
    return Lookup(response="Connect", brokerServiceUrl=url, **fields)


class Cluster:
    """Some brokers; ``answers[number]`` is what broker ``number`` says to the lookups that it is asked."""

    def __init__(self, brokers: list[ScriptedServer]) -> None:
        self.brokers = brokers
        self.answers: list[Answers] = [lambda _number, _question: None] * len(brokers)
        self.redirects = 0
        self.lookups: BrokerLookups
        self.connections: UpstreamConnections

    def url(self, number: int) -> str:
        return self.brokers[number].url

    def asked(self, number: int) -> list[Any]:
        return [each.lookupTopic for each in self.brokers[number].received if each.type == BaseCommand.LOOKUP]

    async def look_up(self, **fields: Any) -> Any:
        row = LOOKUP_COMMANDS[BaseCommand.LOOKUP]
        return (await self.lookups.ask(row, lookup(**fields), ASKER)).lookupTopicResponse

    def script(self, number: int) -> Callable[[Peer, BaseCommand], Awaitable[None]]:
        async def script(peer: Peer, command: BaseCommand) -> None:
            if command.type != BaseCommand.LOOKUP:
                return
            body = self.answers[number](len(self.asked(number)), command.lookupTopic)
            if body is None:
                return
            answer = BaseCommand(type=BaseCommand.LOOKUP_RESPONSE)
            answer.lookupTopicResponse.CopyFrom(body)
            answer.lookupTopicResponse.request_id = command.lookupTopic.request_id
            peer.send(commands.encode(answer))

        return script

    def _redirected(self) -> None:
        self.redirects += 1


@asynccontextmanager
async def cluster_of(number: int, **options: Any) -> AsyncIterator[Cluster]:
    async with AsyncExitStack() as stack:
        brokers = [await stack.enter_async_context(ScriptedServer()) for _ in range(number)]
        cluster = Cluster(brokers)
        for index, broker in enumerate(brokers):
            broker.script = cluster.script(index)
        settings = replace(
            UpstreamOptions(
                UpstreamSettings(service_url=brokers[0].url),
                silence=99 * AGES,
                first_backoff=0.005,
                longest_backoff=0.02,
            ),
            **options,
        )
        cluster.connections = UpstreamCluster(settings).lookups
        cluster.lookups = BrokerLookups(cluster.connections, settings, cluster._redirected)
        stack.push_async_callback(cluster.connections.stop)
        yield cluster


async def test_redirects_are_followed_to_the_broker_that_serves_the_topic() -> None:
    async with cluster_of(3) as cluster:
        cluster.answers[0] = lambda _number, _question: redirect(cluster.url(1), authoritative=False)
        cluster.answers[1] = lambda _number, _question: redirect(cluster.url(2), authoritative=True)
        cluster.answers[2] = lambda _number, _question: connect(authoritative=True)
        found = await cluster.look_up()
        assert (found.response, found.brokerServiceUrl) == (Lookup.Connect, OWNER)
        assert [cluster.asked(number)[0].authoritative for number in range(3)] == [False, False, True]
        assert cluster.redirects == 2


async def test_what_the_client_said_is_asked_of_each_broker() -> None:
    async with cluster_of(2) as cluster:
        cluster.answers[0] = lambda _number, _question: redirect(cluster.url(1))
        cluster.answers[1] = lambda _number, _question: connect()
        await cluster.look_up(listener_name="outside", properties={"zone": "a"}, authoritative=True)
        first, second = cluster.asked(0)[0], cluster.asked(1)[0]
        for question in (first, second):
            assert question.topic == TOPIC
            assert question.advertised_listener_name == "outside"
            assert [(pair.key, pair.value) for pair in question.properties] == [("zone", "a")]
        # As told: by the client, and then by a broker.
        assert (first.authoritative, second.authoritative) == (True, False)


async def test_a_refusal_behind_a_redirect_is_the_answer() -> None:
    async with cluster_of(2) as cluster:
        cluster.answers[0] = lambda _number, _question: redirect(cluster.url(1))
        cluster.answers[1] = lambda _number, _question: Lookup(response="Failed", error=4, message="no")
        found = await cluster.look_up()
        assert (found.response, found.error, found.message) == (Lookup.Failed, 4, "no")


async def test_an_error_with_the_outcome_of_a_redirect_is_not_followed() -> None:
    async with cluster_of(2) as cluster:
        cluster.answers[0] = lambda _number, _question: Lookup(
            response="Redirect", brokerServiceUrl=cluster.url(1), error=1, message="no"
        )
        assert (await cluster.look_up()).error == 1
        assert not cluster.asked(1)


async def test_a_circle_is_seen() -> None:
    async with cluster_of(2) as cluster:
        cluster.answers[0] = lambda _number, _question: redirect(cluster.url(1))
        cluster.answers[1] = lambda _number, _question: redirect(cluster.url(0))
        with pytest.raises(UnexpectedAnswer, match="in a circle"):
            await cluster.look_up()
        assert len(cluster.asked(0)) + len(cluster.asked(1)) == 3


async def test_a_broker_that_redirects_to_itself_is_asked_twice() -> None:
    async with cluster_of(1) as cluster:
        cluster.answers[0] = lambda _number, _question: redirect(cluster.url(0), authoritative=True)
        with pytest.raises(UnexpectedAnswer, match=f"in a circle, to {cluster.url(0)} again"):
            await cluster.look_up()
        assert len(cluster.asked(0)) == 2


async def test_the_same_broker_with_another_authority_is_no_circle() -> None:
    async with cluster_of(1) as cluster:
        cluster.answers[0] = lambda number, _question: (
            redirect(cluster.url(0), authoritative=number == 2) if number < 3 else connect()
        )
        assert (await cluster.look_up()).response == Lookup.Connect


async def test_twenty_redirects_are_followed_and_not_one_more() -> None:
    async with cluster_of(2) as cluster:
        # Each one by another name of the same broker, so that no circle is seen.
        names = iter([f"pulsar://127.0.0.{2 + number}:{cluster.brokers[1].port}" for number in range(50)])
        port = cluster.brokers[1].port
        more: list[ScriptedServer] = []
        try:
            hosts = [f"127.0.0.{2 + number}" for number in range(MAX_REDIRECTS + 1)]
            more.extend([await listening(host, port, cluster) for host in hosts])
            cluster.answers[0] = lambda _number, _question: redirect(next(names))
            with pytest.raises(UnexpectedAnswer, match="more than 20 times"):
                await cluster.look_up()
            assert cluster.redirects == MAX_REDIRECTS + 1
            assert sum(len(broker.received) for broker in more) == 2 * MAX_REDIRECTS, (
                "CONNECT and LOOKUP each"
            )
        finally:
            for broker in more:
                await broker.stop()


async def listening(host: str, port: int, cluster: Cluster) -> ScriptedServer:
    """One more name of a broker, which says what broker 0 says."""
    broker = ScriptedServer(cluster.script(0))
    broker._server = await asyncio.start_server(broker._serve, host, port)
    return broker


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (redirect(""), "without the address of a broker"),
        (redirect("", tls="pulsar+ssl://b:6651"), "without the address of a broker"),
        (redirect("pulsar+ssl://b:6651"), "an address without TLS is needed"),
        (redirect("http://b:8080"), "an address that is none"),
        (redirect("pulsar://b:0"), "an address that is none"),
        (redirect("pulsar://"), "an address that is none"),
        (redirect("pulsar://a:1,b:2"), "an address without TLS is needed"),
        (redirect("pulsar://a..b:6650"), "an address that is none"),
        (redirect(f"pulsar://{'b' * 70_000}:6650"), "an address that is none"),
    ],
)
async def test_a_redirect_to_nowhere_is_not_followed(answer: Any, reason: str) -> None:
    async with cluster_of(1) as cluster:
        cluster.answers[0] = lambda _number, _question: answer
        with pytest.raises(UnexpectedAnswer, match=reason) as failed:
            await cluster.look_up()
        assert len(str(failed.value)) < 500
        assert cluster.redirects == 0


async def test_a_redirect_to_a_broker_that_is_gone_is_an_error_in_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with cluster_of(1, connection_wait=AGES, lookup_timeout=9 * AGES) as cluster:
        gone = f"pulsar://127.0.0.1:{free_port()}"
        cluster.answers[0] = lambda _number, _question: redirect(gone)
        looking = asyncio.create_task(cluster.look_up())
        await eventually(lambda: cluster.redirects)
        for _ in range(20):  # it waits for a connection there
            await asyncio.sleep(0)
        time_passes(monkeypatch, AGES + 1)
        with pytest.raises(Exception, match="no connection to"):
            await looking
        cluster.answers[0] = lambda _number, _question: connect()
        assert (await cluster.look_up()).response == Lookup.Connect, "the others are asked as before"


async def test_a_redirect_to_a_half_open_broker_is_an_error_in_bounded_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with cluster_of(2, lookup_timeout=AGES) as cluster:
        cluster.answers[0] = lambda _number, _question: redirect(cluster.url(1))
        looking = asyncio.create_task(cluster.look_up())
        await eventually(lambda: len(cluster.asked(1)) == 1)
        time_passes(monkeypatch, AGES + 1)
        with pytest.raises(Exception, match="did not answer within 3600 s"):
            await looking


async def test_a_broker_that_takes_connections_and_never_shakes_hands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits = {"connection_wait": 3 * AGES, "connect_timeout": AGES, "lookup_timeout": 9 * AGES}
    async with cluster_of(2, **waits) as cluster:
        silent = cluster.brokers[1]
        silent.handshake = False
        silent.script = answer_nothing
        cluster.answers[0] = lambda _number, _question: redirect(cluster.url(1))
        looking = asyncio.create_task(cluster.look_up())
        await eventually(lambda: silent.peers)
        for _ in range(20):  # it waits for the handshake
            await asyncio.sleep(0)
        time_passes(monkeypatch, AGES + 1)
        await eventually(lambda: len(silent.peers) == 2, what="it is tried again")
        time_passes(monkeypatch, 3 * AGES)
        with pytest.raises(Exception, match="did not answer within"):
            await looking


async def test_a_slow_broker_holds_up_nobody_else() -> None:
    async with cluster_of(2) as cluster:
        held: asyncio.Event = asyncio.Event()

        async def slow(peer: Peer, command: BaseCommand) -> None:
            async def later() -> None:
                await held.wait()
                await cluster.script(1)(peer, command)

            peer.task = asyncio.create_task(later())

        cluster.brokers[1].script = slow
        cluster.answers[1] = lambda _number, _question: connect("pulsar://slow:1")
        cluster.answers[0] = lambda number, _question: redirect(cluster.url(1)) if number == 1 else connect()
        waiting = asyncio.create_task(cluster.look_up())
        await eventually(lambda: len(cluster.asked(1)) == 1)
        assert (await cluster.look_up()).brokerServiceUrl == OWNER
        assert not waiting.done()
        held.set()
        assert (await waiting).brokerServiceUrl == "pulsar://slow:1"


async def test_a_connection_that_breaks_is_asked_once_more() -> None:
    async with cluster_of(2) as cluster:
        broken: list[Peer] = []

        async def breaking(peer: Peer, command: BaseCommand) -> None:
            if not broken:
                broken.append(peer)
                peer.abort()
                return
            await cluster.script(1)(peer, command)

        cluster.brokers[1].script = breaking
        cluster.answers[0] = lambda _number, _question: redirect(cluster.url(1))
        cluster.answers[1] = lambda _number, _question: connect()
        assert (await cluster.look_up()).brokerServiceUrl == OWNER
        assert len(cluster.asked(0)) == 1


# ---- what only the owner answers


PUT = LOOKUP_COMMANDS[BaseCommand.GET_OR_CREATE_SCHEMA]


def put_schema(size: int = 3) -> BaseCommand:
    (raw,) = FrameDecoder(1 << 24).feed(commands.get_or_create_schema(1, TOPIC, b"s" * size))
    return commands.decode(raw)


def schemas(cluster: Cluster, number: int) -> list[Any]:
    received = cluster.brokers[number].received
    return [each.getOrCreateSchema for each in received if each.type == BaseCommand.GET_OR_CREATE_SCHEMA]


def answer_schemas(cluster: Cluster, number: int) -> None:
    looks_up = cluster.script(number)

    async def script(peer: Peer, command: BaseCommand) -> None:
        if command.type != BaseCommand.GET_OR_CREATE_SCHEMA:
            await looks_up(peer, command)
            return
        answer = BaseCommand(type=BaseCommand.GET_OR_CREATE_SCHEMA_RESPONSE)
        answer.getOrCreateSchemaResponse.CopyFrom(
            CommandGetOrCreateSchemaResponse(
                request_id=command.getOrCreateSchema.request_id, schema_version=bytes([number])
            )
        )
        peer.send(commands.encode(answer))

    cluster.brokers[number].script = script


async def test_a_schema_is_put_at_the_broker_that_serves_the_topic() -> None:
    async with cluster_of(3) as cluster:
        for number in range(3):
            answer_schemas(cluster, number)
        cluster.answers[0] = lambda _number, _question: redirect(cluster.url(1))
        cluster.answers[1] = lambda _number, _question: connect(cluster.url(2))
        answer = await cluster.lookups.ask(PUT, put_schema(), ASKER)
        assert answer.getOrCreateSchemaResponse.schema_version == b"\2"
        assert [len(schemas(cluster, number)) for number in range(3)] == [0, 0, 1]
        assert schemas(cluster, 2)[0].schema == b"sss"
        assert cluster.asked(0)[0].topic == TOPIC


async def test_a_schema_is_put_through_the_service_url_of_a_standalone_broker() -> None:
    async with cluster_of(1) as cluster:
        answer_schemas(cluster, 0)
        cluster.answers[0] = lambda _number, _question: connect(
            "pulsar://nowhere.example:1", proxy_through_service_url=True
        )
        answer = await cluster.lookups.ask(PUT, put_schema(), ASKER)
        assert answer.getOrCreateSchemaResponse.schema_version == b"\0"


async def test_a_schema_is_not_put_where_the_lookup_is_refused() -> None:
    async with cluster_of(1) as cluster:
        answer_schemas(cluster, 0)
        cluster.answers[0] = lambda _number, _question: Lookup(response="Failed", error=4, message="no")
        answer = await cluster.lookups.ask(PUT, put_schema(), ASKER)
        body = answer.getOrCreateSchemaResponse
        assert (body.error_code, body.error_message) == (ServerError.AuthorizationError, "no")
        assert not schemas(cluster, 0)
        cluster.answers[0] = lambda _number, _question: Lookup(response=7)
        with pytest.raises(UnexpectedAnswer, match="unknown outcome 7"):
            await cluster.lookups.ask(PUT, put_schema(), ASKER)


async def test_large_questions_wait_for_each_other_and_small_ones_for_nobody() -> None:
    async with cluster_of(1) as cluster:
        cluster.answers[0] = lambda _number, _question: connect(
            "pulsar://o:1", proxy_through_service_url=True
        )
        waiting = [
            asyncio.create_task(cluster.lookups.ask(PUT, put_schema(900_000), ASKER)) for _ in range(4)
        ]
        await eventually(lambda: len(schemas(cluster, 0)) == 2)
        assert (await cluster.look_up()).response == Lookup.Connect
        assert len(schemas(cluster, 0)) == 2
        for each in waiting[:2]:
            each.cancel()
        await eventually(lambda: len(schemas(cluster, 0)) == 4)
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert cluster.lookups._large.acquired == 0


async def test_an_error_of_a_broker_behind_a_redirect_is_raised() -> None:
    async def refusing(peer: Peer, command: BaseCommand) -> None:
        peer.send(commands.error(command.lookupTopic.request_id, ServerError.NotAllowedError, "not here"))

    async with cluster_of(2) as cluster:
        cluster.brokers[1].script = refusing
        cluster.answers[0] = lambda _number, _question: redirect(cluster.url(1))
        with pytest.raises(ServerRefused, match="not here"):
            await cluster.look_up()
