"""The heap permits of one request, from the first estimate to what its answer really holds (PIP-442)."""

from __future__ import annotations

import asyncio
from collections.abc import Hashable

from broker_core.errors import ListingFailed, TooManyRequests
from broker_core.estimates import Estimate
from broker_core.permits import Permit, PermitError, PermitQueueFull, Permits, PermitTimeout, whole_count

__all__ = ["HeldPermit"]


class HeldPermit:
    """The heap permits of one request, from the estimate to what its answer really holds.

    :meth:`reserve` is in the hands of plugins: it may be called several times at once, by work that goes on when the
    request is over, and nothing of it may be left behind.
    """

    __slots__ = ("_estimate", "_growing", "_is_over", "_key", "_peak", "_permit", "_permits", "_waiting")

    def __init__(self, permits: Permits, estimate: Estimate, key: Hashable = None) -> None:
        self._permits = permits
        self._key = key  # of whose demands wait in turns with those of others
        self._estimate = estimate
        self._permit: Permit | None = None
        self._peak = 0  # the most that was reserved, whatever was granted
        self._is_over = False
        self._growing = asyncio.Lock()  # one update at a time: each replaces the permit
        self._waiting: asyncio.Future[None] | None = None  # done when nobody wants more any longer

    @property
    def count(self) -> int:
        return 0 if self._permit is None else self._permit.count

    async def acquire_estimate(self) -> None:
        """Permits for the peak that the last request like this had (PIP-442)."""
        try:
            size = self._estimate.try_take()
            if size is None:
                size = await self._estimate.take(self._permits.limits.timeout)
            self._permit = self._permits.heap.try_acquire(size) or await self._permits.heap.acquire(
                size, key=self._key
            )
        except PermitError as error:
            raise _no_heap(error) from None

    async def reserve(self, size: int) -> None:
        """At least ``size`` bytes of permits in all, kept until the answer is gone.

        Raises :exc:`TypeError` or :exc:`ValueError` for what is no number of bytes, :exc:`ListingFailed` once the
        request is over, :exc:`TooManyRequests` where the permits cannot be had.
        """
        size = whole_count(size)
        if not self._is_over:
            self._peak = max(self._peak, size)
        if self._permit is not None and size <= self._permit.count:
            return
        async with self._growing:
            permit = self._permit
            if permit is None or self._is_over:
                raise _over()
            if size <= permit.count:
                return
            grown = self._permits.heap.try_update(permit, size)
            if grown is None:
                grown = await self._wait_for(permit, size)
            if self._is_over:
                grown.release()
                raise _over()
            self._permit = grown

    async def _wait_for(self, permit: Permit, size: int) -> Permit:
        waiting = self._waiting = asyncio.get_running_loop().create_future()
        try:
            return await self._permits.heap.update(permit, size, cancelled=waiting, key=self._key)
        except PermitError as error:
            raise (_over() if self._is_over else _no_heap(error)) from None
        finally:
            self._waiting = None

    def settle(self, size: int, *, made: bool = True) -> None:
        """The answer holds ``size`` bytes, and the surplus goes back.

        What the request took at the most is what the next one like it asks for; ``made`` false: no listing was made for
        it, so there is nothing to learn.
        """
        if made:
            self._estimate.learned(max(self._peak, size))
        else:
            self._estimate.nothing_made()
        if self._permit is not None and size < self._permit.count:
            self._permit = self._permits.heap.try_update(self._permit, size)

    def hand_over(self) -> Permit | None:
        """The permits, which from now on are the caller's to release."""
        self._end()
        permit, self._permit = self._permit, None
        return permit

    def give_up(self) -> None:
        """The request failed: let go of everything, and let the next one find out the size."""
        self._end()
        self._estimate.failed()
        if self._permit is not None:
            self._permit.release()
            self._permit = None

    def _end(self) -> None:
        self._is_over = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


def _over() -> ListingFailed:
    return ListingFailed("This request is over: it cannot reserve memory any more")


def _no_heap(error: PermitError) -> TooManyRequests:
    reason = {PermitTimeout: "heap_timeout", PermitQueueFull: "heap_queue"}.get(type(error), "heap")
    return TooManyRequests("Failed due to heap memory limit exceeded", reason=reason)
