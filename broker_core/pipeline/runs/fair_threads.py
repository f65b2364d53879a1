"""Few threads for many connections: work in slices and in turns, cheap work before dear work.

1. Each work has a level, by what it may cost and by what it has taken so far. A level has four times the share of the
   next dearer one while both have something to do, so cheap work does not wait for dear work, and dear work goes on.
   Most work that may be dear is over soon: so it begins a level below its possible cost, and stays there for a moment.
2. Within a level the connections take turns, one slice each. The works of one connection come one after another.
3. A connection that has used up its allowance waits until it has some again; the others go on.

Equal works (:attr:`SlicedWork.same`) are done once, for all callers that ask for them meanwhile.
"""

from __future__ import annotations

import asyncio
import threading
import time
from bisect import bisect_right
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeVar

from broker_core.concurrency import pass_lock_on
from broker_core.metrics import Buckets

__all__ = ["Allowance", "FairThreads", "SlicedWork", "UncutWork"]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

#: The ends of levels: millions of bytes times instructions that a work may take, and seconds that it took.
_COSTS: Final = (1_000, 4_000, 16_000)
_SECONDS: Final = (0.02, 0.1, 0.4, 1.6)
_SHARE: Final = 4
_WAIT_BOUNDS: Final = (0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 28.0)
#: Connections whose allowance is remembered, until a look drops the ones that have all of it again.
_MANY_BALANCES: Final = 1000


class SlicedWork(Protocol[T_co]):
    """Work in slices. Its methods are called by one thread at a time, its slices by several."""

    @property
    def cost(self) -> int:
        """The most that it may take, in millions of bytes times instructions; 0 for work that is not judged."""

    @property
    def same(self) -> Hashable:
        """A key that equal works share; ``None``: the work is shared with no other."""

    def take(self) -> Callable[[], None] | None:
        """The next slice; ``None`` once all is done, and while there is none until the slices under way have ended."""

    def result(self) -> T_co:
        """The result, once all is done."""


class UncutWork(Generic[T]):
    """Work that cannot be cut: one call."""

    cost: Final = 0

    def __init__(self, function: Callable[[], T], same: Hashable = None) -> None:
        self._function: Callable[[], T] | None = function
        self._results: list[T] = []
        self.same = same

    def take(self) -> Callable[[], None] | None:
        function, self._function = self._function, None
        return None if function is None else partial(self._call, function)

    def _call(self, function: Callable[[], T]) -> None:
        self._results.append(function())

    def result(self) -> T:
        return self._results.pop()


@dataclass(frozen=True, slots=True)
class Allowance:
    """Seconds of the processor that a connection has: ``rate`` each second, ``most`` saved up."""

    rate: float
    most: float


class _Job:
    """A piece of work, and the callers that wait for it."""

    __slots__ = (
        "arrived",
        "error",
        "is_taken",
        "keys",
        "level",
        "parked",
        "ready",
        "result",
        "running",
        "seconds",
        "waiting",
        "work",
    )

    def __init__(self, work: SlicedWork[Any]) -> None:
        self.work = work
        self.waiting: dict[asyncio.Future[Any], Hashable] = {}
        self.keys: set[Hashable] = set()  # connections in whose queues it stands
        self.arrived: float | None = time.monotonic()  # until its first slice
        self.running = 0  # slices
        self.ready: Callable[[], None] | None = None  # a slice that was taken and not begun
        self.is_taken = False  # as far as is known there is no further slice
        self.parked = False  # there is no slice until one that runs has ended
        self.seconds = 0.0
        self.result: Any = None
        self.error: BaseException | None = None
        self.level = self.judged()

    def judged(self) -> int:
        """The level to which it belongs now."""
        taken = bisect_right(_SECONDS, self.seconds)
        return max(bisect_right(_COSTS, self.work.cost) + (taken > 0), taken)

    def take(self) -> Callable[[], None] | None:
        work, self.ready = self.ready, None
        return self.work.take() if work is None else work


class _Level:
    """The jobs of each connection; ``used`` is the time that this level had, weighed by its share."""

    __slots__ = ("queues", "used")

    def __init__(self) -> None:
        self.queues: OrderedDict[Hashable, deque[_Job]] = OrderedDict()
        self.used = 0.0


