"""The last steps of a listing: pattern, masks, hash, and permits for the sent names."""

from __future__ import annotations

import weakref
from functools import partial
from typing import Final

from broker_core.concurrency import EACH_BYTE, EACH_NAME, ON_LOOP, has_time, loop_turn
from broker_core.listing import Listing, Selection, data_of, filtered, unhashed_bytes
from broker_core.memory import PermitBudget
from broker_core.patterns import TopicsPattern
from broker_core.pipeline.answer import Answer, is_unchanged, known_selection
from broker_core.pipeline.listers.listing_details import ListingDetails
from broker_core.pipeline.listers.verify_answer_claims import check_hash
from broker_core.pipeline.masks_of_plugins import MaskedAnswers, MaskSlices
from broker_core.pipeline.request.listing_in_progress import AcceptedAnswer, ListingInProgress
from broker_core.pipeline.request.unsupported_patterns import listing_plan
from broker_core.pipeline.runs.worker_threads import Workers
from broker_core.plugin_api import ListingRequest, TopicListingResult
from broker_core.plugins import Dispatcher
from broker_core.tracing import stage

__all__ = ["Finishing", "allowed"]

#: Hashing or gathering so many bytes at most is done on the event loop.
_QUICK_BYTES: Final = int(ON_LOOP / EACH_BYTE)
#: The most bytes of it if a turn of the loop has no time left.
_TINY_BYTES: Final = 8 * 1024


class Finishing:
    """The last steps of a listing; one for a pipeline."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        workers: Workers,
        detailing: ListingDetails,
        masked: MaskedAnswers,
        heap: PermitBudget,
    ) -> None:
        self._heap = heap
        self._dispatcher = dispatcher
        self._workers = workers
        self._detailing = detailing
        self._masking = MaskSlices(dispatcher, workers, masked)

    def now(
        self,
        request: ListingRequest,
        pattern: TopicsPattern | None,
        lister: str,
        result: TopicListingResult,
    ) -> Answer | None:
        """The answer of the default lister to a request that no plugin and no rule concerns; ``None`` if it takes
        more than well under a millisecond, or waiting.
        """
        selection = known_selection(result, request)
        if selection is not None and pattern is not None:
            selection = self._workers.try_matching(selection, pattern)
        if selection is None or not (selection.hash_known or unhashed_bytes(selection) <= _most()):
            return None
        topics_hash, permit = selection.topics_hash, None
        shown: Selection | None = selection
        if is_unchanged(request, topics_hash):
            shown = None
        elif selection.is_slice:
            self._heap.count_granted()  # nothing is held beyond the listing
        else:
            permit = (
                self._heap.try_acquire(selection.heap_bytes) if selection.fields_size <= _most() else None
            )
            if permit is None:
                return None
        source = weakref.ref(result.topics) if type(result.topics) is Listing else None
        plan = listing_plan(request, pattern)
        return Answer(shown, topics_hash, pattern is not None, lister, plan, permit, source=source)

    async def finish(self, progress: ListingInProgress, accepted: AcceptedAnswer) -> Answer:
        """Filter, mask and hash the listed topics, and take permits for the sent names."""
        await loop_turn().time()
        request, pattern, held = progress.request, progress.pattern, progress.held
        selection, topics_hash, filtered = (
            accepted.selection,
            accepted.topics_hash,
            accepted.filtered,
        )
        plan = listing_plan(request, pattern, filtered_by_lister=filtered)
        if selection is None:
            assert topics_hash is not None
            held.settle(0, made=False)
            return Answer(
                None, topics_hash, filtered, accepted.lister, plan, held.hand_over(), accepted.stale
            )
        returned = len(selection)
        if progress.trace is not None:
            progress.trace.listed = returned
        if pattern is not None and not filtered:
            with stage("filter", plan=plan):
                selection = await self._workers.matching(request.asker, selection, pattern)
            filtered = True
        listed = selection
        selection = await allowed(progress, selection, self._workers)
        if self._dispatcher.masks(request.namespace):
            with stage("masks"):
                selection = await self._masking.visible(progress, selection, accepted.owned)
        if topics_hash is None or len(selection) != returned:
            if selection.hash_known:
                topics_hash = selection.topics_hash
            else:
                with stage("hash"):
                    unhashed = unhashed_bytes(selection)
                    if unhashed > _QUICK_BYTES:
                        await held.reserve(accepted.owned + selection.heap_bytes)
                    cost = EACH_BYTE * unhashed
                    topics_hash = await self._workers.call(request.asker, partial(_hash, selection), cost)
            if accepted.declared_hash is not None and len(selection) == returned:
                check_hash(self._dispatcher, progress, accepted, topics_hash, returned)
        details = None
        if request.wants:
            details = await self._detailing.of_selection(progress, accepted, listed, selection)
        if is_unchanged(request, topics_hash):
            held.settle(0)
            return Answer(
                None, topics_hash, filtered, accepted.lister, plan, held.hand_over(), accepted.stale
            )
        await held.reserve(accepted.owned + selection.heap_bytes)
        needed = selection.heap_bytes
        if accepted.owned:
            # Built for this answer alone: only the client's names are kept until they have left.
            own = selection.fields_size + 8 * len(selection)
            await held.reserve(accepted.owned + own)
            selection = await self._workers.call(request.asker, selection.on_its_own, EACH_BYTE * own)
            needed = data_of(selection.listing).column_bytes
        if details is not None:
            needed += details.batch.nbytes
        held.settle(needed)
        if progress.trace is not None:
            progress.trace.permits["held"] = needed
        permit = held.hand_over()
        return Answer(
            selection,
            topics_hash,
            filtered,
            accepted.lister,
            plan,
            permit,
            accepted.stale,
            details=details,
            table=accepted.table,
        )


def _most() -> int:
    """Bytes that are hashed or gathered in this turn of the loop: without time left, a few small pieces."""
    return _QUICK_BYTES if has_time() else _TINY_BYTES


def _hash(selection: Selection) -> str:
    return selection.topics_hash


async def allowed(progress: ListingInProgress, selection: Selection, workers: Workers) -> Selection:
    """The topics of a selection that the rules allow, by columns: rules are about names, whatever lists them."""
    topics = progress.topics
    if topics is None:
        return selection
    # A mark for each row of the listing, and the numbers of the rows that are left.
    size, work = len(selection.listing), partial(filtered, selection, topics)
    async with progress.held.leased(size + 4 * len(selection)):
        found = await workers.call(progress.request.asker, work, EACH_NAME * size)
    if progress.trace is not None:
        progress.trace.visible = len(found)
    return found
