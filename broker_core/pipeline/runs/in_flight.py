"""Equal questions under way share one run.

There are two rules, and the key of a question says which one holds. If it has no version, a caller that comes while a
run is under way gets the answer of the next run, which begins after its question (:class:`NextRuns`): so nobody gets a
state from before its question. If the key has the version that was read before the work, a run with that key answers
all callers with it, whenever they came (:class:`VersionedRuns`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

from broker_core.errors import ListingFailed

__all__ = ["NextRuns", "VersionedRuns"]

P = TypeVar("P")
T = TypeVar("T")


class _SharedRun(Generic[P, T]):
    """One run for several callers: the parts of all of them, and their size."""

    __slots__ = ("parts", "size", "task")

    def __init__(self) -> None:
        self.parts: list[P] = []
        self.size = 0
        self.task: asyncio.Task[T] | None = None


class NextRuns(Generic[P, T]):
    """Runs by key, one at a time for each. For one event loop."""

    def __init__(self) -> None:
        self._running: dict[Hashable, _SharedRun[P, T]] = {}
        self._next: dict[Hashable, _SharedRun[P, T]] = {}

    def waiting(self, key: Hashable) -> int:
        """The size of the next run; 0 if no caller waits for one."""
        run = self._next.get(key)
        return 0 if run is None else run.size

    async def ask(
        self, key: Hashable, question: Callable[[Sequence[P]], Awaitable[T]], part: P, size: int = 1
    ) -> tuple[T, int]:
        """Ask for the parts of all callers of one run; returns the answer, and the size of the parts before ``part``.

        Raises what the question raises.
        """
        run = self._next.get(key)
        if run is None:
            before = self._running.get(key)
            run = _SharedRun()
            (self._running if before is None else self._next)[key] = run
            run.task = asyncio.get_running_loop().create_task(self._result_of_run(key, run, before, question))
            run.task.add_done_callback(_looked_at)
        start = run.size
        run.parts.append(part)
        run.size += size
        assert run.task is not None
        # Shielded: a caller that is cancelled must not end the run of the others.
        return await asyncio.shield(run.task), start

    async def stop(self) -> None:
        """Give up all runs; returns once they have ended. Callers that still wait for one are cancelled."""
        runs = (*self._next.values(), *self._running.values())
        tasks = [run.task for run in runs if run.task is not None]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _result_of_run(
        self,
        key: Hashable,
        run: _SharedRun[P, T],
        before: _SharedRun[P, T] | None,
        question: Callable[[Sequence[P]], Awaitable[T]],
    ) -> T:
        if before is not None:
            assert before.task is not None
            await asyncio.wait([before.task])
            del self._next[key]
            self._running[key] = run
        try:
            return await question(run.parts)
        finally:
            del self._running[key]


def _looked_at(task: asyncio.Task[Any]) -> None:
    """Read the exception of a run whose callers were all cancelled: asyncio would log it as never retrieved."""
    if not task.cancelled():
        task.exception()


class VersionedRuns:
    """Runs by key. Each belongs to its first caller: it uses that caller's memory and time. For one event loop."""

    def __init__(self) -> None:
        self._running: dict[Hashable, asyncio.Future[bool]] = {}

    def __contains__(self, key: Hashable) -> bool:
        """Whether a run is under way."""
        return key in self._running

    def begin(self, key: Hashable) -> None:
        """Note that the caller runs it, until :meth:`end` or :meth:`fail`."""
        self._running[key] = asyncio.get_running_loop().create_future()

    def end(self, key: Hashable, *, answered: bool) -> None:
        """End the run; it is not ``answered`` if the first caller was cancelled, or had no memory."""
        self._running.pop(key).set_result(answered)

    def fail(self, key: Hashable, failure: ListingFailed) -> None:
        """End the run with a failure, which any other run with this key would have."""
        future = self._running.pop(key)
        future.set_exception(failure)
        future.exception()  # nobody may wait for it

    async def wait(self, key: Hashable, seconds: float) -> bool:
        """Whether the run under way is answered, once it has ended; true after ``seconds``, if it has not.

        Raises a copy of the failure of a run that fails.
        """
        future = self._running[key]
        # Not by wait_for(), which cancels the future that others wait for too.
        await asyncio.wait([future], timeout=seconds)
        if not future.done():
            return True
        try:
            return future.result()
        except ListingFailed as failure:
            raise failure.copy() from failure.__cause__
