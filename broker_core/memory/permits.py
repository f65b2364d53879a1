"""All memory budgets of a broker: for what requests allocate, for what waits to be written, and for what is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from broker_core.memory.bounded_cache import Caches
from broker_core.memory.leases import Leases
from broker_core.memory.permit_budget import Permit, PermitBudget
from broker_core.memory.permit_errors import PermitError, permits_refused
from broker_core.settings import LimitsSettings

__all__ = ["DIRECT_RESERVE", "SMALL_ANSWER", "Permits"]

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
        self.overflow_told = False  # that plugins keep more than the snapshots have room for
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
        """Whether a listing is served to the requests of now, and in the way of others if it is held any longer."""
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
