"""Trying again: how often, and how long to wait before."""

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
    """A failure that may be over soon. ``after``: the seconds that the other side asked us to wait, if it did."""

    def __init__(self, message: str, *, after: float | None = None) -> None:
        super().__init__(message)
        self.after = after


@dataclass(frozen=True, slots=True)
class Retry:
    """``tries`` in all; before the second one a wait of about ``first`` seconds, then twice that, up to ``most``.

    Half of each wait is drawn by lot, so that many callers that failed together do not come back together.
    """

    tries: int = 5
    first: float = 0.5
    most: float = 20.0

    async def run(self, call: Callable[[], Awaitable[T]]) -> T:
        """The result of ``call``; what it raises is raised, a :exc:`TransientFailure` only after the last try."""
        for number in range(1, self.tries):
            try:
                return await call()
            except TransientFailure as failure:
                wait = self.wait(number, failure.after)
            await asyncio.sleep(wait)
        return await call()

    def wait(self, number: int, after: float | None = None) -> float:
        """Seconds between the try ``number`` (from 1 on) and the next."""
        longest = min(self.most, self.first * 2.0 ** (number - 1))
        drawn = longest * (0.5 + random.random() / 2)  # noqa: S311 - spreads callers, protects nothing
        return max(drawn, min(after, self.most)) if after is not None else drawn
