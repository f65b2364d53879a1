"""A page of a listing: a slice of it in the order of pages, filled up after the masks.

The pages of a kept listing are cut from it: nothing is done for topics on other pages. A plugin that gives pages itself
is asked for the next one if the pattern or the masks remove names from a page.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from broker_core.concurrency import EACH_NAME, EACH_PAGE_BYTE
from broker_core.listing import Listing, Page, PageNames, PageStart, PageWalk, Position, Selection, data_of
from broker_core.pipeline.answer import Answer
from broker_core.pipeline.filter_hash_and_permits import allowed
from broker_core.pipeline.listers.listing_details import ListingDetails
from broker_core.pipeline.request.listing_in_progress import AcceptedAnswer, ListingInProgress
from broker_core.pipeline.request.unsupported_patterns import listing_plan
from broker_core.pipeline.runs.worker_threads import Workers
from broker_core.plugins import Dispatcher
from broker_core.tracing import stage

__all__ = ["Paging"]

#: The fewest names that are looked at together: masks are asked about all of them at once.
_LEAST: Final = 64
#: The largest page that a plugin is asked for if the first one was not full.
_LONGEST_PAGE: Final = 10_000


#: Names of one listing, in the order of pages.
_Piece: TypeAlias = tuple[Listing, PageNames]


@dataclass(slots=True, eq=False)
class Paging:
    """Cuts pages; one for a pipeline."""

    _dispatcher: Dispatcher
    _workers: Workers
    _detailing: ListingDetails

    async def page(
        self,
        progress: ListingInProgress,
        accepted: AcceptedAnswer,
        ask: Callable[[ListingInProgress], Awaitable[AcceptedAnswer]],
    ) -> Answer:
        """The wanted page of the listed topics; ``ask`` asks a plugin for a further page."""
        page = progress.request.page
        assert page is not None
        pieces: list[_Piece] = []
        details = [] if accepted.details is None else [accepted.details]
        following: Position | None = None
        filtered, missing, limit = accepted.filtered, page.limit, page.limit
        while True:
            async with aclosing(self._visible(progress, accepted, page.start, missing + 1)) as visible:
                async for listing, found in visible:
                    fits = found.first(missing)
                    pieces.append((listing, fits))
                    if len(fits) < len(found):
                        following = Position.of(found.names[missing].as_py())
                        break
                    missing -= len(fits)
            if following is not None or accepted.next is None:
                break
            if not missing and not self._takes_away(progress, accepted):
                following = accepted.next  # of a plugin from whose pages nothing is removed
                break
            # The page is not full, or the next page begins at a name that is not known yet: one that this asker may
            # see.
            limit = max(missing, min(2 * limit, _LONGEST_PAGE))
            page = Page(accepted.next, limit)
            progress = replace(progress, request=replace(progress.request, page=page))
            accepted = await ask(progress)
            filtered = filtered and accepted.filtered
            if accepted.details is not None:
                details.append(accepted.details)
        filtered = filtered or progress.pattern is not None
        return await self._answer(progress, accepted, pieces, following, filtered, details)

    def _takes_away(self, progress: ListingInProgress, accepted: AcceptedAnswer) -> bool:
        """Whether some listed names may not be on the page."""
        is_hidden = self._dispatcher.masks(progress.request.namespace) or progress.topics is not None
        return is_hidden or (progress.pattern is not None and not accepted.filtered)

    async def _visible(
        self, progress: ListingInProgress, accepted: AcceptedAnswer, start: Position | None, wanted: int
    ) -> AsyncGenerator[_Piece]:
        """The listed names from ``start`` on that match and may be seen, piece by piece."""
        selection = accepted.selection
        assert selection is not None
        asker = progress.request.asker
        if progress.pattern is not None and not accepted.filtered:
            with stage("filter"):
                selection = await self._workers.matching(asker, selection, progress.pattern)
        selection = await allowed(progress, selection, self._workers)
        if progress.trace is not None:
            progress.trace.listed = len(selection)
        walk = PageWalk(selection)
        cost = EACH_NAME * len(selection)
        count = max(wanted, _LEAST)
        place: PageStart | None = PageStart.of(start)
        while place is not None:
            block = await self._workers.call(asker, partial(walk.block, place, count), cost)
            async with progress.held.leased(2 * block.nbytes):
                found, place = await self._workers.call(
                    asker, block.read, min(cost, EACH_PAGE_BYTE * block.nbytes)
                )
                count *= 2
                steps = None if progress.trace is None else progress.trace.masks
                with stage("masks"):
                    mask = await self._dispatcher.mask_hook.visible(
                        progress.request, found.names, steps=steps
                    )
                if len(found):
                    yield selection.listing, found if mask is None else found.where(mask)

    async def _answer(
        self,
        progress: ListingInProgress,
        accepted: AcceptedAnswer,
        pieces: list[_Piece],
        following: Position | None,
        filtered: bool,
        details: list[Any],
    ) -> Answer:
        asker, held = progress.request.asker, progress.held
        empty = pa.array([], pa.large_string())
        names = pa.concat_arrays([empty, *(found.names for _, found in pieces)])
        await held.grow(3 * names.nbytes)
        is_copy = len({id(listing) for listing, _ in pieces}) == 1  # of names that are encoded
        cost = EACH_NAME * len(names)
        if is_copy:
            cost = min(cost, EACH_PAGE_BYTE * names.nbytes)
        make = partial(_copied, pieces) if is_copy else partial(_built, progress, names)
        selection = await self._workers.call(asker, make, cost)
        shown = None
        if progress.request.wants:
            topics = pa.concat_arrays([empty, *(found.topics for _, found in pieces)])
            partitions = np.concatenate([np.zeros(0, np.int64), *(found.partitions for _, found in pieces)])
            cut_at = None if accepted.whole else following
            shown = await self._detailing.of(progress, accepted, topics, partitions, details, cut_at)
        plan = listing_plan(progress.request, progress.pattern, filtered_by_lister=accepted.filtered)
        needed = (
            data_of(selection.listing).column_bytes
            + names.nbytes
            + (0 if shown is None else shown.batch.nbytes)
        )
        held.settle(needed)
        if progress.trace is not None:
            progress.trace.visible = len(names)
            progress.trace.permits["held"] = needed
        return Answer(
            selection,
            selection.topics_hash,
            filtered,
            accepted.lister,
            plan,
            held.hand_over(),
            accepted.stale,
            next=following,
            details=shown,
            page_names=names,
        )


def _copied(pieces: list[_Piece]) -> Selection:
    """The names of a page as a hashed listing of their own, which does not keep the listing that they are from."""
    listing, _ = pieces[0]
    rows = np.sort(np.concatenate([found.rows for _, found in pieces]))
    return _hashed(listing.rows(rows).on_its_own())


def _built(progress: ListingInProgress, names: pa.LargeStringArray) -> Selection:
    """The names of a page of a plugin as a listing; hashed."""
    return _hashed(Listing.from_names(progress.request.namespace, progress.request.mode, names).all())


def _hashed(selection: Selection) -> Selection:
    _ = selection.topics_hash
    return selection
