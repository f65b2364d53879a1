"""The server of Pulsar's protocol: listening, parts that connections share, and the stop."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from broker_core import TopicListingResult
from broker_core.servers.connection.large_answers import LEAST_PIECE
from broker_core.servers.pulsar import PulsarOptions
from broker_core.settings import LimitsSettings, PulsarSettings
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.eventually import eventually
from tests.support.memory_lister import MemoryLister
from tests.support.plugins import PluginOf
from tests.support.pulsar_serving import Serving, serving
from tests.support.raw_client import Closed, RawClient

NAMES = [f"persistent://t/n/{'x' * 60}-{number:05d}" for number in range(60_000)]
SMALL = 16 * 1024
ALL = "broker-core-test"  # a client version without a frame limit


async def test_requests_under_way_are_counted() -> None:
    async with serving() as s:
        assert s.sample("lookups_in_flight") == 0
        s.server.load.slots.take()
        assert s.sample("lookups_in_flight") == 1
        s.server.load.slots.give_back()


# -- the end ----------------------------------------------------------------------------------------------------


async def stopped(s: Serving, drain: float = 30.0) -> asyncio.Task[None]:
    """The server while it stops: nobody can connect any more."""
    task = asyncio.create_task(s.server.stop(drain))
    await asyncio.sleep(0)

    async def nobody_connects() -> bool:
        try:
            (await RawClient.open(s.address, handshake=False)).close()
        except OSError:
            return True
        return False

    await eventually(nobody_connects)
    return task


async def test_answers_under_way_are_completed() -> None:
    source = MemoryLister(NAMES, at_once=False)
    source.gate.clear()
    async with serving(source) as s, await s.client() as waiting, await s.client() as idle:
        await waiting.send(commands.get_topics(1, "t/n", topics_pattern="t/n/.*7"))
        await eventually(lambda: source.asked)
        stopping = await stopped(s)
        assert await idle.closed() == []
        await waiting.ping()
        source.gate.set()
        assert len(RawClient.answer(await waiting.receive(), 1).topics) == 6000
        assert await waiting.closed() == []
        await stopping


async def test_an_answer_that_is_being_read_is_completed() -> None:
    async with serving(MemoryLister(NAMES), send_buffer=SMALL) as s:
        client = await s.client(client_version=ALL, receive_buffer=SMALL)
        await client.send(commands.get_topics(1, "t/n"))
        await client.send(commands.get_topics(2, "t/n", topics_pattern="t/n/x+-0000."))
        await eventually(lambda: s.permits.direct.acquired >= LEAST_PIECE)
        stopping = await stopped(s)
        assert list(RawClient.answer(await client.receive(), 1).topics) == NAMES
        assert len(RawClient.answer(await client.receive(), 2).topics) == 10
        assert await client.closed() == []
        await stopping
        client.close()


async def another_turn(s: Serving) -> None:
    """Give the server the time to answer somebody else."""
    async with await s.client() as other:
        await other.ping()


async def test_a_small_answer_that_is_not_read_yet_is_completed() -> None:
    """The connection closes out of flow control then, which asyncio allows only outside of its own call."""
    async with serving(MemoryLister(NAMES), send_buffer=SMALL) as s:
        client = await s.client(receive_buffer=4096)
        question = commands.get_topics(1, "t/n", topics_pattern="t/n/x+-00[0-4].*")
        while s.permits.reserve.acquired == 0:
            await client.send(question)
            await another_turn(s)
        await eventually(lambda: s.server.load.buffered_bytes == 0)
        stopping = await stopped(s)
        assert all(
            each.type == BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE for each in await client.closed()
        )
        await stopping
        client.close()


async def test_requests_that_come_too_late_are_left_to_the_next_server() -> None:
    """An error would be final for some clients; a closed connection is tried again elsewhere."""
    source = MemoryLister(NAMES[:10], at_once=False)
    source.gate.clear()
    async with serving(source) as s, await s.client() as client:
        await client.send(commands.get_topics(1, "t/n"))
        await eventually(lambda: source.asked)
        stopping = await stopped(s)
        await client.send(commands.get_topics(2, "t/n") + commands.lookup(3, "x"))
        await client.ping()
        source.gate.set()
        assert RawClient.answer(await client.receive(), 1).topics
        assert await client.closed() == []
        await stopping
        assert len(source.asked) == 1


@pytest.mark.parametrize("drain", [0.0, 0.05])
async def test_what_does_not_end_in_time_is_cut_off(drain: float) -> None:
    released = threading.Event()

    def blocks() -> Any:
        released.wait()
        return TopicListingResult.success([])

    try:
        async with serving(MemoryLister(NAMES), {"p": PluginOf(list_topics=blocks)}) as s:
            client = await s.client()
            await client.send(commands.get_topics(1, "t/n"))
            await eventually(lambda: s.server.load.slots.taken == 1)
            await s.server.stop(drain)
            s.assert_nothing_held()  # not even the task of the request
            assert await client.closed() == []
            client.close()
    finally:
        released.set()


async def test_stopping_twice_and_before_the_start() -> None:
    async with serving() as s:
        await s.server.stop(0)
        await s.server.stop(0)


# -- memory of all connections together --------------------------------------------------------------------------


async def test_large_answers_queue_for_direct_permits_and_small_ones_pass_them() -> None:
    limits = LimitsSettings(direct_permits=2 * LEAST_PIECE)
    async with serving(MemoryLister(NAMES), limits=limits, send_buffer=SMALL) as s:
        slow = await s.client(client_version=ALL, receive_buffer=SMALL)
        await slow.send(commands.get_topics(1, "t/n"))
        await eventually(lambda: s.permits.direct.acquired >= LEAST_PIECE)
        second = await s.client(client_version=ALL)
        await second.send(commands.get_topics(2, "t/n"))
        await eventually(lambda: s.permits.direct.queue_size == 1)
        async with await s.client() as small:
            for pattern in ("t/n/x+-0000.", "t/n/.*-0123[0-4]"):
                assert (await small.ask("t/n", pattern=pattern)).topics
        await second.send(commands.get_topics(3, "t/n", topics_pattern="t/n/x+-0000."))
        assert len(RawClient.answer(await second.receive(), 3).topics) == 10
        assert list(RawClient.answer(await slow.receive(), 1).topics) == NAMES
        assert list(RawClient.answer(await second.receive(), 2).topics) == NAMES
        slow.close()
        second.close()


async def test_one_slow_reader_cannot_take_the_reserve() -> None:
    async with serving(MemoryLister(NAMES), send_buffer=SMALL) as s:
        slow = await s.client(receive_buffer=SMALL)
        question = commands.get_topics(1, "t/n", topics_pattern="t/n/x+-00[0-4].*")
        await slow.send(question * 400)
        await eventually(lambda: s.permits.reserve.acquired > 100_000)
        async with await s.client() as other:
            for _ in range(20):
                assert (await other.ask("t/n", pattern="t/n/x+-00[5-9].*")).topics
        assert s.permits.reserve.acquired < s.permits.reserve.maximum // 10
        for _ in range(400):
            assert len(RawClient.answer(await slow.receive(), 1).topics) == 500
        slow.close()


async def test_large_and_small_answers_and_pongs_of_one_connection_arrive_whole() -> None:
    rounds = 5
    async with (
        serving(MemoryLister(NAMES), send_buffer=SMALL) as s,
        await s.client(client_version=ALL, receive_buffer=SMALL) as client,
    ):
        frames = []
        for number in range(0, 4 * rounds, 4):
            frames += [
                commands.get_topics(number, "t/n"),
                commands.ping(),
                commands.get_topics(number + 1, "t/n", topics_pattern="t/n/x+-0000."),
                commands.get_topics(number + 2, "t/n", topics_pattern="t/n/.*[37]"),
                commands.get_topics(number + 3, "bad"),
            ]
        sending = asyncio.create_task(client.send(b"".join(frames)))
        pongs, answered = 0, set[int]()
        while len(answered) < 4 * rounds or pongs < rounds:
            command = await client.receive()
            if command.type == BaseCommand.PONG:
                pongs += 1
                continue
            request_id = commands.request_id_of(command)
            assert request_id is not None
            answered.add(request_id)
            if request_id % 4 == 3:
                assert command.type == BaseCommand.ERROR
                continue
            topics = list(command.getTopicsOfNamespaceResponse.topics)
            expected = (NAMES, NAMES[:10], [name for name in NAMES if name[-1] in "37"])[request_id % 4]
            assert topics == expected
        await sending
        assert (pongs, len(answered)) == (rounds, 4 * rounds)


async def test_a_write_timeout_is_about_reading_nothing() -> None:
    options = PulsarOptions(PulsarSettings(write_timeout=0.2))
    async with serving(MemoryLister(NAMES), options=options, send_buffer=SMALL) as s:
        client = await s.client(client_version=ALL, receive_buffer=SMALL)
        await client.send(commands.get_topics(1, "t/n"))
        with pytest.raises(Closed):
            await eventually(lambda: s.sample("connections_closed_total", reason="stalled") == 1)
            while True:
                await client.receive_raw()
        client.close()
