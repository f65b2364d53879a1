"""The topics of a listing that rules allow its asker."""

from __future__ import annotations

from functools import partial

from broker_core.concurrency import EACH_NAME
from broker_core.listing import Selection, filtered
from broker_core.pipeline.request.listing_in_progress import ListingInProgress
from broker_core.pipeline.runs.worker_threads import Workers
from broker_core.plugin_api import Lease

__all__ = ["allowed"]


async def allowed(progress: ListingInProgress, selection: Selection, workers: Workers) -> Selection:
    """The topics of a selection that the rules allow, by columns: rules are about names, whatever lists them."""
    topics = progress.topics
    if topics is None:
        return selection
    # A mark for each row of the listing, and the numbers of the rows that are left.
    size, work = len(selection.listing), partial(filtered, selection, topics)
    async with Lease(progress.held, size + 4 * len(selection)):
        found = await workers.call(progress.request.asker, work, EACH_NAME * size)
    if progress.trace is not None:
        progress.trace.visible = len(found)
    return found
