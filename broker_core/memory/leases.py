"""Permits that are released when an object is freed, whether a cache, a request or a slow client holds it longest.

The memory of a listing is freed with its last reference. So the permits for its buffers belong to the listing:
:meth:`Leases.hold` binds them to it, and they are released when the listing is freed. The permits for chunks, which
versions of a listing share, belong to the chunks (:meth:`Leases.hold_parts`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, Protocol

import pyarrow as pa

from broker_core.memory.bounded_cache import Owners
from broker_core.memory.permit_budget import Permit

__all__ = ["Leases", "Releasable"]

#: Bytes of leases whose memory goes back to the system with them: Arrow's pool would keep it.
_WORTH_RELEASING: Final = 8 * 1024 * 1024
_RELEASE_DELAY: Final = 0.1  # seconds; another thread may be freeing the rest just now


class Releasable(Protocol):
    """A number of bytes that are held (:class:`~broker_core.memory.permit_budget.Permit`)."""

    @property
    def count(self) -> int: ...

    def release(self) -> None: ...


class Leases:
    """The permits of objects, by their identity. All methods are for one event loop, on which permits are released.

    An object may be freed in any thread and in the midst of any statement; its permits are released in the next turn of
    the loop, or at once by :meth:`settle`.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._permits: Owners[Releasable] = Owners(self._ended)
        self._is_scheduled = False  # the loop will settle

    def __contains__(self, owner: object) -> bool:
        return self.held(owner) is not None

    def held(self, owner: object) -> Releasable | None:
        """The permits that are held for an object."""
        return self._permits.get(owner)

    def hold(self, owner: object, permit: Releasable) -> None:
        """Release ``permit`` when ``owner`` is freed. An earlier lease of ``owner`` is released now."""
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            pass  # without a loop no demand waits: it is enough to release permits at the next `hold`
        self.settle()
        old = self._permits.put(owner, permit)
        if old is not None:
            old.release()

    def hold_parts(self, parts: Sequence[tuple[object, int]], permit: Permit) -> None:
        """Release parts of ``permit`` as their owners are freed, so many bytes each; the last one has what is left."""
        if not parts:
            permit.release()
            return
        for owner, size in parts[:-1]:
            self.hold(owner, permit.budget.split(permit, size))
        self.hold(parts[-1][0], permit)

    def settle(self) -> None:
        """Release the permits of all objects that have ended."""
        self._is_scheduled = False  # first: objects that end from here on schedule the next call
        size = 0
        for permit in self._permits.ended():
            size += permit.count
            permit.release()
        if size >= _WORTH_RELEASING and self._loop is not None:
            self._loop.call_later(_RELEASE_DELAY, pa.default_memory_pool().release_unused)

    def _ended(self) -> None:
        try:
            if self._loop is not None and not self._is_scheduled:  # a large listing has hundreds of owners
                self._is_scheduled = True
                self._loop.call_soon_threadsafe(self.settle)
        except RuntimeError:  # the loop is closed: no demand waits for permits
            self._is_scheduled = False
