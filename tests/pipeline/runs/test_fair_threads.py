"""Few threads, many connections: the order of slices is fair."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from broker_core.pipeline.runs import fair_threads
from broker_core.pipeline.runs.fair_threads import Allowance, FairThreads, UncutWork
from tests.support.eventually import eventually

#: Seconds that each slice takes.
SLICE = 0.001


class Clock(threading.local):
    """The time of the processor that each thread has used: that of its slices, whatever else the machine does."""

    used = 0.0

    def thread_time(self) -> float:
        return self.used


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clocks of the threads; ``now`` is the time of day if a test sets it."""
    made = SimpleNamespace(now=None, thread_time=_clock.thread_time)
    made.monotonic = lambda: time.monotonic() if made.now is None else made.now
    monkeypatch.setattr(fair_threads, "time", made)
    return made


_clock = Clock()


class Steps:
    """Work of a number of slices, each of which is written down; ``at_once`` may run at a time."""

    def __init__(
        self,
        name: str,
        count: int,
        log: list[str],
        *,
        cost: int = 0,
        same: Any = None,
        at_once: int = 1,
        after: Callable[[], object] = int,
    ) -> None:
        self.name = name
        self.cost = cost
        self.same = same
        self._left = count
        self._log = log
        self._running = 0
        self._at_once = at_once
        self._after = after
        self._lock = threading.Lock()

    def take(self) -> Callable[[], None] | None:
        if not self._left or self._running >= self._at_once:
            return None
        self._left -= 1
        self._running += 1
        return self._step

    def _step(self) -> None:
        self._log.append(self.name)
        time.sleep(SLICE)  # others get the interpreter meanwhile, and no processor is used but by the clock
        _clock.used += SLICE
        self._after()
        with self._lock:
            self._running -= 1

    def result(self) -> str:
        return self.name


class Pause:
    """Lets the thread stand still that adds to the log for the ``at``-th time, so that other work comes meanwhile."""

    def __init__(self, log: list[str], at: int) -> None:
        self._log, self._at = log, at
        self.stands, self.go_on = threading.Event(), threading.Event()

    def reached(self) -> None:
        """A slice of a work that may stand still."""
        if len(self._log) == self._at:
            self.stands.set()
            self.go_on.wait()


class Gate:
    """A thread that is taken until it is let go."""

    def __init__(self, threads: FairThreads, count: int = 1) -> None:
        self._free, self.taken = threading.Event(), []
        for _ in range(count):
            self.taken.append(asyncio.create_task(threads.run(object(), UncutWork(self._free.wait))))

    async def open(self) -> None:
        self._free.set()
        await asyncio.gather(*self.taken)


@pytest.fixture
def one() -> Any:
    threads = FairThreads(1, "test")
    yield threads
    threads.close()


async def started(*works: Any) -> list[asyncio.Task[Any]]:
    """The works under way: all of them in their queues."""
    tasks = [asyncio.create_task(work) for work in works]
    await asyncio.sleep(0)
    return tasks


async def test_connections_take_turns(one: FairThreads) -> None:
    log: list[str] = []
    gate = Gate(one)
    tasks = await started(
        *(one.run("greedy", Steps(f"greedy {number}", 4, log)) for number in range(3)),
        one.run("modest", Steps("modest", 2, log)),
    )
    await gate.open()
    assert await asyncio.gather(*tasks) == ["greedy 0", "greedy 1", "greedy 2", "modest"]
    # Slice by slice; and of the same connection one work after another.
    assert log[:5] == ["greedy 0", "modest", "greedy 0", "modest", "greedy 0"]
    assert log[5:] == ["greedy 0", *["greedy 1"] * 4, *["greedy 2"] * 4]


async def test_what_is_cheap_goes_before_what_is_dear_and_both_go_on(one: FairThreads) -> None:
    log: list[str] = []
    gate = Gate(one)
    dear = [one.run(number, Steps("dear", 30, log, cost=100_000)) for number in range(4)]
    tasks = await started(*dear, one.run("other", Steps("cheap", 30, log, cost=10)))
    await gate.open()
    await asyncio.gather(*tasks)
    last = len(log) - log[::-1].index("cheap")
    assert log.index("dear") < last <= 33  # 30 cheap ones, and of each 64 the dear have one


async def test_what_turns_out_to_be_dear_comes_behind(one: FairThreads) -> None:
    log: list[str] = []
    pause = Pause(log, at=150)
    (liar,) = await started(one.run("liar", Steps("liar", 500, log, after=pause.reached)))
    await eventually(pause.stands.is_set)
    (other,) = await started(one.run("other", Steps("cheap", 60, log)))
    pause.go_on.set()
    await asyncio.gather(liar, other)
    last = len(log) - log[::-1].index("cheap")
    assert log[150:last].count("liar") < 30


async def test_what_comes_new_does_not_wait_for_many_that_have_gone_on_a_while(one: FairThreads) -> None:
    """Though it may cost as much as each of them."""
    log: list[str] = []
    pause = Pause(log, at=250)
    gate = Gate(one)
    works = (Steps(name, 100, log, cost=1_500, after=pause.reached) for name in "abcdefghij")
    others = await started(*(one.run(work.name, work) for work in works))
    await gate.open()
    await eventually(pause.stands.is_set)
    (new,) = await started(one.run("new", Steps("new", 15, log, cost=1_500)))
    pause.go_on.set()
    await asyncio.gather(new, *others)
    last = len(log) - log[::-1].index("new")
    beside = last - 250 - 15
    assert 0 < beside < 30, "some go on beside it, and not ten slices for each of its own"


