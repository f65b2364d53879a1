"""One connection: handshake, listings, keep-alive, and the few errors that close it."""

from __future__ import annotations

import pytest

from broker_core.listing.listing_hash import topics_hash
from broker_core.pipeline import PipelineOptions
from broker_core.servers.pulsar import PulsarOptions
from broker_core.settings import PatternsSettings, PulsarSettings
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.connection_questions import (
    INVALID_AND_LONG,
    MATCHING,
    NAMES,
    NAMESPACE,
    SHORT,
    TOO_LARGE_FOR_JAVA,
    lister,
)
from tests.support.pulsar_serving import serving
from tests.support.raw_client import RawClient

# -- the answers of ServerCnxTest, the slow way and the quick one ------------------------------------------------


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize(
    ("options", "pattern", "given", "topics", "filtered", "changed"),
    [
        (PipelineOptions(), None, None, NAMES, False, True),
        (PipelineOptions(PatternsSettings(evaluate=False)), SHORT, None, NAMES, False, True),
        (PipelineOptions(PatternsSettings(evaluate=False)), "use/ns-abc/(?!x).*", None, NAMES, False, True),
        (PipelineOptions(PatternsSettings(max_length=10)), INVALID_AND_LONG, None, NAMES, False, True),
        (PipelineOptions(), "use/ns-abc/(?!other).*", None, NAMES, False, True),
        (PipelineOptions(), SHORT, "SOME_HASH", MATCHING, True, True),
        (PipelineOptions(), SHORT, topics_hash(MATCHING), [], True, False),
        (PipelineOptions(), "persistent://" + SHORT, topics_hash(MATCHING), [], True, False),
        (PipelineOptions(), SHORT, topics_hash(NAMES), MATCHING, True, True),
        (PipelineOptions(), None, topics_hash(NAMES), [], False, False),
        (PipelineOptions(PatternsSettings(evaluate=False)), SHORT, topics_hash(NAMES), [], False, False),
        (PipelineOptions(), "use/ns-abc/nothing.*", None, [], True, True),
        (PipelineOptions(), "use/ns-abc/nothing.*", "00000000", [], True, False),
        (PipelineOptions(), None, "", NAMES, False, True),
    ],
)
async def test_a_listing_as_a_broker_gives_it(
    at_once: bool,
    options: PipelineOptions,
    pattern: str | None,
    given: str | None,
    topics: list[str],
    filtered: bool,
    changed: bool,
) -> None:
    async with serving(lister(at_once=at_once), pipeline_options=options) as s, await s.client() as client:
        answer = await client.ask(NAMESPACE, pattern=pattern, topics_hash=given)
        assert sorted(answer.topics) == sorted(topics)
        assert (answer.filtered, answer.changed) == (filtered, changed)
        expected = topics if changed else MATCHING if filtered else NAMES
        if pattern != "use/ns-abc/nothing.*":
            assert answer.topics_hash == topics_hash(expected)
        assert answer.HasField("filtered")
        assert answer.HasField("changed")


# -- handshake ---------------------------------------------------------------------------------------------------


# -- what closes a connection ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        (TOO_LARGE_FOR_JAVA - 3).to_bytes(4, "big") + b"\0\0\0\x08",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03",
        b"\0\0\0\x05\0\0\0\x01\xff",
        b"\0\0\0\x06\0\0\0\x02\x08\x20",
        b"\0\0\0\x08\0\0\0\xff" + b"\0" * 8,
        b"\0" * 100,
    ],
)
async def test_what_cannot_be_understood_closes_that_connection_alone(data: bytes) -> None:
    async with serving(lister()) as s, await s.client() as other:
        for handshake in (True, False):
            async with await s.client(handshake=handshake) as client:
                await client.send(data)
                assert await client.closed() == []
        assert s.sample("connections_closed_total", reason="bad_frame") == 2
        assert (await other.ask(NAMESPACE)).topics


async def test_the_largest_frame_is_read() -> None:
    async with serving(lister()) as s, await s.client() as client:
        empty = len(commands.get_topics(1, NAMESPACE, topics_pattern=""))
        pattern = "x" * (TOO_LARGE_FOR_JAVA - empty - 9)
        frame = commands.get_topics(1, NAMESPACE, topics_pattern=pattern)
        assert TOO_LARGE_FOR_JAVA - 4 < len(frame) <= TOO_LARGE_FOR_JAVA
        await client.send(frame)
        assert not RawClient.answer(await client.receive(), 1).filtered


async def test_the_keep_alive_runs_by_itself() -> None:
    async with serving(lister(), options=PulsarOptions(PulsarSettings(keep_alive=0.02))) as s:
        client = await s.client(handshake=False)
        assert await client.closed() == []


async def test_anything_that_is_heard_is_a_sign_of_life() -> None:
    async with serving(lister()) as s, await s.client() as client:
        for number in range(4):
            s.keep_alive()
            assert (await client.receive()).type == BaseCommand.PING
            await client.send(commands.get_topics(number, NAMESPACE))
            assert (await client.receive()).type == BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE


async def test_a_ping_does_not_wait_behind_requests_that_wait() -> None:
    async with serving(lister(at_once=False)) as s, await s.client() as client:
        held = await s.permits.heap.acquire(s.permits.heap.maximum)
        await client.send(b"".join(commands.get_topics(number, NAMESPACE) for number in range(50)))
        await client.ping()
        held.release()
        for _ in range(50):
            assert (await client.receive()).type == BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE
