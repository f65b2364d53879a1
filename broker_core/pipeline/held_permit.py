"""The heap permits of one request, from the first estimate to what its answer really holds (PIP-442)."""

from __future__ import annotations

from broker_core.errors import ListingFailed, TooManyRequests
from broker_core.permits import Permit, PermitError, PermitQueueFull, Permits, PermitTimeout
from broker_core.size_cache import SizeHolder

__all__ = ["HeldPermit"]


class HeldPermit:
    """The heap permits of one request, from the estimate to what its answer really holds."""

    __slots__ = ("_first", "_holder", "_permit", "_permits")

    def __init__(self, permits: Permits, holder: SizeHolder) -> None:
        self._permits = permits
        self._holder = holder
        self._permit: Permit | None = None
        self._first = False  # whether others wait for the size that this request finds out

    @property
    def count(self) -> int:
        return 0 if self._permit is None else self._permit.count

    async def acquire_estimate(self) -> None:
        """Permits for the size that the last answer to this question had (PIP-442)."""
        try:
            waiting_for_another = self._holder.in_flight
            size = self._holder.try_size()
            self._first = self._holder.in_flight and not waiting_for_another
            if size is None:
                size = await self._holder.size(self._permits.limits.timeout)
            self._permit = self._permits.heap.try_acquire(size) or await self._permits.heap.acquire(size)
        except PermitError as error:
            raise _no_heap(error) from None

    async def reserve(self, size: int) -> None:
        """At least ``size`` bytes of permits, kept until the answer is gone."""
        if self._permit is None:
            raise ListingFailed("This request is over: it cannot reserve memory any more")
        if size <= self._permit.count:
            return
        try:
            self._permit = self._permits.heap.try_update(
                self._permit, size
            ) or await self._permits.heap.update(self._permit, size)
        except PermitError as error:
            raise _no_heap(error) from None

    def settle(self, size: int) -> None:
        """The true size is known: it is what the next request like this asks for, and the surplus goes back."""
        self._holder.update(size)
        self._first = False
        if self._permit is not None and size < self._permit.count:
            self._permit = self._permits.heap.try_update(self._permit, size)

    def hand_over(self) -> Permit | None:
        permit, self._permit = self._permit, None
        return permit

    def give_up(self) -> None:
        """The request failed: let go of everything, and let the next one find out the size."""
        if self._first:
            self._holder.reset_if_initializing()
            self._first = False
        if self._permit is not None:
            self._permit.release()
            self._permit = None


def _no_heap(error: PermitError) -> TooManyRequests:
    reason = {PermitTimeout: "heap_timeout", PermitQueueFull: "heap_queue"}.get(type(error), "heap")
    return TooManyRequests("Failed due to heap memory limit exceeded", reason=reason)
