"""The memory budgets of a broker: heap, direct buffers and their reserve, snapshots.

Permits may be released when an object is freed, whether a cache, a request or a slow client holds it longest. The
memory of a listing is freed with its last reference. So the permits for its buffers belong to the listing:
:meth:`Leases.hold` binds them to it, and they are released when the listing is freed. The permits for chunks, which
versions of a listing share, belong to the chunks (:meth:`Leases.hold_parts`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Protocol

import pyarrow as pa

from broker_core.memory.bounded_cache import Caches, Owners
from broker_core.memory.permit_budget import Permit, PermitBudget
from broker_core.memory.permit_errors import PermitError, permits_refused
from broker_core.settings import LimitsSettings

__all__ = ["DIRECT_RESERVE", "SMALL_ANSWER", "Leases", "Permits", "Releasable"]


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


#: Bytes of the direct permits that are kept for small answers, if there are twice as many.
DIRECT_RESERVE: Final = 8 * 1024 * 1024
#: Bytes up to which an answer is small.
SMALL_ANSWER: Final = 64 * 1024


class Permits:
    """All budgets of a broker.

    ``heap`` is for what requests allocate, ``direct`` for what waits in write buffers, ``snapshots`` for shared
    listings, each held as long as anybody has the listing (``leases``). ``reserve`` is a part of what the limits call
    direct, for answers of up to :data:`SMALL_ANSWER` bytes, which so never queue behind large ones; it is never more
    than half of it. ``direct`` has the rest. ``unkept`` is a quarter of the snapshots besides, for listings that are
    served and not kept.
    """

    def __init__(self, limits: LimitsSettings | None = None, *, direct_reserve: int = DIRECT_RESERVE) -> None:
        self.limits = limits or LimitsSettings()
        self.leases = Leases()
        #: The caches under the budget ``snapshots``, and those with bounds of their own.
        self.caches = Caches()
        self._pressed: list[Callable[[PermitBudget], None]] = []
        self._direct_reserve = direct_reserve
        self.overflow_logged = False  # that plugins keep more than the snapshots have room for
        names = ("heap", "direct", "reserve", "snapshots", "unkept snapshots")
        budgets = [PermitBudget(0, name=name) for name in names]
        self.heap, self.direct, self.reserve, self.snapshots, self.unkept = budgets
        self.resize(self.limits)

    def resize(self, limits: LimitsSettings) -> None:
        """Use these limits from now on. Nothing is taken away: permits acquired beyond them are released in time."""
        self.limits = limits
        direct = limits.direct_permits
        reserve = max(min(self._direct_reserve, direct // 2), 1) if direct > 0 else 0
        direct = max(direct - reserve, 1) if direct > 0 else 0  # 0 would be unlimited
        unkept = max(limits.snapshots // 4, 1) if limits.snapshots > 0 else 0
        timeout, queue = limits.permit_timeout, limits.permit_queue
        self.heap.resize(limits.heap_permits, timeout=timeout, queue_limit=queue)
        self.direct.resize(direct, timeout=timeout, queue_limit=queue)
        self.reserve.resize(reserve, timeout=timeout, queue_limit=queue)
        self.snapshots.resize(limits.snapshots, timeout=timeout, queue_limit=queue)
        self.unkept.resize(unkept, timeout=timeout)

    async def of_answer(self, budget: PermitBudget, size: int, left: float) -> Permit:
        """Permits of ``direct`` or ``reserve`` for bytes of an answer that has ``left`` seconds to be sent.

        Raises :exc:`~broker_core.errors.TooManyRequests`.
        """
        timeout = max(0.0, min(self.limits.permit_timeout, left))
        try:
            return budget.try_acquire(size) or await budget.acquire(size, timeout=timeout)
        except PermitError as error:
            raise permits_refused("direct", error) from None

    def is_unkept(self, listing: object) -> bool:
        """Whether a listing is not kept: holding it longer than the current requests takes memory from others."""
        held = self.leases.held(listing)
        return isinstance(held, Permit) and held.budget is self.unkept

    def beside_snapshots(self, size: int) -> Permit | None:
        """Permits for data that is kept beside snapshots; ``None`` without room.

        They are of ``snapshots``, or, if these are full, of ``heap``, as far as that may be kept: a full cache of
        snapshots is usual, and in nobody's way.
        """
        return self.snapshots.try_acquire(size) or self.heap.try_keep(size)

    def on_pressure(self, press: Callable[[PermitBudget], None]) -> None:
        """Call ``press`` too with a budget in which a demand has waited long."""
        self._pressed.append(press)
        for budget in (self.heap, self.snapshots, self.unkept):
            budget.on_pressure = self._press

    def _press(self, budget: PermitBudget) -> None:
        for press in self._pressed:
            press(budget)

    def close(self) -> None:
        for budget in (self.heap, self.direct, self.reserve, self.snapshots, self.unkept):
            budget.close()
