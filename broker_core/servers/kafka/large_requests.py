"""Large requests of Kafka clients take turns, and many elements are handled in slices.

A request of 2 MB may name 240,000 topics: seconds of work, and a hundred times the memory of its bytes. So a few large
requests are handled at a time, each connection has one at most, and the addresses of clients take turns. Work beside
the event loop is done by two threads, one of them for the largest requests: with more, the loop would wait for the
interpreter's lock after each of them, and requests of clients that leave at once would fill the threads of others.
Between two slices on the loop everybody else has a turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import Any, Final, TypeVar

from broker_core.access import Asker
from broker_core.concurrency import FairPlaces, loop_turn
from broker_core.wire.kafka import Fields

__all__ = ["LARGE", "SLICE", "LargeRequests", "in_slices", "let_go"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

#: Bytes of a request that is read and answered on the event loop: with some hundred elements, a few milliseconds.
LARGE: Final = 2 * 1024
#: Sizes of requests in bytes, each with how many up to it are handled at a time: with all they name, some 100 MB.
_AT_ONCE: Final = ((16 * 1024, 64), (128 * 1024, 8))
#: Elements that are freed at a time.
_FREED: Final = 1_000
#: Elements between two looks at how long this turn of the event loop has taken.
SLICE: Final = 25


class LargeRequests:
    """The turns of one server; on one event loop."""

    def __init__(self) -> None:
        self._turns = [(size, FairPlaces(count)) for size, count in _AT_ONCE]
        self._alone = FairPlaces(1)
        self._thread = ThreadPoolExecutor(1, "kafka-requests")
        self._thread_of_huge = ThreadPoolExecutor(1, "kafka-huge")

    def turn(self, size: int, asker: Asker) -> AbstractAsyncContextManager[None]:
        """A block in which a request of ``size`` bytes may be read and handled; the hosts of askers take turns."""
        if size <= LARGE:
            return nullcontext()
        return next((turn for most, turn in self._turns if size <= most), self._alone).place(asker.host)

    async def beside(self, size: int, work: Callable[..., _Result], *arguments: Any) -> _Result:
        """The result of ``work``, done by a thread for requests of ``size`` bytes; not begun for a client that has
        left.
        """
        thread = self._thread if size <= _AT_ONCE[-1][0] else self._thread_of_huge
        return await asyncio.get_running_loop().run_in_executor(thread, partial(work, *arguments))

    def close(self) -> None:
        """Handle no more requests."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        self._thread_of_huge.shutdown(wait=False, cancel_futures=True)


def let_go(fields: Fields) -> None:
    """Empty the lists of a large answer a piece at a time: at once, that takes a tenth of a second.

    By a thread: others have the interpreter's lock in between.
    """
    for value in fields.values():
        if isinstance(value, list):
            while value:
                del value[-_FREED:]


async def in_slices(work: Callable[[_Item], _Result], items: Iterable[_Item]) -> list[_Result]:
    """The results of ``work`` for each item, in turns of the event loop that have time for it."""
    done: list[_Result] = []
    turn = loop_turn()
    for number, item in enumerate(items):
        if not number % SLICE:
            await turn.time()
        done.append(work(item))
    return done
