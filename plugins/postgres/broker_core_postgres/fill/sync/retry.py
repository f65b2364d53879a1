"""Retries with exponential backoff."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from broker_core_postgres.fill.filling_failed import FillingFailed

__all__ = ["Retry", "TransientFailure"]

T = TypeVar("T")


class TransientFailure(FillingFailed):
    """A failure that may pass. ``after``: the seconds that the other side asked to wait, if it did."""

    def __init__(self, message: str, *, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


@dataclass(frozen=True, slots=True)
class Retry:
    """``tries`` in all, with waits of about ``first`` seconds, doubled each time up to ``most``.

    Half of each wait is random, so that callers that failed together do not retry together.
    """

    tries: int = 5
    first: float = 0.5
    most: float = 20.0

    async def run(self, call: Callable[[], Awaitable[T]]) -> T:
        """The result of ``call``. A :exc:`TransientFailure` is raised after the last try only, other errors at once."""
        for number in range(1, self.tries):
            try:
                return await call()
            except TransientFailure as failure:
                wait = self.wait(number, failure.after)
            await asyncio.sleep(wait)
        return await call()

    def wait(self, number: int, after: float | None = None) -> float:
        """Seconds to wait after the try ``number``, which counts from 1."""
        longest = min(self.most, self.first * 2.0 ** (number - 1))
        drawn = longest * (0.5 + random.random() / 2)  # noqa: S311 - spreads callers, protects nothing
        return max(drawn, min(after, self.most)) if after is not None else drawn
