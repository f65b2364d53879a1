"""Memory that a listing reserves at the broker before it uses it.

A listing that has to wait for memory holds no connection: :exc:`MustWaitForMemory` leaves the block of the connection,
which cancels the statement. The listing starts again when the memory is reserved.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

__all__ = ["MustWaitForMemory", "ReservedMemory"]

#: Memory of a page in multiples of its bytes: as received, as a column, matched, encoded.
_PAGE_FACTOR: Final = 5
#: Seconds that a reservation may take while a connection is held.
_PATIENCE: Final = 0.02


class MustWaitForMemory(Exception):
    """Memory is not free now. ``reservation`` is under way: await it without a connection, then start again."""

    def __init__(self, reservation: asyncio.Future[None], size: int) -> None:
        super().__init__(f"waiting for {size} bytes")
        self.reservation = reservation
        self.size = size


class ReservedMemory:
    """The bytes that a request has reserved. They only grow."""

    def __init__(self, reserve: Callable[[int], Awaitable[None]]) -> None:
        self.reserved = 0
        self._reserve = reserve

    async def reserve(self, size: int) -> None:
        """Reserve so many bytes in all, however long it takes. The caller holds no connection."""
        if size > self.reserved:
            await self._reserve(size)
            self.reserved = size

    async def reserve_now(self, size: int) -> None:
        """Reserve so many bytes in all at once, or raise :exc:`MustWaitForMemory`."""
        if size <= self.reserved:
            return
        size = max(size, self.reserved + self.reserved // 2)
        task = asyncio.ensure_future(self._reserve(size))
        try:
            done, _ = await asyncio.wait([task], timeout=_PATIENCE)
        except BaseException:
            task.cancel()
            raise
        if not done:
            raise MustWaitForMemory(task, size)
        task.result()
        self.reserved = size

    async def wait_for(self, waiting: MustWaitForMemory) -> None:
        """Wait for a reservation that could not be had at once."""
        try:
            await waiting.reservation
        finally:
            waiting.reservation.cancel()
        self.reserved = max(self.reserved, waiting.size)

    @property
    def page_bytes(self) -> int:
        """The largest page that the memory is enough for."""
        return self.reserved // _PAGE_FACTOR

    @staticmethod
    def bytes_for_page(size: int, held: int = 0) -> int:
        """Bytes for a page of ``size``, beside the ``held`` bytes of earlier pages."""
        return _PAGE_FACTOR * size + held + held // 4
