from __future__ import annotations

import asyncio

import pytest

from broker_core.pipeline.in_flight import SharedAsks
from tests.support.eventually import eventually


async def test_who_asks_meanwhile_shares_the_next_question() -> None:
    shared: SharedAsks[int] = SharedAsks()
    began: list[asyncio.Event] = []

    async def question() -> int:
        number, gate = len(began), asyncio.Event()
        began.append(gate)
        await gate.wait()
        return number

    def asks(key: str = "key") -> asyncio.Task[int]:
        return asyncio.create_task(shared.ask(key, question))

    first = asks()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    later = [asks() for _ in range(5)]
    other = asks("other")
    for _ in range(3):
        await asyncio.sleep(0)
    assert len(began) == 2  # one of each key
    began[0].set()
    assert await first == 0
    last = asks()  # the next one has not begun yet, or only just
    await eventually(lambda: len(began) == 3)
    began[1].set()
    began[2].set()
    assert await other == 1
    assert [await each for each in later] == [2] * 5
    await eventually(lambda: last.done() or len(began) == 4)
    began[-1].set()
    assert await last in (2, 3)
    assert not shared._running
    assert not shared._next


async def test_who_goes_away_ends_nothing_and_a_failure_is_everybodys() -> None:
    shared: SharedAsks[int] = SharedAsks()
    gate = asyncio.Event()

    async def question() -> int:
        await gate.wait()
        raise ValueError("no")

    one, other = (asyncio.create_task(shared.ask("key", question)) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()
    with pytest.raises(asyncio.CancelledError):
        await one
    gate.set()
    with pytest.raises(ValueError, match="no"):
        await other
    assert not shared._running
