"""Shared runs: the next one has all that asked before it began, one of a version all that have that version."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from broker_core.errors import ListingFailed
from broker_core.pipeline.runs.in_flight import NextRuns, VersionedRuns
from tests.support.eventually import eventually


async def ask(
    runs: NextRuns[None, int], key: str, question: Callable[[Sequence[None]], Awaitable[int]]
) -> int:
    found, _ = await runs.ask(key, question, None)
    return found


async def test_who_asks_meanwhile_shares_the_next_question() -> None:
    shared: NextRuns[None, int] = NextRuns()
    began: list[asyncio.Event] = []

    async def question(_parts: Sequence[None]) -> int:
        number, gate = len(began), asyncio.Event()
        began.append(gate)
        await gate.wait()
        return number

    def asks(key: str = "key") -> asyncio.Task[int]:
        return asyncio.create_task(ask(shared, key, question))

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
    assert not len(shared._running)
    assert not shared.waiting("key")


async def test_who_goes_away_ends_nothing_and_a_failure_is_everybodys() -> None:
    shared: NextRuns[None, int] = NextRuns()
    gate = asyncio.Event()

    async def question(_parts: Sequence[None]) -> int:
        await gate.wait()
        raise ValueError("no")

    one, other = (asyncio.create_task(ask(shared, "key", question)) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()
    with pytest.raises(asyncio.CancelledError):
        await one
    gate.set()
    with pytest.raises(ValueError, match="no"):
        await other
    assert not len(shared._running)


async def test_who_asks_together_is_told_where_his_part_is() -> None:
    runs: NextRuns[str, str] = NextRuns()
    gate = asyncio.Event()

    async def question(parts: Sequence[str]) -> str:
        await gate.wait()
        return "".join(parts)

    first = asyncio.create_task(runs.ask("key", question, "a"))
    await asyncio.sleep(0)
    rest = [asyncio.create_task(runs.ask("key", question, part, len(part))) for part in ("bb", "ccc", "d")]
    await asyncio.sleep(0)
    assert runs.waiting("key") == 6
    gate.set()
    assert await first == ("a", 0)
    assert await asyncio.gather(*rest) == [("bbcccd", 0), ("bbcccd", 2), ("bbcccd", 5)]


@pytest.mark.parametrize("answered", [True, False])
async def test_who_waits_learns_how_it_ended(answered: bool) -> None:
    runs = VersionedRuns()
    runs.begin("key")
    assert "key" in runs
    waiting = [asyncio.create_task(runs.wait("key", 60)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    runs.end("key", answered=answered)
    assert await asyncio.gather(*waiting[1:]) == [answered, answered]
    assert "key" not in runs
    runs.begin("key")
    runs.end("key", answered=answered)  # nobody waited


async def test_a_failure_is_everybodys_and_each_has_his_own() -> None:
    runs, failure = VersionedRuns(), ListingFailed("no")
    runs.begin("key")
    waiting = [asyncio.create_task(runs.wait("key", 60)) for _ in range(2)]
    await asyncio.sleep(0)
    runs.fail("key", failure)
    found = await asyncio.gather(*waiting, return_exceptions=True)
    assert [type(each) for each in found] == [ListingFailed, ListingFailed]
    assert len({id(each) for each in (*found, failure)}) == 3
    assert str(found[0]) == "no"
    runs.begin("key")
    runs.fail("key", failure)  # nobody waited


async def test_nobody_waits_for_ever() -> None:
    runs = VersionedRuns()
    runs.begin("key")
    assert await runs.wait("key", 0.001)
    runs.end("key", answered=True)
