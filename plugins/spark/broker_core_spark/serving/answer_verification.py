"""Looking at what a generation claims before it goes out: once for each answer, by the broker's own engine.

That a file has its checksum says who wrote it, not that it is right: a faulty batch may have picked a topic that its
pattern does not match, or have hashed other names. So the topics of an answer are matched and hashed when it is first
given. The broker remembers that of the very selection, which is then handed over, and does neither again. Where
something is wrong the question is passed on: whoever is next knows the right answer.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

import structlog

from broker_core.patterns import TopicsPattern
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.serving.opened.generation import PrecomputedAnswer
from broker_core_spark.serving.pass_to_next_lister import PassToNextLister

__all__ = ["AnswerVerifier"]

log = structlog.get_logger(__name__)

#: So many bytes of names are hashed on the event loop (some hundred microseconds).
_QUICK_BYTES: Final = 128 * 1024
#: Answers that are looked at at a time.
_AT_ONCE: Final = 2


class AnswerVerifier:
    """Looks at the answers of one generation, for one event loop."""

    def __init__(self, generation: str) -> None:
        self._generation = generation
        self._under_way: dict[CanonicalQuestion, asyncio.Task[None]] = {}
        self._places = asyncio.Semaphore(_AT_ONCE)
        #: Answers that were found to be wrong.
        self.wrong = 0

    async def verify(
        self, question: CanonicalQuestion, answer: PrecomputedAnswer, pattern: TopicsPattern | None
    ) -> None:
        """Return when ``answer`` was looked at and is right, else raise :exc:`PassToNextLister`."""
        if not answer.is_verified:
            if self._is_quick(answer, pattern):
                self._look(question, answer, pattern)
            else:
                task = self._under_way.get(question)
                if task is None:
                    task = asyncio.get_running_loop().create_task(self._apart(question, answer, pattern))
                    self._under_way[question] = task
                    task.add_done_callback(partial(self._ended, question))
                await asyncio.shield(task)  # who goes away must not end it for the others
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
            task.exception()  # who waited has it; nobody may have waited to the end

    def close(self) -> None:
        """End what is under way."""
        for task in self._under_way.values():
            task.cancel()
