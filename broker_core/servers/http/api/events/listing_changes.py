"""The names that changed between two versions of a namespace, found once for all feeds that follow it.

Where an answer depends on the names and the pattern alone, it is the same after a change whose names the pattern does
not match. So a feed that is woken asks here first, and asks its whole question only where it has to.
"""

from __future__ import annotations

import asyncio
import weakref
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from broker_core.errors import ListingFailed
from broker_core.listing.listing import Listing
from broker_core.listing.selection_difference import difference_bytes, selection_difference
from broker_core.names import Mode, NamespaceName
from broker_core.pipeline import Pipeline
from broker_core.plugin_api.listing_request import ListingRequest

__all__ = ["ListingChanges"]

#: Changed names up to which matching them costs less than asking.
_MOST: Final = 1000
#: Bytes that are compared to find them; and those that are compared on the event loop.
_MOST_BYTES: Final = 64 * 1024 * 1024
_QUICK: Final = 16 * 1024
#: Namespaces and modes whose last change is kept.
_MOST_KEPT: Final = 64


class ListingChanges:
    """The last change of each namespace and mode. ``pipeline`` is one whose default lister is the catalogue's."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._finding = asyncio.Lock()
        #: The listings before and after a change, and the names as patterns match them; ``None``: too many.
        self._found: dict[
            tuple[NamespaceName, Mode],
            tuple[weakref.ref[Listing], weakref.ref[Listing], pa.LargeStringArray | None],
        ] = {}

    def applies(self, question: ListingRequest) -> bool:
        """Whether the answer to a question depends on the names of its namespace and the pattern alone."""
        pipeline, pattern = self._pipeline, question.pattern
        return (
            pattern is not None
            and pattern.supported
            and pipeline.options.patterns.evaluate
            and pipeline.options.selecting_keys.isdisjoint(question.properties)
            and not pipeline.dispatcher.concerned(question.namespace)
        )

    async def same_since(self, seen: Listing, question: ListingRequest) -> Listing | None:
        """The listing of now, if the answer to a question is the one that it was of ``seen``.

        ``None``: it may be another one.
        """
        try:
            now = await self._now(question)
        except ListingFailed:
            return None  # whoever asks the whole question hears of it
        if now is None or now is seen:
            return now
        async with self._finding:
            names = await self._changed(seen, now, question)
        assert question.pattern is not None
        if names is None or (len(names) and pc.any(question.pattern.match_column(names)).as_py()):
            return None
        return now

    async def _now(self, question: ListingRequest) -> Listing | None:
        lister = self._pipeline.lister
        whole = ListingRequest(question.namespace, question.mode, asker=question.asker)
        result = lister.list_now(whole) or await lister.list_topics(whole)
        return result.topics if isinstance(result.topics, Listing) else None

    async def _changed(
        self, seen: Listing, now: Listing, question: ListingRequest
    ) -> pa.LargeStringArray | None:
        key = question.namespace, question.mode
        if (found := self._found.get(key)) is not None and found[0]() is seen and found[1]() is now:
            return found[2]
        permits, size = self._pipeline.permits, difference_bytes(now.all(), seen.all())
        permit = permits.heap.try_acquire(size) if size <= _MOST_BYTES else None
        names = None
        if permit is not None:
            try:
                work = partial(_changed_names, seen, now)
                names = await self._pipeline.workers.call(question.asker, work, quick=size <= _QUICK)
            finally:
                permit.release()
        self._found[key] = weakref.ref(seen), weakref.ref(now), names
        if len(self._found) > _MOST_KEPT:
            del self._found[next(iter(self._found))]
        return names


def _changed_names(seen: Listing, now: Listing) -> pa.LargeStringArray | None:
    """What patterns match of the names that only one of the two has; ``None`` for more than :data:`_MOST`."""
    added, removed = selection_difference(now.all(), seen.all())
    if len(added) + len(removed) > _MOST:
        return None
    batches = [batch for each in (added, removed) for batch in each.batches("matched")]
    return pa.concat_arrays(
        [pa.array([], pa.large_string()), *(batch.column("matched") for batch in batches)]
    )
