"""The memory of one ``request.rest()``: a part of the request's permits."""

from __future__ import annotations

import asyncio

from broker_core.listing import Selection, part_of
from broker_core.memory import whole_count
from broker_core.pipeline.request.held_permit import HeldPermit

__all__ = ["RestOfChainMemory"]


class RestOfChainMemory:
    """Memory that grows with reservations further down the chain; in the end it is what the answer holds."""

    __slots__ = ("_growing", "_held", "size")

    def __init__(self, held: HeldPermit) -> None:
        self._held = held
        self._growing = asyncio.Lock()
        self.size = 0

    async def reserve(self, size: int) -> None:
        """Have at least ``size`` bytes in all, as :meth:`HeldPermit.reserve`."""
        needed = whole_count(size)
        async with self._growing:
            if needed > self.size:
                await self._held.grow(needed - self.size)
                self.size = needed

    async def settle(self, selection: Selection, owned: int) -> None:
        """Keep the bytes of ``selection``, as long as anybody has it, and give all else back.

        ``owned`` are the bytes of a listing that was made for this answer alone: a shared listing is charged to its
        keeper.
        """
        rows = part_of(selection)
        await self.reserve(owned + rows.nbytes)
        if owned:
            self._held.keep_with(selection.listing, owned)
            self.size -= owned
        if rows.nbytes:
            self._held.keep_with(rows, rows.nbytes)
            self.size -= rows.nbytes
        self.close()

    def close(self) -> None:
        """Give back all memory that no answer has."""
        size, self.size = self.size, 0
        self._held.give_back(size)
