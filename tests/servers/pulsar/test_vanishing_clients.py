"""A client that disconnects in any phase of its request: nothing is held, and nothing fails."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from broker_core import ListingRequest, TopicListingResult
from broker_core.access.asker import Asker
from broker_core.pipeline.runs.fair_threads import UncutWork
from broker_core.servers.connection.large_answers import LEAST_PIECE, WINDOW
from broker_core.settings import LimitsSettings
from broker_core.wire.pulsar import commands
from tests.support.eventually import eventually
from tests.support.memory_lister import MemoryLister
from tests.support.plugins import PluginOf
from tests.support.pulsar_serving import Serving, serving
from tests.support.raw_client import Closed, RawClient

NAMES = [f"persistent://t/n/{'x' * 60}-{number:05d}" for number in range(60_000)]
SMALL = 16 * 1024  # a receive buffer
Leave = Callable[[RawClient], None]

leaving = pytest.mark.parametrize("leave", [RawClient.close, RawClient.vanish], ids=["closes", "vanishes"])


@asynccontextmanager
async def asking(s: Serving, *questions: dict[str, Any], **options: Any) -> AsyncIterator[RawClient]:
    """A client that has sent its questions."""
    client = await s.client(**{"client_version": "broker-core-test", **options})
    try:
        for question in questions:
            await client.send(client.question("t/n", **question)[1])
        yield client
    finally:
        client.close()


@leaving
async def test_while_it_waits_for_heap_permits(leave: Leave) -> None:
    async with serving(MemoryLister(NAMES, at_once=False)) as s:
        held = await s.permits.heap.acquire(s.permits.heap.maximum)
        async with asking(
            s, {}, {"pattern": "t/n/x.*"}
        ) as client:  # the second waits for what the first takes
            await eventually(lambda: s.permits.heap.queue_size == 1)
            await eventually(lambda: s.server.load.slots.taken == 2)
            leave(client)
            await eventually(lambda: s.permits.heap.queue_size == 0)
            await eventually(lambda: s.server.load.slots.taken == 0)
        held.release()


@leaving
async def test_while_it_waits_for_the_size_of_another(leave: Leave) -> None:
    source = MemoryLister(NAMES[:10], at_once=False)
    source.gate.clear()
    async with serving(source) as s, asking(s, {}) as first:
        await eventually(lambda: source.asked)
        async with asking(s, {}) as second:
            await eventually(lambda: s.server.load.slots.taken == 2)
            leave(second)
            await eventually(lambda: s.server.load.slots.taken == 1)
        source.gate.set()
        assert len(RawClient.answer(await first.receive(), 1).topics) == 10


@leaving
async def test_the_first_of_a_question_goes_and_the_others_go_on(leave: Leave) -> None:
    source = MemoryLister(NAMES[:10], at_once=False)
    source.gate.clear()
    async with serving(source) as s, asking(s, {}) as first:
        await eventually(lambda: source.asked)
        async with asking(s, {}, {}) as second:
            await eventually(lambda: s.server.load.slots.taken == 3)
            leave(first)
            await eventually(lambda: len(source.asked) == 2)  # one of them is the first now
            source.gate.set()
            for _ in range(2):
                assert (await second.receive()).getTopicsOfNamespaceResponse.topics


@leaving
@pytest.mark.parametrize("sync", [True, False])
async def test_while_a_plugin_is_asked(sync: bool, leave: Leave) -> None:
    called, released = threading.Event(), threading.Event()
    cancelled: list[bool] = []

    async def hangs() -> Any:
        called.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    def blocks() -> Any:
        called.set()
        released.wait()
        return TopicListingResult.success(["too late"])

    try:
        async with serving(plugins={"p": PluginOf(list_topics=blocks if sync else hangs)}) as s:
            async with asking(s, {}) as client:
                await eventually(called.is_set)
                leave(client)
                await s.nothing_held()
            assert sync or cancelled
    finally:
        released.set()


@leaving
async def test_while_a_plugin_reserves(leave: Leave) -> None:
    async def broker_core_list_topics(request: ListingRequest) -> Any:
        await request.reserve(900_000)
        return TopicListingResult.success([])

    limits = LimitsSettings(heap_permits=1_000_000)
    plugins = {"p": PluginOf(list_topics=broker_core_list_topics)}
    async with serving(plugins=plugins, limits=limits) as s:
        held = await s.permits.heap.acquire(500_000)
        async with asking(s, {}) as client:
            await eventually(lambda: s.permits.heap.queue_size == 1)
            leave(client)
            await eventually(lambda: s.permits.heap.acquired == 500_000)
            assert s.permits.heap.queue_size == 0
        held.release()


@leaving
async def test_while_a_mask_is_asked(leave: Leave) -> None:
    called = asyncio.Event()

    async def broker_core_visible(topics: Any) -> Any:
        called.set()
        await asyncio.get_running_loop().create_future()

    plugins = {"m": PluginOf(visible=broker_core_visible)}
    async with serving(MemoryLister(NAMES), plugins) as s, asking(s, {"pattern": "t/n/.*7"}) as client:
        await called.wait()
        leave(client)
        await s.nothing_held()


@leaving
async def test_while_its_work_is_in_a_thread(leave: Leave) -> None:
    """All threads are taken, so that its work waits for one; then they are free again."""
    released = threading.Event()
    async with serving(MemoryLister(NAMES, at_once=False)) as s:
        scans, other = s.pipeline.workers.kinds["scan"], Asker()
        taken = [
            asyncio.create_task(scans.run(other.connection, UncutWork(released.wait)))
            for _ in range(scans.size)
        ]
        try:
            pattern = "t/n/.*(1|2)3?.*4"
            async with asking(s, {"pattern": pattern}) as client:
                await eventually(lambda: scans.waiting > 0)
                leave(client)
                await s.nothing_held()
        finally:
            released.set()
        assert all(await asyncio.gather(*taken))


@leaving
async def test_while_it_waits_for_direct_permits(leave: Leave) -> None:
    async with serving(MemoryLister(NAMES)) as s:
        held = await s.permits.direct.acquire(s.permits.direct.maximum)
        kept = await s.permits.reserve.acquire(s.permits.reserve.maximum)
        async with asking(s, {}, {}, {"pattern": "t/n/x+-0000."}, {"pattern": "t/n/.*7"}) as client:
            await eventually(lambda: s.permits.direct.queue_size == s.permits.reserve.queue_size == 1)
            leave(client)
            await eventually(lambda: s.permits.direct.queue_size == s.permits.reserve.queue_size == 0)
        held.release()
        kept.release()


@leaving
async def test_in_the_midst_of_a_window(leave: Leave) -> None:
    async with serving(MemoryLister(NAMES), send_buffer=SMALL) as s:
        questions = [{}, {"pattern": "t/n/.*[37]"}, {}, {"pattern": "t/n/x+-0000."}]
        async with asking(s, *questions, receive_buffer=SMALL) as client:
            await eventually(lambda: s.permits.direct.acquired >= LEAST_PIECE)
            await client.receive_raw()
            leave(client)
            await s.nothing_held()


@leaving
async def test_with_answers_that_it_does_not_read(leave: Leave) -> None:
    async with serving(MemoryLister(NAMES), send_buffer=SMALL) as s:
        question = {"pattern": "t/n/x+-00[0-4].*"}  # 40 KB of scattered or ranged rows
        async with asking(s, *([question] * 200), receive_buffer=SMALL) as client:
            await eventually(lambda: s.permits.reserve.acquired > 100_000)
            leave(client)
            await s.nothing_held()


@leaving
async def test_in_the_midst_of_a_frame_of_its_own(leave: Leave) -> None:
    async with serving(MemoryLister(NAMES)) as s, asking(s) as client:
        await client.send(commands.get_topics(1, "t/n", topics_pattern="x" * 100_000)[:50_000])
        await eventually(lambda: s.server.load.buffered_bytes == 50_000)
        leave(client)
        await s.nothing_held()


@leaving
async def test_before_and_after_the_handshake(leave: Leave) -> None:
    async with serving(MemoryLister(NAMES)) as s:
        for handshake in (True, False):
            async with asking(s, handshake=handshake) as client:
                await eventually(lambda: s.server.connections == 1)
                leave(client)
                await eventually(lambda: s.server.connections == 0)


async def test_many_come_and_go_at_any_moment() -> None:
    async def broker_core_list_topics(request: ListingRequest) -> Any:
        if "thread" in request.properties:
            await asyncio.to_thread(lambda: None)
        return None

    plugins = {"p": PluginOf(list_topics=broker_core_list_topics)}
    limits = LimitsSettings(heap_permits=3_000_000, direct_permits=2 * WINDOW)
    async with serving(
        MemoryLister(NAMES[:20_000], at_once=False),
        plugins,
        limits=limits,
        direct_reserve=200_000,
        send_buffer=SMALL,
    ) as s:

        async def one(number: int) -> None:
            questions: list[dict[str, Any]] = [
                {"pattern": f"t/n/.*{number % 10}"},
                {},
                {"pattern": "t/n/x+-001.*", "properties": {"thread": "1"}},
            ]
            async with asking(s, *questions, receive_buffer=SMALL) as client:
                try:
                    for _ in range(number % 4):
                        await client.receive_raw()
                except Closed:
                    raise AssertionError("the server closed it") from None
                (client.vanish if number % 2 else client.close)()

        for _ in range(2):
            await asyncio.gather(*(one(number) for number in range(20)))
        await s.nothing_held()
