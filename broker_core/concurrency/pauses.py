"""Pauses: until something happens or their time is up, and longer and longer ones between attempts that fail."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable
from typing import Final

__all__ = ["backoff", "ended_within"]

#: Further doublings change nothing: the longest pause is reached long before.
_DOUBLINGS: Final = 30


async def ended_within(seconds: float | None, waiting: Awaitable[object]) -> bool:
    """Whether ``waiting`` ended within so many seconds (``None``: for ever); else it is cancelled."""
    try:
        async with asyncio.timeout(seconds):
            await waiting
    except TimeoutError:
        return False
    return True


def backoff(failures: int, first: float, longest: float) -> float:
    """Seconds before the next attempt after so many failures in a row: ``first`` after one, twice as many after each
    further one, ``longest`` at the most; shorter by up to half, so that those that failed together do not come back
    together.
    """
    pause: float = min(longest, first * 2 ** min(failures - 1, _DOUBLINGS))
    return pause * random.uniform(0.5, 1.0)  # noqa: S311  # only spreads attempts
