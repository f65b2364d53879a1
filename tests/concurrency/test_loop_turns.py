"""All work in one turn of the event loop shares one time budget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from broker_core.concurrency.loop_turns import TURN_SECONDS, LoopTurn, has_time, loop_turn
from tests.support.clock import SetClock
from tests.support.eventually import turns


@pytest.fixture
async def busy(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Work of so many seconds. Nothing else takes time, whatever the machine does."""
    clock = SetClock()
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock)

    def work(seconds: float) -> None:
        clock.now += seconds

    return work


async def test_all_share_the_time_of_a_turn(busy: Callable[[float], None]) -> None:
    turn = loop_turn()
    assert turn is loop_turn()
    assert turn.has_time()
    busy(1.1 * TURN_SECONDS)
    assert not loop_turn().has_time()
    await asyncio.sleep(0)
    assert turn.has_time()


def test_each_loop_has_turns_of_its_own() -> None:
    async def turn() -> LoopTurn:
        return loop_turn()

    assert asyncio.run(turn()) is not asyncio.run(turn())


async def test_who_has_more_to_do_than_a_turn_has_time_for_comes_behind_the_others(
    busy: Callable[[float], None],
) -> None:
    turn, done = loop_turn(), []
    left = {"greedy": 5, "modest": 1, "other": 2}

    def work(name: str) -> None:
        done.append(name)
        busy(TURN_SECONDS)
        left[name] -= 1
        if left[name]:
            turn.call_next(lambda: work(name))

    for name in left:
        turn.call_next(lambda name=name: work(name))  # type: ignore[misc]
    await turns(20)
    assert done == ["greedy", "modest", "other", "greedy", "other", "greedy", "greedy", "greedy"]


async def test_a_crowd_that_waits_for_time_has_it_in_many_turns(busy: Callable[[float], None]) -> None:
    now = 0
    ended = asyncio.Event()
    had: list[int] = []

    def count() -> None:
        nonlocal now
        now += 1
        if not ended.is_set():
            asyncio.get_running_loop().call_soon(count)

    async def one() -> None:
        await loop_turn().time()
        had.append(now)
        busy(TURN_SECONDS / 2)

    count()
    await asyncio.gather(*(one() for _ in range(40)))
    ended.set()
    assert max(map(had.count, had)) <= 6
    assert had == sorted(had)


async def test_a_caller_that_waited_has_time_if_others_use_up_every_turn(
    busy: Callable[[float], None],
) -> None:
    turn, ended = loop_turn(), False

    def others() -> None:
        busy(1.1 * TURN_SECONDS)
        if not ended:
            asyncio.get_running_loop().call_soon(others)

    assert turn.has_time()
    others()
    await turn.time()
    ended = True
    assert turn.has_time()


async def test_time_that_is_there_takes_no_turn() -> None:
    turns: list[None] = []
    asyncio.get_running_loop().call_soon(turns.append, None)
    await loop_turn().time()
    assert not turns


async def test_what_came_together_has_one_number() -> None:
    turn = loop_turn()
    numbers = []
    for _ in range(2):
        assert turn.received == 0
        turn.begin_received()
        numbers.append(turn.received)
        turn.end_received()
    assert turn.received == 0
    assert 0 not in numbers
    assert len(set(numbers)) == 2


async def test_the_time_of_the_running_loop(busy: Callable[[float], None]) -> None:
    assert has_time()
    busy(1.1 * TURN_SECONDS)
    assert not has_time()
