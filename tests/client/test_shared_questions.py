"""Equal questions under way: which askers share a run, and what a cancelled one does to it."""

from __future__ import annotations

import asyncio
import math

import pytest

from broker_core.access.asker import Asker
from broker_core.client.shared_questions import PATIENCE, SharedQuestions
from tests.support.clock import time_passes
from tests.support.eventually import eventually, turns


class Brokers:
    """Answers each run when the test says so, with the number of the run."""

    def __init__(self) -> None:
        self.runs: list[asyncio.Future[str]] = []
        self.askers: list[tuple[str, int]] = []  # whose address a run was asked for, and for how many
        self.cancelled = 0

    async def ask(self, asker: Asker, askers: int) -> str:
        self.askers.append((asker.remote_address, askers))
        run: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.runs.append(run)
        try:
            return await run
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    def answer(self, number: int) -> None:
        self.runs[number].set_result(f"run {number}")


@pytest.fixture
def brokers() -> Brokers:
    return Brokers()


@pytest.fixture
def shared() -> SharedQuestions[Asker, str]:
    return SharedQuestions()


def asking(
    shared: SharedQuestions[Asker, str], brokers: Brokers, number: int = 0, key: str = "key"
) -> asyncio.Task[str]:
    return asyncio.create_task(shared.ask(key, brokers.ask, Asker(remote_address=f"client:{number}")))


async def test_a_hundred_equal_ones_take_two_runs(
    shared: SharedQuestions[Asker, str], brokers: Brokers
) -> None:
    tasks = [asking(shared, brokers, number) for number in range(100)]
    await turns()
    assert brokers.askers == [("client:0", 1)]
    brokers.answer(0)
    await turns()
    assert brokers.askers[1:] == [("client:1", 99)]
    brokers.answer(1)
    assert await asyncio.gather(*tasks) == ["run 0", *["run 1"] * 99]
    assert not len(shared)
    assert not shared._tasks


async def test_nobody_gets_an_answer_that_was_begun_before_he_asked(
    shared: SharedQuestions[Asker, str], brokers: Brokers
) -> None:
    first = asking(shared, brokers)
    await turns()
    second = asking(shared, brokers)
    await turns()
    brokers.answer(0)
    assert await first == "run 0"
    await turns()
    third = asking(shared, brokers)  # while the second run is under way
    await turns()
    brokers.answer(1)
    await turns()
    brokers.answer(2)
    assert (await second, await third) == ("run 1", "run 2")


async def test_other_questions_wait_for_nobody(shared: SharedQuestions[Asker, str], brokers: Brokers) -> None:
    tasks = [asking(shared, brokers, key=f"key {number}") for number in range(3)]
    await turns()
    assert len(brokers.runs) == len(shared) == 3
    for number in range(3):
        brokers.answer(number)
    await asyncio.gather(*tasks)
    assert not len(shared)


