"""Slow readers are closed when other requests wait for their memory, and only then."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.memory import permit_budget
from broker_core.servers.connection import large_answers
from broker_core.settings import LimitsSettings
from broker_core.wire.pulsar import commands
from tests.support.eventually import eventually
from tests.support.memory_lister import MemoryLister
from tests.support.pulsar_serving import Serving, serving
from tests.support.raw_client import Closed, RawClient

NAMES = [f"persistent://t/n/{'x' * 60}-{number:05d}" for number in range(60_000)]
ALL = "Pulsar-CPP-v3.5.1"
SMALL = 32 * 1024
#: Rows that are gathered: their positions are in the heap permits while the answer is written.
SCATTERED = "t/n/.*[0-8]"
HEAP = 600_000  # two such answers


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permit_budget, "PRESSURE", 0.001)
    monkeypatch.setattr(large_answers, "_SLOW_SECONDS", 0.0)


async def held_by_readers(s: Serving, count: int) -> list[RawClient]:
    readers = []
    for _ in range(count):
        reader = await s.client(client_version=ALL, receive_buffer=SMALL)
        await reader.send(commands.get_topics(1, "t/n", topics_pattern=SCATTERED))
        readers.append(reader)
    await eventually(lambda: s.permits.heap.acquired > 0 and s.permits.direct.acquired > 0)
    return readers


async def test_a_reader_that_does_not_read_gives_way() -> None:
    limits = LimitsSettings(heap_permits=HEAP)
    async with serving(MemoryLister(NAMES), limits=limits, send_buffer=SMALL) as s:
        readers = await held_by_readers(s, 2)
        async with await s.client(client_version=ALL) as other:
            await other.send(commands.get_topics(7, "t/n", topics_pattern=SCATTERED))
            answer = RawClient.answer(await asyncio.wait_for(other.receive(), 60), 7)
            assert len(answer.topics) == 54_000
        assert s.sample("connections_closed_total", reason="slow") >= 1
        for reader in readers:
            reader.close()


async def test_nobody_is_closed_where_nobody_waits() -> None:
    async with serving(MemoryLister(NAMES), send_buffer=SMALL) as s:
        readers = await held_by_readers(s, 3)
        async with await s.client(client_version=ALL) as other:
            assert len((await other.ask("t/n", pattern="t/n/x+-0000.")).topics) == 10
        for reader in readers:
            try:
                assert len(RawClient.answer(await reader.receive(), 1).topics) == 54_000
            except Closed:
                raise AssertionError("it was closed for nobody") from None
            reader.close()
        assert s.sample("connections_closed_total", reason="slow") == 0
