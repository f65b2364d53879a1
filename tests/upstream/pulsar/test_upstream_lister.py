"""The brokers' listing as the default lister: forwarded, checked, bounded, and never empty by mistake."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from broker_core.client import LookupSession
from broker_core.errors import ListingFailed, ServerError, TooManyRequests
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import compile_pattern
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.plugin_api.listing_result import AnswerKind
from broker_core.settings import PulsarSettings, UpstreamSettings
from broker_core.upstream.pulsar import UpstreamCluster, UpstreamLister, UpstreamOptions
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.clock import AGES, time_passes
from tests.support.eventually import eventually
from tests.support.scripted_server import Peer, Script, ScriptedServer
from tests.support.topics_answers import get_topics_response

NAMESPACE = NamespaceName("t", "n")
NAMES = [f"persistent://t/n/topic-{index:06d}" for index in range(30_000)]
PATTERN = compile_pattern("persistent://t/n/topic-.*")


def listing(topics: list[str], **fields: Any) -> Script:
    async def script(peer: Peer, command: BaseCommand) -> None:
        request_id = command.getTopicsOfNamespace.request_id
        peer.send(
            get_topics_response(
                request_id, topics, **{"topics_hash": "01234567", "filtered": False, **fields}
            )
        )

    return script


def options_for(port: int) -> UpstreamOptions:
    return UpstreamOptions(
        # The brokers get properties: by default a gateway holds snapshots, and they do not.
        UpstreamSettings(service_url=f"pulsar://127.0.0.1:{port}", listing_depends_on=("properties",)),
        first_backoff=0.005,
        longest_backoff=0.02,
    )


@asynccontextmanager
async def lister_to(script: Script, **options: Any) -> AsyncIterator[tuple[UpstreamLister, ScriptedServer]]:
    async with ScriptedServer(script) as server:
        upstream = UpstreamCluster(replace(options_for(server.port), **options))
        await upstream.start()
        try:
            assert isinstance(upstream.lister, UpstreamLister)
            yield upstream.lister, server
        finally:
            await upstream.stop()


def questions(server: ScriptedServer) -> list[Any]:
    return [
        each.getTopicsOfNamespace
        for each in server.received
        if each.type == BaseCommand.GET_TOPICS_OF_NAMESPACE
    ]


@pytest.mark.parametrize("mode", Mode)
async def test_a_listing_that_another_broker_gives_otherwise_is_not_held(mode: Mode) -> None:
    answers = [listing(NAMES[:100]), listing(NAMES[:10])]

    async def script(peer: Peer, command: BaseCommand) -> None:
        await answers.pop(0)(peer, command)

    async with lister_to(script) as (lister, _):
        await lister.list_topics(ListingRequest(NAMESPACE, mode))
        if mode is Mode.PERSISTENT:
            with pytest.raises(ListingFailed, match="90 of 100 topics"):
                await lister.list_topics(ListingRequest(NAMESPACE, mode))
        else:
            assert len((await lister.list_topics(ListingRequest(NAMESPACE, mode))).topics or ()) == 10


async def test_pattern_hash_and_properties_are_forwarded() -> None:
    async with lister_to(listing(NAMES[:3], filtered=True)) as (lister, server):
        request = ListingRequest(NAMESPACE, Mode.ALL, PATTERN, "76543210", {"region": "eu"})
        assert lister.name == "upstream"
        assert lister.list_now(request) is None
        result = await lister.list_topics(request)
        assert result.kind is AnswerKind.SUCCESS
        assert isinstance(result.topics, pa.LargeStringArray)
        assert result.topics.to_pylist() == NAMES[:3]
        assert (result.filtered, result.topics_hash) == (True, "01234567")
        (asked,) = questions(server)
        assert (asked.namespace, asked.mode, asked.topics_pattern, asked.topics_hash) == (
            "t/n",
            2,
            "persistent://t/n/topic-.*",
            "76543210",
        )
        assert {pair.key: pair.value for pair in asked.properties} == {"region": "eu"}


async def test_an_empty_namespace_is_an_answer() -> None:
    async with lister_to(listing([], topics_hash="00000000")) as (lister, _):
        result = await lister.list_topics(ListingRequest(NAMESPACE))
        assert (result.kind, len(result.topics)) == (AnswerKind.SUCCESS, 0)


@pytest.mark.parametrize("pattern", [None, PATTERN])
async def test_unchanged(pattern: Any) -> None:
    async with lister_to(listing([], changed=False, filtered=pattern is not None)) as (lister, server):
        result = await lister.list_topics(ListingRequest(NAMESPACE, pattern=pattern, topics_hash="01234567"))
        assert (result.kind, result.topics_hash) == (AnswerKind.UNCHANGED, "01234567")
        assert len(questions(server)) == 1


async def test_unchanged_is_not_believed_of_brokers_that_evaluate_no_pattern() -> None:
    async def script(peer: Peer, command: BaseCommand) -> None:
        if command.getTopicsOfNamespace.HasField("topics_hash"):
            await listing([], changed=False)(peer, command)
        else:
            await listing(NAMES[:5])(peer, command)

    async with lister_to(script) as (lister, _):
        result = await lister.list_topics(ListingRequest(NAMESPACE, pattern=PATTERN, topics_hash="01234567"))
        assert result.kind is AnswerKind.SUCCESS
        assert (len(result.topics), result.filtered) == (5, False)


@pytest.mark.parametrize(
    ("code", "reason"),
    [(ServerError.AuthorizationError, "denied"), (ServerError.TooManyRequests, "upstream")],
)
async def test_an_error_of_the_brokers_keeps_its_code(code: ServerError, reason: str) -> None:
    async def script(peer: Peer, command: BaseCommand) -> None:
        peer.send(commands.error(command.getTopicsOfNamespace.request_id, code, "says the broker"))

    async with lister_to(script) as (lister, _):
        with pytest.raises(ListingFailed, match="says the broker") as failed:
            await lister.list_topics(ListingRequest(NAMESPACE))
        assert (failed.value.code, failed.value.reason) == (code, reason)


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (listing(NAMES[:3], changed=False), "nothing changed, and yet names topics"),
        (listing([], changed=False), "says unchanged to the topics hash None"),
    ],
)
async def test_an_answer_that_is_none_is_an_error(script: Script, reason: str) -> None:
    async with lister_to(script) as (lister, _):
        with pytest.raises(ListingFailed, match=reason) as failed:
            await lister.list_topics(ListingRequest(NAMESPACE))
        assert failed.value.code is ServerError.MetadataError


async def test_brokers_that_refuse_the_connection_are_an_error() -> None:
    async def script(peer: Peer, _command: BaseCommand) -> None:
        peer.send(
            commands.error(commands.CONNECTION_REQUEST_ID, ServerError.AuthenticationError, "who are you")
        )

    async with ScriptedServer(script, handshake=False) as server:
        upstream = UpstreamCluster(replace(options_for(server.port), connection_wait=60))
        await upstream.start()
        with pytest.raises(ListingFailed, match="who are you") as failed:
            await upstream.lister.list_topics(ListingRequest(NAMESPACE))
        assert failed.value.code is ServerError.MetadataError, "the client has nothing to authenticate better"
        await upstream.stop()


async def test_the_deadline_of_the_request_ends_it() -> None:
    async def script(_peer: Peer, _command: BaseCommand) -> None:
        pass

    async with lister_to(script) as (lister, _):
        deadline = asyncio.get_running_loop().time() + 0.5
        with pytest.raises(ListingFailed, match="in time"):
            await lister.list_topics(ListingRequest(NAMESPACE, deadline=deadline))
    async with lister_to(script, listing_timeout=0.5) as (lister, _):
        with pytest.raises(ListingFailed, match=r"in time|within"):
            await lister.list_topics(ListingRequest(NAMESPACE))


async def test_brokers_that_stop_half_way_are_asked_over_another_connection_the_next_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped = asyncio.Event()

    async def script(peer: Peer, command: BaseCommand) -> None:
        if stopped.is_set():
            await listing(NAMES[:2])(peer, command)
        else:
            peer.send(b"\x00\x10\x00\x00\x00\x0f\xff\xfc" + bytes(100))
            stopped.set()

    options: dict[str, Any] = {
        "listing_timeout": 60.0,
        "pulsar": PulsarSettings(keep_alive=AGES),
        "connection_wait": AGES,
    }
    async with lister_to(script, **options) as (lister, server):
        listed = asyncio.create_task(lister.list_topics(ListingRequest(NAMESPACE)))
        await stopped.wait()
        await eventually(lambda: any(_buffered(client) for client in open_of(lister)))
        time_passes(monkeypatch, 61)
        with pytest.raises(ListingFailed, match=r"in time|within"):
            await listed
        result = await lister.list_topics(ListingRequest(NAMESPACE))
        assert isinstance(result.topics, pa.Array)
        assert result.topics.to_pylist() == NAMES[:2]
        assert len(questions(server)) == 2


def open_of(lister: UpstreamLister) -> list[LookupSession]:
    return [client for pool in lister._connections._pools.values() for client in pool._open]


def _buffered(client: LookupSession) -> int:
    """Bytes that came of an answer that is not whole."""
    connection = client._connection
    return 0 if connection is None else connection._frames.buffered


async def test_a_large_answer_takes_permits_before_it_is_read() -> None:
    reserved: list[int] = []

    async def reserve(size: int) -> None:
        reserved.append(size)

    async with lister_to(listing(NAMES)) as (lister, _):
        result = await lister.list_topics(ListingRequest(NAMESPACE, reserve_bytes=reserve))
        assert isinstance(result.topics, pa.LargeStringArray)
        assert result.topics.to_pylist() == NAMES
        (size,) = reserved
        assert size > 2 * sum(map(len, NAMES))


async def test_without_permits_it_fails_and_the_next_one_is_served() -> None:
    async def reserve(_size: int) -> None:
        raise TooManyRequests("Failed due to heap memory limit exceeded", reason="heap_timeout")

    async with lister_to(listing(NAMES)) as (lister, _):
        with pytest.raises(TooManyRequests):
            await lister.list_topics(ListingRequest(NAMESPACE, reserve_bytes=reserve))
        assert len((await lister.list_topics(ListingRequest(NAMESPACE))).topics) == len(NAMES)


async def test_no_more_at_a_time_than_the_limit() -> None:
    go_on = asyncio.Event()

    async def script(peer: Peer, command: BaseCommand) -> None:
        await go_on.wait()
        await listing(NAMES[:1])(peer, command)

    async with lister_to(script, listings=2) as (lister, _):
        asked = [asyncio.create_task(lister.list_topics(ListingRequest(NAMESPACE))) for _ in range(6)]
        await eventually(lambda: sum(client.pending for client in open_of(lister)) == 2)
        assert lister._places.locked()
        go_on.set()
        assert [len((await each).topics) for each in asked] == [1] * 6
