"""A page of a listing: a slice of it in the order of pages, filled up with what the masks leave.

The pages of a listing that is kept are cut from it: nothing is done for a topic that is on no page. A plugin that gives
pages itself is asked for the next one where the pattern or the masks take away from it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from broker_core.listing.listing import Listing, Selection, data_of
from broker_core.listing.page import Page, Position
from broker_core.listing.page_order import PageOrder
from broker_core.pipeline.answer import Answer
from broker_core.pipeline.listing_details import ListingDetails
from broker_core.pipeline.listing_in_progress import AcceptedAnswer, ListingInProgress
from broker_core.pipeline.page_orders import PageOrders
from broker_core.pipeline.steps import are_few, listing_plan
from broker_core.pipeline.worker_threads import Workers
from broker_core.plugin_api.request_lease import Lease
from broker_core.plugins import Dispatcher

__all__ = ["Paging"]

#: Bytes that are held for each name that is looked at, beside its own: offsets, places, a mask.
_EACH: Final = 64
#: The largest page that a plugin is asked for where the one asked for was not full.
_MOST_ASKED: Final = 10_000


@dataclass(slots=True)
class _Piece:
    """Names in the order of pages, of one listing. ``places`` are where its order has them."""

    order: PageOrder
    places: np.ndarray[Any, Any]
    names: pa.LargeStringArray

    def first(self, count: int) -> _Piece:
        """The first names of it."""
        if len(self.names) <= count:
            return self
        return _Piece(self.order, self.places[:count], self.names[:count])


class Paging:
    """Cuts pages; one for a pipeline."""

    def __init__(
        self, dispatcher: Dispatcher, workers: Workers, orders: PageOrders, detailing: ListingDetails
    ) -> None:
        self._dispatcher = dispatcher
        self._workers = workers
        self._orders = orders
        self._detailing = detailing

    async def page(
        self,
        progress: ListingInProgress,
        accepted: AcceptedAnswer,
        ask: Callable[[ListingInProgress], Awaitable[AcceptedAnswer]],
    ) -> Answer:
        """The page that was asked for, of what was listed; ``ask`` asks again, for a further page of a plugin's."""
        page = progress.request.page
        assert page is not None
        pieces: list[_Piece] = []
        details = [] if accepted.details is None else [accepted.details]
        following: Position | None = None
        filtered, missing, limit = accepted.filtered, page.limit, page.limit
        while True:
            async with aclosing(self._visible(progress, accepted, page.start, missing + 1)) as visible:
                async for piece in visible:
                    fits = piece.first(missing)
                    pieces.append(fits)
                    if len(fits.names) < len(piece.names):
                        following = Position.of(piece.names[missing].as_py())
                        break
                    missing -= len(fits.names)
            if following is not None or accepted.next is None:
                break
            if not missing and not self._takes_away(progress, accepted):
                following = accepted.next  # of a plugin whose pages nobody takes anything from
                break
            # The page is not full; or to know where the next one begins, one more name has to be seen: it must be one
            # that this asker may see.
            limit = max(missing, min(2 * limit, _MOST_ASKED))
            page = Page(accepted.next, limit)
            progress = replace(progress, request=replace(progress.request, page=page))
            accepted = await ask(progress)
            filtered = filtered and accepted.filtered
            if accepted.details is not None:
                details.append(accepted.details)
        filtered = filtered or progress.pattern is not None
        return await self._answer(progress, accepted, pieces, following, filtered, details)

    def _takes_away(self, progress: ListingInProgress, accepted: AcceptedAnswer) -> bool:
        """Whether something that was listed may not be on the page."""
        return self._dispatcher.masks(progress.request.namespace) or (
            progress.pattern is not None and not accepted.filtered
        )

    async def _visible(
        self, progress: ListingInProgress, accepted: AcceptedAnswer, start: Position | None, wanted: int
    ) -> AsyncGenerator[_Piece]:
        """What is listed from ``start`` on, matches and may be seen, piece by piece."""
        selection = accepted.selection
        assert selection is not None
        asker = progress.request.asker
        if progress.pattern is not None and not accepted.filtered:
            selection = await self._workers.matching(asker, selection, progress.pattern)
        if progress.trace is not None:
            progress.trace.listed = len(selection)
        listing = selection.listing
        order = await self._orders.of(progress, listing)
        small = are_few(len(listing))
        at = await self._workers.call(asker, partial(order.find, listing, start), quick=small)
        walk = order.walk(selection, at, min(wanted, len(selection)))
        while (places := await self._workers.call(asker, partial(next, walk, None), quick=small)) is not None:
            if not len(places):
                continue
            size = len(places) * (_EACH + listing.all().fields_size // max(len(listing), 1))
            async with Lease(progress.held, 2 * size):
                names = await self._workers.call(
                    asker, partial(order.names_at, listing, places), quick=are_few(len(places))
                )
                steps = None if progress.trace is None else progress.trace.masks
                mask = await self._dispatcher.mask_hook.visible(progress.request, names, steps=steps)
                if mask is not None:
                    keep = mask.to_numpy(zero_copy_only=False)
                    places, names = places[keep], names.filter(mask)
                yield _Piece(order, places, names)

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
        names = (
            pa.concat_arrays([piece.names for piece in pieces]) if pieces else pa.array([], pa.large_string())
        )
        await held.grow(3 * names.nbytes)
        quick = are_few(len(names))
        selection = await self._workers.call(asker, partial(_selected, progress, names), quick=quick)
        found = None
        if progress.request.wants:
            partitions = np.concatenate(
                [np.zeros(0, np.int64), *(piece.order.partitions_at(piece.places) for piece in pieces)]
            )
            cut = following is not None and not accepted.whole
            found = await self._detailing.of(
                progress, accepted, names, partitions, details, following if cut else None
            )
        topics_hash = await self._workers.call(asker, partial(_hash, selection), quick=quick)
        plan = listing_plan(progress.request, progress.pattern, filtered_by_lister=accepted.filtered)
        needed = (
            data_of(selection.listing).column_bytes
            + names.nbytes
            + (0 if found is None else found.batch.nbytes)
        )
        held.settle(needed)
        if progress.trace is not None:
            progress.trace.visible = len(names)
            progress.trace.permits["held"] = needed
        return Answer(
            selection,
            topics_hash,
            filtered,
            accepted.lister,
            plan,
            held.hand_over(),
            accepted.stale,
            next=following,
            details=found,
            page_names=names,
        )


def _selected(progress: ListingInProgress, names: pa.LargeStringArray) -> Selection:
    """The names of a page as a listing of their own, so that it holds nothing of what it was cut from."""
    return Listing.from_names(progress.request.namespace, progress.request.mode, names).all()


def _hash(selection: Selection) -> str:
    return selection.topics_hash
