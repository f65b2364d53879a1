"""Large requests of Kafka clients take turns, and many elements are handled in slices.

A request of 2 MB may name 240,000 topics: seconds of work, and a hundred times the memory of its bytes. So a few large
requests are handled at a time, in the order of their arrival; each connection has one at most. Between two slices of
one the event loop does what others wait for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Final, TypeVar

__all__ = ["LARGE", "SLICE", "LargeRequests", "in_slices"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

#: Bytes of a request that is read and answered on the event loop: a few hundred topics take some milliseconds.
LARGE: Final = 16 * 1024
#: Bytes from which on a request is handled alone.
_HUGE: Final = 128 * 1024
_LARGE_AT_ONCE: Final = 8
#: Elements that are handled in one turn of the event loop: some milliseconds.
SLICE: Final = 100


class LargeRequests:
    """The turns of one server; on one event loop."""

    def __init__(self) -> None:
        self._large = asyncio.Semaphore(_LARGE_AT_ONCE)
        self._huge = asyncio.Semaphore(1)

    def turn(self, size: int) -> AbstractAsyncContextManager[Any]:
        """Within it, a request of ``size`` bytes may be read and handled."""
        if size <= LARGE:
            return nullcontext()
        return self._large if size <= _HUGE else self._huge


async def in_slices(work: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
    """What ``work`` makes of each item, with a turn for the event loop after every :data:`SLICE` of them."""
    done: list[_Result] = []
    for number, item in enumerate(items, 1):
        done.append(work(item))
        if not number % SLICE:
            await asyncio.sleep(0)
    return done