async def test_the_same_work_is_done_once_for_all(one: FairThreads) -> None:
    log: list[str] = []
    gate = Gate(one)
    tasks = await started(*(one.run(key, Steps(key, 3, log, same="x")) for key in "abc"))
    await gate.open()
    assert await asyncio.gather(*tasks) == ["a"] * 3
    assert log == ["a"] * 3
    # It is over then: who asks now has it done anew.
    assert await one.run("d", Steps("d", 1, log, same="x")) == "d"


async def test_the_same_work_goes_on_while_anybody_waits_for_it(one: FairThreads) -> None:
    log: list[str] = []
    gate = Gate(one)
    first, second, third = await started(*(one.run(key, Steps(key, 3, log, same="x")) for key in "abc"))
    first.cancel()
    second.cancel()
    await gate.open()
    assert await third == "a"
    assert first.cancelled()
    assert second.cancelled()


async def test_what_nobody_waits_for_ends_between_slices(one: FairThreads) -> None:
    log: list[str] = []
    waiting, running = await started(
        one.run("b", Steps("b", 10_000, log)), one.run("a", Steps("a", 10_000, log))
    )
    await eventually(lambda: {"a", "b"} <= set(log))
    running.cancel()
    waiting.cancel()
    for task in (running, waiting):
        with pytest.raises(asyncio.CancelledError):
            await task
    at = len(log)
    await eventually(lambda: not one._active)
    assert len(log) <= at + 1
    assert one.waiting == 0


async def test_slices_of_one_work_run_in_all_threads() -> None:
    class Meeting(Steps):
        """Slices that end when as many run as may at a time."""

        def _step(self) -> None:
            met.wait(30)

    met = threading.Barrier(2)
    threads = FairThreads(2, "test")
    try:
        assert await threads.run("a", Meeting("a", 2, [], at_once=2)) == "a"
    finally:
        threads.close()


async def test_no_thread_is_woken_for_work_without_a_further_slice() -> None:
    log: list[str] = []
    threads = FairThreads(2, "test")
    try:
        await threads.run("a", Steps("b", 20, log))
        assert log == ["b"] * 20
        assert len(threads._threads._threads) == 1
        free = threading.Event()
        held, other = await started(
            threads.run("a", UncutWork(free.wait)), threads.run("a", Steps("b", 1, log))
        )
        assert await other == "b", "another work of the connection is another thread's"
        free.set()
        await held
    finally:
        threads.close()


async def test_an_error_is_for_all_who_wait(one: FairThreads) -> None:
    def fail() -> None:
        raise LookupError("no")

    gate = Gate(one)
    tasks = await started(*(one.run(key, UncutWork(fail, same="x")) for key in "ab"))
    await gate.open()
    for task in tasks:
        with pytest.raises(LookupError, match="no"):
            await task
    assert await one.run("a", UncutWork(lambda: 7)) == 7


async def test_who_has_used_up_its_allowance_waits_and_the_others_do_not(clock: SimpleNamespace) -> None:
    clock.now = 1000.0
    threads = FairThreads(1, "test", Allowance(rate=0.05, most=20.5 * SLICE))
    log: list[str] = []
    try:
        greedy = await started(*(threads.run("greedy", Steps(f"{number}", 10, log)) for number in range(4)))
        await eventually(lambda: len(log) >= 21 and not threads._active)
        assert await threads.run("modest", Steps("modest", 10, log)) == "modest"
        assert log[21:] == ["modest"] * 10
        assert await greedy[1] == "1"
        await eventually(lambda: not threads._active)  # no thread is there to see the time
        clock.now += 0.2
        assert await asyncio.wait_for(greedy[2], 60) == "2"  # it goes on by itself once there is some again
        assert log[31:] == ["2"] * 9 + ["3"] * (len(log) - 40)
        assert len(log) <= 41
        greedy[3].cancel()
        with pytest.raises(asyncio.CancelledError):
            await greedy[3]
    finally:
        threads.close()


async def test_what_is_shown_of_it(one: FairThreads) -> None:
    log: list[str] = []
    gate = Gate(one)
    await eventually(lambda: one.waits.count == 1)
    tasks = await started(*(one.run(key, Steps(key, 20, log)) for key in "abc"))
    assert one.waiting == 3
    await gate.open()
    await asyncio.gather(*tasks)
    assert one.waiting == 0
    assert one.waits.count == 4
    assert one.seconds == pytest.approx(60 * SLICE)


async def test_closed_threads_take_nothing_and_keep_nobody_waiting(one: FairThreads) -> None:
    gate = Gate(one)
    await eventually(lambda: one.waits.count == 1)
    (waiting,) = await started(one.run("a", UncutWork(partial(int, "1"))))
    one.close()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(asyncio.CancelledError):
        await gate.open()
    await eventually(lambda: not one._active)
    with pytest.raises(RuntimeError, match="ended"):
        await one.run("a", UncutWork(partial(int, "1")))
