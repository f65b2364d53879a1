"""From a checked selection to the answer: the pattern, the masks, the hash, and the permits for the sent names."""

from __future__ import annotations

from functools import partial

from broker_core.concurrency import loop_turn
from broker_core.listing import Selection, data_of
from broker_core.pipeline.answers.answer import Answer
from broker_core.pipeline.listers.listing_details import ListingDetails
from broker_core.pipeline.masks.allowed_topics import allowed
from broker_core.pipeline.masks.mask_slices import MaskSlices
from broker_core.pipeline.masks.masked_answers import MaskedAnswers
from broker_core.pipeline.request.listing_in_progress import AcceptedAnswer, ListingInProgress
from broker_core.pipeline.request.steps import QUICK_BYTES, hash_is_quick, is_unchanged, listing_plan
from broker_core.pipeline.runs.worker_threads import Workers
from broker_core.plugins import Dispatcher
from broker_core.tracing import stage

__all__ = ["Finishing"]


class Finishing:
    """The last steps of a listing; one for a pipeline."""

    def __init__(
        self, dispatcher: Dispatcher, workers: Workers, detailing: ListingDetails, masked: MaskedAnswers
    ) -> None:
        self._dispatcher = dispatcher
        self._workers = workers
        self._detailing = detailing
        self._masking = MaskSlices(dispatcher, workers, masked)

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
                quick = hash_is_quick(selection)
                with stage("hash"):
                    if not quick:
                        await held.reserve(accepted.owned + selection.heap_bytes)
                    make = partial(_hash, selection)
                    topics_hash = await self._workers.call(request.asker, make, quick=quick)
            if accepted.said_hash not in {None, topics_hash} and len(selection) == returned:
                self._dispatcher.hash_mismatch(accepted.lister, returned)
                if progress.trace is not None:
                    progress.trace.false_claims.append(
                        f"plugin {accepted.lister!r} gave the topics hash {accepted.said_hash!r}, but that of its "
                        f"topics is {topics_hash!r}: the server sends that"
                    )
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
            quick = own <= QUICK_BYTES
            selection = await self._workers.call(request.asker, selection.on_its_own, quick=quick)
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
        )


def _hash(selection: Selection) -> str:
    return selection.topics_hash
