"""The time budget of an answer. Work that exceeds it fails with an error that says so."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Final

from broker_core.errors import Cause, ListingFailed

__all__ = ["TimeBudget"]

_REASON: Final = "time"


class TimeBudget:
    """The time for each question, ``seconds``; after it comes ``failure``: its message is ``text`` with the seconds."""

    __slots__ = ("_failure", "_text", "seconds")

    def __init__(self, seconds: float, text: str, failure: type[ListingFailed]) -> None:
        self.seconds = seconds
        self._text = text
        self._failure = failure

    def deadline(self) -> float:
        """The time by which a question that begins now must be answered, on the clock of the running event loop."""
        return asyncio.get_running_loop().time() + self.seconds

    def until(self, deadline: float) -> _Until:
        """``async with budget.until(deadline):`` ends the block at that time, with the error."""
        return _Until(asyncio.timeout_at(deadline), self)

    def too_late(self) -> ListingFailed:
        """The error of a question that took longer."""
        return self._failure(f"{self._text} {self.seconds:g} s", reason=_REASON, cause=Cause.TIME)


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