class FairThreads:
    """At most ``size`` threads; :meth:`run` and :meth:`close` are for the thread of one event loop.

    After each slice a thread rests, ``rest`` times as long as the slice took: for work that holds the interpreter's
    lock, so that the event loop, which gives it away with every call of the system, need not wait for it each time.
    ``waits`` are the seconds from a work's arrival to its first slice, ``seconds`` the processor's time of all slices.
    """

    def __init__(
        self, size: int, name: str, allowance: Allowance | None = None, *, rest: float = 0.0
    ) -> None:
        self.size = size
        self.waits = Buckets(_WAIT_BOUNDS)
        self.seconds = 0.0
        self._allowance = allowance
        self._rest = rest
        self._balances: dict[Hashable, tuple[float, float]] = {}  # seconds left, and when
        self._threads = ThreadPoolExecutor(size, thread_name_prefix=name)
        self._lock = threading.Lock()  # held for some microseconds, by the event loop too
        self._levels = [_Level() for _ in range(len(_SECONDS) + 1)]
        self._jobs: set[_Job] = set()  # that a caller waits for
        self._same: dict[Hashable, _Job] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._active = 0  # threads
        self._not_begun = 0
        self._comes_back = False
        self._closed = False

    @property
    def waiting(self) -> int:
        """Work that has not begun."""
        return self._not_begun

    async def run(self, key: Hashable, work: SlicedWork[T]) -> T:
        """Do ``work`` in the turns of the connection ``key``. Cancelled, it is dropped after the slice that runs."""
        if self._closed:
            raise RuntimeError("the threads have ended")
        loop = self._loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        with self._lock:
            job = None if work.same is None else self._same.get(work.same)
            if job is None:
                job = _Job(work)
                self._jobs.add(job)
                self._not_begun += 1
                if work.same is not None:
                    self._same[work.same] = job
            job.waiting[future] = key
            if not job.parked:
                self._queue(job, key)
            self._start()
        try:
            return await future
        finally:
            with self._lock:
                if job.waiting.pop(future, None) is not None:
                    self._leave(job, key)
            del job

    def close(self) -> None:
        """End the threads once their running slices are done, and cancel the waiting callers."""
        self._closed = True
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            futures = [future for job in self._jobs for future in job.waiting]
            for job in list(self._jobs):
                job.waiting.clear()
                self._forget(job)
        for future in futures:
            future.cancel()

    # -- queues; all of it under the lock

    def _queue(self, job: _Job, key: Hashable) -> None:
        if key in job.keys:
            return
        job.keys.add(key)
        level = self._levels[job.level]
        if not level.queues:
            # It saves nothing up while it has nothing to do.
            busy = [other.used for other in self._levels if other.queues]
            level.used = max(level.used, min(busy, default=0.0))
        queue = level.queues.get(key)
        if queue is None:
            queue = level.queues[key] = deque()
        queue.append(job)

    def _unqueue(self, job: _Job, key: Hashable) -> None:
        if key in job.keys:
            job.keys.discard(key)
            queues = self._levels[job.level].queues
            queues[key].remove(job)
            if not queues[key]:
                del queues[key]

    def _park(self, job: _Job) -> None:
        job.parked = True
        for key in list(job.keys):
            self._unqueue(job, key)

    def _leave(self, job: _Job, key: Hashable) -> None:
        """Note that a caller no longer waits."""
        if key not in job.waiting.values():
            self._unqueue(job, key)
        if not job.waiting:
            self._forget(job)

    def _forget(self, job: _Job) -> None:
        """Forget a job that is done, or that no caller waits for."""
        self._park(job)
        self._jobs.discard(job)
        if job.arrived is not None:
            job.arrived = None
            self._not_begun -= 1
        same = job.work.same
        if same is not None and self._same.get(same) is job:
            del self._same[same]

    def _start(self) -> None:
        """Start one more thread, if there is work for it."""
        if self._active < self.size and not self._closed and self._has_slice():
            self._threads.submit(self._work)
            self._active += 1

    def _has_slice(self) -> bool:
        """Whether a thread might find a slice."""
        queues = (queue for level in self._levels for queue in level.queues.values())
        return any(not queue[0].is_taken or len(queue) > 1 for queue in queues)

    def _next(self) -> tuple[_Job, Hashable, Callable[[], None]] | None:
        """The next slice, and the connection whose turn it is."""
        levels = sorted((level for level in self._levels if level.queues), key=lambda level: level.used)
        for level in levels:
            for key in list(level.queues):
                while self._has_allowance(key) and (queue := level.queues.get(key)) is not None:
                    job = queue[0]
                    work = job.take()
                    if work is None:
                        self._park(job)
                        continue
                    level.queues.move_to_end(key)
                    return job, key, work
        return None

    # -- allowances

    def _balance(self, key: Hashable, now: float) -> float:
        assert self._allowance is not None
        left, at = self._balances.get(key, (self._allowance.most, now))
        return min(self._allowance.most, left + (now - at) * self._allowance.rate)

    def _has_allowance(self, key: Hashable) -> bool:
        return self._allowance is None or self._balance(key, time.monotonic()) > 0

    def _charge(self, key: Hashable, seconds: float) -> None:
        if self._allowance is None:
            return
        now = time.monotonic()
        if len(self._balances) > _MANY_BALANCES:
            full = [one for one in self._balances if self._balance(one, now) >= self._allowance.most]
            for one in full:
                del self._balances[one]
        self._balances[key] = (self._balance(key, now) - seconds, now)

    def _come_back(self) -> None:
        """Go on when the first connection has an allowance again: all work is of connections without one."""
        if self._allowance is None or self._loop is None:
            return
        keys = {key for level in self._levels for key in level.queues}
        if keys and not self._comes_back:
            now = time.monotonic()
            delay = -max(self._balance(key, now) for key in keys) / self._allowance.rate
            with suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._loop.call_later, max(delay, 0.001), self._start_again)
                self._comes_back = True

    def _start_again(self) -> None:
        with self._lock:
            self._comes_back = False
            self._start()

    # -- threads

    def _work(self) -> None:
        while True:
            with self._lock:
                following = self._next()
                if following is None:
                    self._active -= 1
                    self._come_back()
                    return
                job, key, work = following
                job.running += 1
                if job.arrived is not None:
                    self.waits.observe(time.monotonic() - job.arrived)
                    job.arrived = None
                    self._not_begun -= 1
                if self._active < self.size and job.ready is None:
                    # Else another thread would be woken to find out that there is none, and be in this one's way.
                    job.ready = job.work.take()
                    job.is_taken = job.ready is None
                self._start()
            started = time.thread_time()
            try:
                work()
            except BaseException as error:  # noqa: BLE001 - whoever waits for it has it
                job.error = error
            del work, following  # a thread keeps nothing of it alive
            seconds = time.thread_time() - started
            with self._lock:
                done = self._ended(job, key, seconds)
            if done:
                self._deliver(job)
            del job, key
            pass_lock_on(self._rest * seconds)

    def _ended(self, job: _Job, key: Hashable, seconds: float) -> bool:
        """Account for a slice, and put the job back into its queues; returns whether all of it is done."""
        job.running -= 1
        job.is_taken = False
        job.seconds += seconds
        self.seconds += seconds
        self._levels[job.level].used += seconds * _SHARE**job.level
        self._charge(key, seconds)
        if job.error is not None:
            self._park(job)
        if not job.waiting:
            return False
        if not job.running:
            if job.ready is None and job.error is None:
                job.ready = job.work.take()
            if job.ready is None or job.error is not None:
                return True
        if job.error is None:
            self._requeue(job)
        return False

    def _requeue(self, job: _Job) -> None:
        level = job.judged()
        if level != job.level:
            self._park(job)
            job.level = level
        job.parked = False
        for key in job.waiting.values():
            self._queue(job, key)

    def _deliver(self, job: _Job) -> None:
        if job.error is None:
            try:
                job.result = job.work.result()
            except BaseException as error:  # noqa: BLE001 - whoever waits for it has it
                job.error = error
        with self._lock:
            self._forget(job)
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop is closed: no caller waits
            self._loop.call_soon_threadsafe(_hand_over, job)


def _hand_over(job: _Job) -> None:
    """Give the result to all waiting callers; on the event loop."""
    while job.waiting:
        future, _ = job.waiting.popitem()
        if future.done():
            continue
        if job.error is None:
            future.set_result(job.result)
        else:
            future.set_exception(job.error)