async def test_one_that_hangs_does_not_hold_up_its_equals(
    shared: SharedQuestions[Asker, str], brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging = asking(shared, brokers)
    await turns()
    others = [asking(shared, brokers, number) for number in (1, 2)]
    await turns()
    assert len(brokers.runs) == 1
    time_passes(monkeypatch, PATIENCE)
    await eventually(lambda: len(brokers.runs) == 2)
    brokers.answer(1)
    assert await asyncio.gather(*others) == ["run 1"] * 2
    assert len(shared) == 1
    brokers.answer(0)
    assert await hanging == "run 0"
    assert not len(shared)


async def test_a_cancelled_asker_does_not_end_the_run_of_the_others(
    shared: SharedQuestions[Asker, str], brokers: Brokers
) -> None:
    first, *others = [asking(shared, brokers, number) for number in range(4)]
    await turns()
    brokers.answer(0)
    await first
    await turns()
    others[0].cancel()  # the one whom it is asked for
    await turns()
    assert brokers.cancelled == 0
    brokers.answer(1)
    assert await asyncio.gather(*others[1:]) == ["run 1"] * 2


async def test_a_run_that_nobody_waits_for_ends(
    shared: SharedQuestions[Asker, str], brokers: Brokers
) -> None:
    first, *others = [asking(shared, brokers, number) for number in range(3)]
    await turns()
    brokers.answer(0)
    await first
    await turns()
    for each in others:
        each.cancel()
    await eventually(lambda: not len(shared))
    assert brokers.cancelled == 1
    assert not shared._tasks


async def test_askers_that_leave_before_their_run_begins_leave_nothing(
    shared: SharedQuestions[Asker, str], brokers: Brokers
) -> None:
    first, second = [asking(shared, brokers, number) for number in range(2)]
    await turns()
    second.cancel()
    await turns()
    brokers.answer(0)
    assert await first == "run 0"
    assert len(brokers.runs) == 1
    assert not len(shared)


async def test_the_first_asker_leaves_and_the_others_are_asked_for_at_once(
    shared: SharedQuestions[Asker, str], brokers: Brokers
) -> None:
    first, second = [asking(shared, brokers, number) for number in range(2)]
    await turns()
    first.cancel()
    await turns()
    assert (brokers.cancelled, brokers.askers[1:]) == (1, [("client:1", 1)])
    brokers.answer(1)
    assert await second == "run 1"


async def test_a_run_that_is_cancelled_before_its_first_step_leaves_nothing(
    shared: SharedQuestions[Asker, str], brokers: Brokers
) -> None:
    both = [asking(shared, brokers, number) for number in range(2)]
    await turns()
    for each in both:  # their connection is gone
        each.cancel()
    await asyncio.wait(both)
    await turns()
    assert len(brokers.runs) == 1
    assert not len(shared)
    again = asking(shared, brokers)
    await turns()
    brokers.answer(1)
    assert await again == "run 1"


async def test_a_run_is_asked_for_somebody_who_is_still_there(
    shared: SharedQuestions[Asker, str], brokers: Brokers
) -> None:
    first, second, third = [asking(shared, brokers, number) for number in range(3)]
    await turns()
    second.cancel()
    await turns()
    brokers.answer(0)
    await turns()
    assert brokers.askers[1:] == [("client:2", 1)]
    brokers.answer(1)
    assert (await first, await third) == ("run 0", "run 1")


async def test_what_is_raised_is_raised_for_all_and_leaves_nothing(
    shared: SharedQuestions[Asker, str],
) -> None:
    async def broken(_asker: Asker, _askers: int) -> str:
        await asyncio.sleep(0)
        raise ValueError("a bug")

    tasks = [asyncio.create_task(shared.ask("key", broken, Asker())) for _ in range(3)]
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [str(each) for each in results] == ["a bug"] * 3
    assert not len(shared)


async def test_those_who_ask_in_one_turn_share_the_first_run(brokers: Brokers) -> None:
    shared: SharedQuestions[Asker, str] = SharedQuestions(together=True)
    tasks = [asking(shared, brokers, number) for number in range(100)]
    await turns()
    assert brokers.askers == [("client:0", 100)]
    later = asking(shared, brokers, 100)
    await turns()
    brokers.answer(0)
    assert set(await asyncio.gather(*tasks)) == {"run 0"}
    await turns()
    brokers.answer(1)
    assert await later == "run 1"
    assert not len(shared)


async def test_who_gives_up_before_the_first_run_leaves_nothing(brokers: Brokers) -> None:
    shared: SharedQuestions[Asker, str] = SharedQuestions(together=True)
    task = asking(shared, brokers)
    await asyncio.sleep(0)
    task.cancel()
    await turns()
    assert not len(shared)
    assert not brokers.askers


async def test_timers_that_are_out_of_order_hold_up_no_question() -> None:
    """A program may set a timer of NaN, below which later ones stand still in the heap of the event loop."""
    loop = asyncio.get_running_loop()
    timers = [loop.call_at(when, bool) for when in (loop.time() + 3600, *[math.nan] * 8)]

    async def answer(_asker: None, _askers: int) -> str:
        return "answer"

    asked = asyncio.create_task(SharedQuestions[None, str](together=True).ask("key", answer, None))
    for _ in range(10):
        await asyncio.sleep(0)
    assert asked.done()
    assert await asked == "answer"
    for timer in timers:
        timer.cancel()
