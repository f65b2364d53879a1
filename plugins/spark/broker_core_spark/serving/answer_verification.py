"""Verification of a generation's answers, by the broker's own engine, before each is first given.

A checksum identifies a file, but does not show that it is right: a faulty batch may have picked a wrong topic or hashed
other names. So the topics of an answer are matched and hashed once. The broker remembers that of the selection and does
neither again. A wrong answer passes its question to the next lister.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

import structlog

from broker_core.patterns import TopicsPattern
from broker_core_spark.format import CanonicalQuestion
from broker_core_spark.serving.opened.generation import PrecomputedAnswer
from broker_core_spark.serving.pass_to_next_lister import PassToNextLister

__all__ = ["AnswerVerifier"]

log = structlog.get_logger(__name__)

#: Bytes of names that are hashed on the event loop (some hundred microseconds).
_QUICK_BYTES: Final = 128 * 1024
#: Answers verified at a time.
_AT_ONCE: Final = 2


class AnswerVerifier:
    """Verifies the answers of one generation, for one event loop."""

    def __init__(self, generation: str) -> None:
        self._generation = generation
        self._under_way: dict[CanonicalQuestion, asyncio.Task[None]] = {}
        self._places = asyncio.Semaphore(_AT_ONCE)
        #: The number of wrong answers so far.
        self.wrong = 0

    async def verify(
        self, question: CanonicalQuestion, answer: PrecomputedAnswer, pattern: TopicsPattern | None
    ) -> None:
        """Return after ``answer`` is verified. Raises :exc:`PassToNextLister` for a wrong one."""
        if not answer.is_verified:
            if self._is_quick(answer, pattern):
                self._look(question, answer, pattern)
            else:
                task = self._under_way.get(question)
                if task is None:
                    task = asyncio.get_running_loop().create_task(self._apart(question, answer, pattern))
                    self._under_way[question] = task
                    task.add_done_callback(partial(self._ended, question))
                await asyncio.shield(task)  # the others wait on if this one goes away
        if answer.fault is not None:
            raise PassToNextLister("wrong_answer", f"the generation's answer is wrong: {answer.fault}")

    @staticmethod
    def _is_quick(answer: PrecomputedAnswer, pattern: TopicsPattern | None) -> bool:
        if answer.selection.fields_size > _QUICK_BYTES:
            return False
        return pattern is None or answer.selection.matching_is_quick(pattern)

    async def _apart(
        self, question: CanonicalQuestion, answer: PrecomputedAnswer, pattern: TopicsPattern | None
    ) -> None:
        async with self._places:
            await asyncio.to_thread(self._look, question, answer, pattern)

    def _look(
        self, question: CanonicalQuestion, answer: PrecomputedAnswer, pattern: TopicsPattern | None
    ) -> None:
        answer.verify(pattern)
        if answer.fault is not None:
            self.wrong += 1
            log.error(
                "a precomputed answer is wrong and its question passed on: build anew",
                generation=self._generation,
                namespace=question.namespace,
                pattern=question.selector.pattern,
                reason=answer.fault,
            )

    def _ended(self, question: CanonicalQuestion, task: asyncio.Task[None]) -> None:
        self._under_way.pop(question, None)
        if not task.cancelled():
            task.exception()  # marks the error as seen: perhaps nobody waited

    def close(self) -> None:
        """Cancel running verifications."""
        for task in self._under_way.values():
            task.cancel()
