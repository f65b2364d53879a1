"""The quick way: an answer without waiting and in well under a millisecond, or none."""

from __future__ import annotations

import weakref

from broker_core.concurrency import has_time
from broker_core.listing import Listing
from broker_core.memory import PermitBudget
from broker_core.pipeline.answers.answer import Answer
from broker_core.pipeline.answers.reusable_answer import ReusableAnswer
from broker_core.pipeline.request.pipeline_options import PipelineOptions
from broker_core.pipeline.request.steps import (
    QUICK_BYTES,
    TINY_BYTES,
    applied_pattern,
    gathering_is_quick,
    hash_is_quick,
    is_unchanged,
    listing_plan,
    matching_now,
)
from broker_core.pipeline.verification.verify_names import known_selection
from broker_core.plugin_api import DefaultLister, ListingRequest

__all__ = ["AnswerAtOnce"]


class AnswerAtOnce:
    """Answers of the default lister if no plugin is concerned; one for a pipeline."""

    def __init__(self, lister: DefaultLister, heap: PermitBudget, options: PipelineOptions) -> None:
        self._lister = lister
        self._heap = heap
        self._options = options

    def to(self, request: ListingRequest) -> Answer | None:
        """The answer; ``None`` if it takes more. Raises :exc:`~broker_core.errors.ListingFailed`."""
        pattern = applied_pattern(request, self._options)
        # Without time left in this turn only known results, and a few small pieces.
        if request.properties and not has_time():
            return None
        result = self._lister.list_now(request, pattern)
        if result is None:
            return None
        selection = known_selection(result, request)
        if selection is not None and pattern is not None:
            selection = matching_now(selection, pattern, has_time)
        if selection is None:
            return None
        if not (selection.hash_known or hash_is_quick(selection, _most())):
            return None
        topics_hash = selection.topics_hash
        source = weakref.ref(result.topics) if type(result.topics) is Listing else None
        filtered, plan = pattern is not None, listing_plan(request, pattern)
        if is_unchanged(request, topics_hash):
            return Answer(None, topics_hash, filtered, self._lister.name, plan, source=source)
        if selection.is_slice:
            self._heap.count_granted()  # nothing is held beyond the listing
            return Answer(selection, topics_hash, filtered, self._lister.name, plan, source=source)
        permit = (
            self._heap.try_acquire(selection.heap_bytes) if gathering_is_quick(selection, _most()) else None
        )
        if permit is None:
            return None
        return Answer(selection, topics_hash, filtered, self._lister.name, plan, permit, source=source)

    def again(self, reusable: ReusableAnswer) -> bool:
        """Whether the lister still has an answer's listing, or the pattern matches the same topics in its new one."""
        question = reusable.question
        applied = question.pattern if reusable.filtered else None
        listing = self._lister.stands(question, applied, reusable.listing)
        if listing is None:
            return False
        reusable.listing = weakref.ref(listing)  # so that only changes from now on are looked at
        return True


def _most() -> int:
    """Bytes that are hashed or gathered in this turn of the loop."""
    return QUICK_BYTES if has_time() else TINY_BYTES
