"""How large the answer to a question was the last time: what the next one like it asks heap permits for.

The sizes are PIP-442's (``TopicListSizeResultCache``, reference 3.3). Nobody knows the size of a first answer, so the
first request takes :data:`INITIAL_SIZE` and the others of the same question wait for its outcome: on a cold start one
request runs, and then the herd asks for what it really needs.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from broker_core.permits import PermitTimeout

__all__ = ["INITIAL_SIZE", "NAME_OVERHEAD", "SizeCache", "SizeHolder", "estimated_size"]

#: Bytes that an answer is taken to need before one like it was seen.
INITIAL_SIZE: Final = 10 * 1024

#: Bytes that each name counts besides its UTF-8 length.
NAME_OVERHEAD: Final = 32

_EVICTION_TRIES: Final = 8


def estimated_size(names: Sequence[str] | pa.Array[Any] | pa.ChunkedArray[Any]) -> int:
    """The bytes that a list of names counts: the UTF-8 length of each, and 32 more."""
    if isinstance(names, pa.Array | pa.ChunkedArray):
        total = pc.sum(pc.binary_length(names)).as_py()
        return (total or 0) + NAME_OVERHEAD * len(names)
    return sum(len(name.encode()) for name in names) + NAME_OVERHEAD * len(names)


class SizeHolder:
    """The size of one question's answer: unknown, being found out by the first request in flight, or known."""

    __slots__ = ("_first_in_flight", "_size", "_waiting")

    def __init__(self) -> None:
        self._size: int | None = None
        self._first_in_flight = False
        self._waiting: dict[asyncio.Future[int], None] = {}

    @property
    def in_flight(self) -> bool:
        """Whether a first request is under way, whose size others wait for."""
        return self._first_in_flight

    def try_size(self) -> int | None:
        """The size if it takes no waiting: the known one, or :data:`INITIAL_SIZE` for the first caller.

        The first caller owes an :meth:`update`, or a :meth:`reset_if_initializing` if it fails.
        """
        if self._size is not None:
            return self._size
        if self._first_in_flight:
            return None
        self._first_in_flight = True
        return INITIAL_SIZE

    async def size(self, timeout: float | None = None) -> int:
        """The size, after the first request in flight where there is one.

        Raises :exc:`~broker_core.permits.PermitTimeout` after ``timeout`` seconds of waiting.
        """
        size = self.try_size()
        if size is not None:
            return size
        waiting: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting[waiting] = None
        try:
            async with asyncio.timeout(timeout):
                return await waiting
        except TimeoutError:
            raise PermitTimeout from None
        finally:
            self._waiting.pop(waiting, None)

    def update(self, size: int) -> None:
        """The true size of an answer; it goes to all who wait and to all who come."""
        self._size = size
        self._finish(size)

    def reset_if_initializing(self) -> None:
        """The first request failed: who waits takes :data:`INITIAL_SIZE`, and the next caller is the first again."""
        if self._first_in_flight:
            self._finish(INITIAL_SIZE)

    def _finish(self, size: int) -> None:
        self._first_in_flight = False
        waiting, self._waiting = self._waiting, {}
        for future in waiting:
            if not future.done():
                future.set_result(size)


class SizeCache:
    """The holders of the questions that were asked last, at most ``max_entries`` and those in flight.

    A key must hold what the answer's size depends on: namespace, mode, pattern, properties. Only its hash is kept, so
    that long patterns and properties of clients take no memory here; the hash of a string is keyed by a secret of the
    process, and two questions that shared one would share an estimate, nothing else.
    """

    def __init__(self, max_entries: int = 10_000) -> None:
        self.max_entries = max_entries
        self._holders: OrderedDict[int, SizeHolder] = OrderedDict()

    def __len__(self) -> int:
        return len(self._holders)

    def get(self, key: Hashable) -> SizeHolder:
        """The holder of a question; the same one for the same key as long as it is used."""
        digest = hash(key)
        holder = self._holders.get(digest)
        if holder is not None:
            self._holders.move_to_end(digest)
            return holder
        holder = self._holders[digest] = SizeHolder()
        if len(self._holders) > self.max_entries:
            self._evict(digest)
        return holder

    def _evict(self, newest: int) -> None:
        """Drop the least used until the cache fits, but none in flight: its waiters would be lost.

        Those go to the end of the line; after a few tries the rest is left to the next call, so that this never scans
        thousands of requests in flight.
        """
        for _ in range(_EVICTION_TRIES):
            digest, holder = next(iter(self._holders.items()))
            if digest == newest or len(self._holders) <= self.max_entries:
                return
            if holder.in_flight:
                self._holders.move_to_end(digest)
            else:
                del self._holders[digest]
