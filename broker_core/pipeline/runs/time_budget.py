"""The time budget of an answer: work that exceeds it fails with an error that says so."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Final

from broker_core.errors import Cause, ListingFailed, TooManyRequests

__all__ = ["TimeBudget"]

_REASON: Final = "time"


class TimeBudget:
    """The time for each question: ``seconds``; ``too_late`` makes the error for a question that takes longer."""

    __slots__ = ("_too_late", "seconds")

    def __init__(self, seconds: float, too_late: Callable[[float], ListingFailed]) -> None:
        self.seconds = seconds
        self._too_late = too_late

    @classmethod
    def of_listings(cls, seconds: float) -> TimeBudget:
        """The budget of listings, which clients ask for again."""
        return cls(
            seconds,
            lambda limit: TooManyRequests(
                f"The listing took longer than {limit:g} s", reason=_REASON, cause=Cause.TIME
            ),
        )

    @classmethod
    def of_lookups(cls, seconds: float) -> TimeBudget:
        """The budget of lookups of one topic."""
        return cls(
            seconds,
            lambda limit: ListingFailed(
                f"The lookup took longer than {limit:g} s", reason=_REASON, cause=Cause.TIME
            ),
        )

    def deadline(self) -> float:
        """The time by which a question that begins now must be answered, on the clock of the running event loop."""
        return asyncio.get_running_loop().time() + self.seconds

    def until(self, deadline: float) -> _Until:
        """``async with budget.until(deadline):`` ends the block at that time, with the error."""
        return _Until(asyncio.timeout_at(deadline), self)

    def too_late(self) -> ListingFailed:
        """The error of a question that took longer."""
        return self._too_late(self.seconds)


class _Until:
    """A block that ends in time. A :exc:`TimeoutError` raised inside passes unchanged."""

    __slots__ = ("_budget", "_timeout")

    def __init__(self, timeout: asyncio.Timeout, budget: TimeBudget) -> None:
        self._timeout = timeout
        self._budget = budget

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            await self._timeout.__aexit__(kind, error, traceback)
        except TimeoutError:
            raise self._budget.too_late() from None
