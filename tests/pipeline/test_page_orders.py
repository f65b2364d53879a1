from __future__ import annotations

import asyncio
import gc
import weakref

from broker_core import Listing, ListingRequest, Mode, NamespaceName
from broker_core.memory.estimates import Estimates
from broker_core.memory.permits import Permits
from broker_core.pipeline.held_permit import HeldPermit
from broker_core.pipeline.listing_in_progress import ListingInProgress
from broker_core.pipeline.page_orders import PageOrders
from broker_core.pipeline.worker_threads import Workers
from broker_core.settings import LimitsSettings

NAMESPACE = NamespaceName("t", "n")


def listing(count: int) -> Listing:
    names = [f"persistent://t/n/x-partition-{number}" for number in range(count)]
    return Listing.from_names(NAMESPACE, Mode.PERSISTENT, names)


async def test_an_order_is_made_once_and_lives_as_long_as_its_listing() -> None:
    permits, workers = Permits(), Workers()
    held = HeldPermit(permits, Estimates().of(NAMESPACE, "key"))
    await held.acquire_estimate()
    progress = ListingInProgress(ListingRequest(NAMESPACE), None, held, None)
    orders = PageOrders(permits, workers)
    large = listing(5000)
    assert orders._known.get(large) is None
    tasks = [asyncio.create_task(orders.of(progress, large)) for _ in range(2)]
    await asyncio.wait(tasks)
    one = orders._known.get(large)
    assert one is not None
    assert all(task.result() is one for task in tasks)
    assert permits.snapshots.acquired == one.nbytes
    small = listing(3)
    assert (await orders.of(progress, small)).nbytes
    assert orders._known.get(small) is None  # quicker made than remembered
    gone = weakref.ref(one)
    tasks.clear()
    del one, large
    gc.collect()
    permits.leases.settle()
    assert gone() is None
    assert permits.snapshots.acquired == 0
    held.give_up()
    workers.close()


async def test_without_room_it_is_the_requests_own() -> None:
    permits, workers = Permits(LimitsSettings(snapshots=100)), Workers()
    held = HeldPermit(permits, Estimates().of(NAMESPACE, "key"))
    await held.acquire_estimate()
    orders = PageOrders(permits, workers)
    large = listing(5000)
    order = await orders.of(ListingInProgress(ListingRequest(NAMESPACE), None, held, None), large)
    assert orders._known.get(large) is None
    assert held.count >= order.nbytes
    held.give_up()
    assert permits.heap.acquired == 0
    workers.close()
