"""Equal lookups of one principal under way: asked once for all who wait.

No client gets an answer that was begun before it asked: a topic may have been made in between, and a producer sends by
the number of partitions that it is told. So a lookup that comes while an equal one is asked waits for the next one,
with all others that come meanwhile. The next one begins when the one before it has ended, or when that has taken
:data:`PATIENCE`: one lookup that hangs does not hold up its equals.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import Final, Generic, TypeAlias, TypeVar

from broker_core.access.asker import Asker

__all__ = ["PATIENCE", "Ask", "SharedLookups"]

T = TypeVar("T")

#: Seconds after which a lookup is asked beside an equal one that has no answer yet.
PATIENCE: Final = 1.0

#: Asks for one of the askers; the number says for how many. It raises nothing but a cancellation.
Ask: TypeAlias = Callable[[Asker, int], Awaitable[T]]


class _Next(Generic[T]):
    """The run that has not begun: who waits for it, first come first."""

    __slots__ = ("ask", "task", "timer", "waiting")

    def __init__(self, ask: Ask[T], timer: asyncio.TimerHandle) -> None:
        self.ask = ask
        self.timer = timer
        self.waiting: dict[asyncio.Future[T], Asker] = {}
        self.task: asyncio.Task[None] | None = None  # once it has begun


class _Question(Generic[T]):
    """What is under way of one question."""

    __slots__ = ("begun_at", "next", "running")

    def __init__(self) -> None:
        self.running = 0
        self.begun_at = 0.0  # loop time of the newest run
        self.next: _Next[T] | None = None


class SharedLookups(Generic[T]):
    """Runs by key, for one event loop. The key holds all that an answer depends on, the principal too."""

    def __init__(self) -> None:
        self._questions: dict[Hashable, _Question[T]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """How many different questions are under way."""
        return len(self._questions)

    async def ask(self, key: Hashable, ask: Ask[T], asker: Asker) -> T:
        """What ``ask`` gives, of a run that begins now or later.

        A cancelled asker ends the run only where nobody else waits for it.
        """
        question = self._questions.get(key)
        if question is not None:
            return await self._join(key, question, ask, asker)
        question = self._questions[key] = _Question()
        self._begins(question)
        try:
            return await ask(asker, 1)  # nobody can join it any more, so it needs no task
        finally:
            self._ended(key, question)

    async def _join(self, key: Hashable, question: _Question[T], ask: Ask[T], asker: Asker) -> T:
        loop = asyncio.get_running_loop()
        run = question.next
        if run is None:
            due = question.begun_at + PATIENCE
            run = question.next = _Next(ask, loop.call_at(due, self._begin_next, key, question))
        future: asyncio.Future[T] = loop.create_future()
        run.waiting[future] = asker
        try:
            return await future
        finally:
            del run.waiting[future]
            if not run.waiting:
                self._abandon(question, run)

    def _abandon(self, question: _Question[T], run: _Next[T]) -> None:
        """Nobody waits for the run (any more)."""
        if run.task is not None:
            run.task.cancel()  # nothing, where it has ended
        elif question.next is run:
            run.timer.cancel()
            question.next = None

    def _begin_next(self, key: Hashable, question: _Question[T]) -> None:
        run, question.next = question.next, None
        assert run is not None
        run.timer.cancel()
        self._begins(question)
        run.task = asyncio.get_running_loop().create_task(self._run(run))
        self._tasks.add(run.task)
        run.task.add_done_callback(partial(self._done, key, question))

    def _done(self, key: Hashable, question: _Question[T], task: asyncio.Task[None]) -> None:
        # Not in the task itself: one that is cancelled before its first step runs nothing.
        self._tasks.discard(task)
        self._ended(key, question)

    async def _run(self, run: _Next[T]) -> None:
        try:
            asker = next(iter(run.waiting.values()))
            answer = await run.ask(asker, len(run.waiting))
        except asyncio.CancelledError:
            for future in run.waiting:
                future.cancel()  # the event loop ends
            raise
        except Exception as error:  # noqa: BLE001  # it is raised where the askers wait
            for future in run.waiting:
                if not future.done():
                    future.set_exception(error)
        else:
            for future in run.waiting:
                if not future.done():
                    future.set_result(answer)

    def _begins(self, question: _Question[T]) -> None:
        question.running += 1
        question.begun_at = asyncio.get_running_loop().time()

    def _ended(self, key: Hashable, question: _Question[T]) -> None:
        question.running -= 1
        if question.next is not None:
            self._begin_next(key, question)
        elif not question.running:
            del self._questions[key]
