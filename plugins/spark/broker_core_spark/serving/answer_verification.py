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

from broker_core import TasksByKey
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
        self._apart = TasksByKey[PrecomputedAnswer](_AT_ONCE)
        #: The number of wrong answers so far.
        self.wrong = 0

    async def verify(
        self, question: CanonicalQuestion, answer: PrecomputedAnswer, pattern: TopicsPattern | None
    ) -> PrecomputedAnswer:
        """The verified answer: ``answer``, or that of an earlier question which was under way.

        Each look-up may have made an object of its own, and only one of them is verified. Raises
        :exc:`PassToNextLister` for a wrong one.
        """
        if not answer.is_verified:
            if answer.work <= _QUICK_BYTES and (
                pattern is None or answer.selection.matching_is_quick(pattern)
            ):
                self._look(question, answer, pattern)
            else:
                look = partial(asyncio.to_thread, self._look, question, answer, pattern)
                answer = await self._apart.result(question, look)
        if answer.fault is not None:
            raise PassToNextLister("wrong_answer", f"the generation's answer is wrong: {answer.fault}")
        return answer

    def _look(
        self, question: CanonicalQuestion, answer: PrecomputedAnswer, pattern: TopicsPattern | None
    ) -> PrecomputedAnswer:
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
        return answer

    async def close(self) -> None:
        """Cancel running verifications."""
        await self._apart.close()
