"""Equal questions under way: asked once for all waiting callers.

No caller gets an answer that was begun before it asked: a topic may have been created in between, and a producer sends
by the number of partitions in its answer. So a question that comes while an equal one is under way waits for the next
run, with all others that come meanwhile. The next run begins when the former has ended, or has taken :data:`PATIENCE`:
a question that hangs does not hold up its equals.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Generic, TypeAlias, TypeVar

__all__ = ["PATIENCE", "Ask", "SharedQuestions"]

P = TypeVar("P")
T = TypeVar("T")

#: Seconds after which a question is asked beside an equal one that has no answer yet.
PATIENCE: Final = 1.0

#: Asks with the parts of one caller, for so many callers with an equal question; each of them gets its error.
Ask: TypeAlias = Callable[[P, int], Awaitable[T]]


@dataclass(slots=True, eq=False)
class _Next(Generic[P, T]):
    """The run that has not begun, and its waiters in order."""

    ask: Ask[P, T]
    timer: asyncio.Handle
    waiting: dict[asyncio.Future[T], P] = field(default_factory=dict)
    task: asyncio.Task[None] | None = None  # once it has begun


@dataclass(slots=True, eq=False)
class _SharedQuestion(Generic[P, T]):
    """The runs of one question."""

    running: int = 0
    begun_at: float = 0.0  # loop time of the newest run
    next: _Next[P, T] | None = None


class SharedQuestions(Generic[P, T]):
    """Runs by key, for one event loop. The key holds all that an answer depends on, the principal too.

    ``together``: the first run begins in the next turn of the loop, with all callers of this turn; without it at once,
    for the first caller alone, which takes no task.
    """

    def __init__(self, *, together: bool = False) -> None:
        self._together = together
        self._questions: dict[Hashable, _SharedQuestion[P, T]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        """The number of different questions under way."""
        return len(self._questions)

    async def ended(self) -> None:
        """Wait for the end of all runs."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def ask(self, key: Hashable, ask: Ask[P, T], asker: P) -> T:
        """The result of ``ask`` in a run that begins now or later.

        A cancelled asker ends the run only if nobody else waits for it.
        """
        question = self._questions.get(key)
        if question is not None:
            return await self._join(key, question, ask, asker)
        question = self._questions[key] = _SharedQuestion()
        if self._together:
            return await self._join(key, question, ask, asker)
        self._begins(question)
        try:
            return await ask(asker, 1)  # nobody can join it any more, so it needs no task
        finally:
            self._ended(key, question)

    async def _join(self, key: Hashable, question: _SharedQuestion[P, T], ask: Ask[P, T], asker: P) -> T:
        loop = asyncio.get_running_loop()
        run = question.next
        if run is None:
            # The first run by no timer: it begins even if a timer of NaN has put the loop's timers out of order.
            timer = (
                loop.call_at(question.begun_at + PATIENCE, self._begin_next, key, question)
                if question.running
                else loop.call_soon(self._begin_next, key, question)
            )
            run = question.next = _Next(ask, timer)
        future: asyncio.Future[T] = loop.create_future()
        run.waiting[future] = asker
        try:
            return await future
        finally:
            del run.waiting[future]
            if not run.waiting:
                self._abandon(key, question, run)

    def _abandon(self, key: Hashable, question: _SharedQuestion[P, T], run: _Next[P, T]) -> None:
        """End a run that nobody waits for (any more)."""
        if run.task is not None:
            run.task.cancel()  # no effect if it has ended
        elif question.next is run:
            run.timer.cancel()
            question.next = None
            if not question.running:
                del self._questions[key]

    def _begin_next(self, key: Hashable, question: _SharedQuestion[P, T]) -> None:
        run, question.next = question.next, None
        assert run is not None
        run.timer.cancel()
        self._begins(question)
        run.task = asyncio.get_running_loop().create_task(self._run(run))
        self._tasks.add(run.task)
        run.task.add_done_callback(partial(self._done, key, question))

    def _done(self, key: Hashable, question: _SharedQuestion[P, T], task: asyncio.Task[None]) -> None:
        # Not in the task itself: one that is cancelled before its first step runs nothing.
        self._tasks.discard(task)
        self._ended(key, question)

    async def _run(self, run: _Next[P, T]) -> None:
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

    def _begins(self, question: _SharedQuestion[P, T]) -> None:
        question.running += 1
        question.begun_at = asyncio.get_running_loop().time()

    def _ended(self, key: Hashable, question: _SharedQuestion[P, T]) -> None:
        question.running -= 1
        if question.next is not None:
            self._begin_next(key, question)
        elif not question.running:
            del self._questions[key]
