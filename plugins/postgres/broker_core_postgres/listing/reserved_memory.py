"""The memory that a listing has reserved at the broker, and how it waits for more without a connection.

Memory is reserved before it is used. Where that has to wait, :exc:`MustWaitForMemory` leaves the block that holds the
connection, which stops the statement. The listing begins anew when there is memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

__all__ = ["MustWaitForMemory", "ReservedMemory"]

#: What a page of names takes while it is handled, in multiples of its bytes: as it came, as a column, matched, encoded.
_PAGE_FACTOR: Final = 5
#: Seconds that a reservation may take while a connection is held.
_PATIENCE: Final = 0.02


class MustWaitForMemory(Exception):
    """There is no memory at once. ``reservation`` is under way: wait for it without a connection, and begin anew."""

    def __init__(self, reservation: asyncio.Task[None], size: int) -> None:
        super().__init__(f"waiting for {size} bytes")
        self.reservation = reservation
        self.size = size


class ReservedMemory:
    """What a request has reserved, in bytes; it only grows."""

    def __init__(self, reserve: Callable[[int], Awaitable[None]]) -> None:
        self.reserved = 0
        self._reserve = reserve

    async def reserve(self, size: int) -> None:
        """Reserve so much in all, however long it takes: for who holds nothing that others wait for."""
        if size > self.reserved:
            await self._reserve(size)
            self.reserved = size

    async def reserve_now(self, size: int) -> None:
        """Reserve so much in all, if that takes no waiting; else :exc:`MustWaitForMemory`."""
        if size <= self.reserved:
            return
        size = max(size, self.reserved + self.reserved // 2)
        task = asyncio.get_running_loop().create_task(self._now(size))
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
        """Wait for what could not be had at once."""
        try:
            await waiting.reservation
        finally:
            waiting.reservation.cancel()
        self.reserved = max(self.reserved, waiting.size)

    async def _now(self, size: int) -> None:
        await self._reserve(size)

    @property
    def page_bytes(self) -> int:
        """The largest page that there is memory for, where nothing else is held."""
        return self.reserved // _PAGE_FACTOR

    @staticmethod
    def bytes_for_page(size: int, held: int = 0) -> int:
        """What a page of ``size`` takes, beside what is ``held``."""
        return _PAGE_FACTOR * size + held + held // 4
