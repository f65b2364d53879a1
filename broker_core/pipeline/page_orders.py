"""The orders of pages of listings, each made once and remembered as long as its listing lives.

The memory of an order is of the ``snapshots`` budget, as that of the listings is, and its permits go with it. Where
there is none, the order is made for the one question, whose own permits it then has.
"""

from __future__ import annotations

import asyncio
import weakref
from functools import partial

from broker_core.listing.listing import Listing
from broker_core.listing.page_order import PageOrder
from broker_core.memory.permits import Permits
from broker_core.pipeline.listing_in_progress import ListingInProgress
from broker_core.pipeline.steps import are_few
from broker_core.pipeline.worker_threads import Workers
from broker_core.plugin_api.request_lease import Lease

__all__ = ["PageOrders"]


class PageOrders:
    """Orders by listing. For one event loop."""

    def __init__(self, permits: Permits, workers: Workers) -> None:
        self._permits = permits
        self._workers = workers
        self._known: weakref.WeakKeyDictionary[Listing, PageOrder] = weakref.WeakKeyDictionary()
        self._making: weakref.WeakKeyDictionary[Listing, asyncio.Lock] = weakref.WeakKeyDictionary()

    async def of(self, progress: ListingInProgress, listing: Listing) -> PageOrder:
        """The order of a listing: made in a thread, once however many ask at a time."""
        known = self._known.get(listing)
        if known is not None:
            return known
        if are_few(len(listing)):
            return await self._workers.call(
                progress.request.asker, partial(PageOrder.of, listing), quick=True
            )
        lock = self._making.get(listing)
        if lock is None:
            lock = self._making[listing] = asyncio.Lock()
        async with lock:
            known = self._known.get(listing)
            if known is None:
                known = await self._made(progress, listing)
        return known

    async def _made(self, progress: ListingInProgress, listing: Listing) -> PageOrder:
        async with Lease(progress.held, PageOrder.build_bytes(listing)):
            order = await self._workers.call(progress.request.asker, partial(PageOrder.of, listing))
        budget = self._permits.snapshots
        permit = budget.try_acquire(order.nbytes) if budget.fits(order.nbytes) else None
        if permit is None:
            await progress.held.grow(order.nbytes)  # the request's until it is over
        else:
            self._permits.leases.hold(order, permit)
            self._known[listing] = order
        return order
