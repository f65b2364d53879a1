"""The details of an answer's topics: given with the listing, asked of the lister, or derived from the names."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.errors import Cause, ListingFailed
from broker_core.listing.details import DETAIL_TYPES, TOPIC, Details
from broker_core.listing.listing import Selection
from broker_core.listing.page import Position
from broker_core.names.partition_columns import split_partitions
from broker_core.pipeline.listing_in_progress import AcceptedAnswer, ListingInProgress
from broker_core.pipeline.page_orders import PageOrders
from broker_core.pipeline.steps import are_few
from broker_core.pipeline.verification.bad_topics import bad_topics
from broker_core.pipeline.verification.verify_details import CHECK_FACTOR, check_details, check_listed_details
from broker_core.pipeline.worker_threads import Workers
from broker_core.plugin_api.describe_request import DescribeRequest
from broker_core.plugin_api.listing_result import DefaultLister
from broker_core.plugin_api.request_lease import Lease
from broker_core.plugins import Dispatcher

__all__ = ["ListingDetails"]

#: Topics that a lister is asked about at a time.
_ASKED: Final = 10_000
#: Bytes that an answer's details take for each topic, beside its name and what the lister gave.
_EACH: Final = 64


class ListingDetails:
    """Makes the details of answers; one for a pipeline."""

    def __init__(
        self, lister: DefaultLister, dispatcher: Dispatcher, workers: Workers, orders: PageOrders
    ) -> None:
        self._lister = lister
        self._dispatcher = dispatcher
        self._workers = workers
        self._orders = orders

    async def accept(self, progress: ListingInProgress, details: Details, selection: Selection) -> Details:
        """Check details that came with topics. Raises :exc:`ListingFailed`."""
        size = details.batch.nbytes + selection.fields_size
        async with Lease(progress.held, CHECK_FACTOR * size):
            work = partial(
                check_listed_details, details, progress.request.wants, selection, progress.request.pattern
            )
            quick = are_few(len(details) + len(selection))
            details = await self._workers.call(progress.request.asker, work, quick=quick)
        await progress.held.grow(details.batch.nbytes)  # theirs, until the request is over
        return details

    async def of_selection(
        self, progress: ListingInProgress, accepted: AcceptedAnswer, visible: Selection
    ) -> Details:
        """The details of what may be seen of a listing."""
        listing = visible.listing
        order = await self._orders.of(progress, listing)
        size = visible.fields_size + _EACH * len(visible)
        async with Lease(progress.held, 2 * size):
            names, partitions = await self._workers.call(
                progress.request.asker, partial(_ordered, order, visible), quick=are_few(len(visible))
            )
            given = [] if accepted.details is None else [accepted.details]
            return await self.of(progress, accepted, names, partitions, given, None)

    async def of(
        self,
        progress: ListingInProgress,
        accepted: AcceptedAnswer,
        names: pa.LargeStringArray,
        partitions: np.ndarray[Any, Any],
        given: Sequence[Details],
        cut_at: Position | None,
    ) -> Details:
        """The details of names in the order of pages, of whose topics the names alone say ``partitions``.

        ``given`` came with the topics. ``cut_at`` is where a plugin's page ended: names behind it are not known here.
        """
        wants, asker = progress.request.wants, progress.request.asker
        known = set(wants).intersection(*(details.columns for details in given)) if given else set()
        quick = are_few(len(names))
        topics, counts = await self._workers.call(asker, partial(_topics, names, partitions), quick=quick)
        found = list(given)
        missing = frozenset(wants - known)
        if missing and len(topics):
            found += await self._asked(progress, accepted, topics, missing)
        if cut_at is not None and "partitions" in wants and len(topics) and topics[-1].as_py() == cut_at.base:
            if not any("partitions" in details.columns for details in found):
                raise bad_topics(
                    f"plugin {accepted.lister!r} ended a page within the partitions of {cut_at.base!r:.250}, and "
                    "no number of them: it needs details= with the column 'partitions', or broker_core_describe_topics",
                    plugin=accepted.lister,
                )
        size = topics.nbytes + _EACH * len(topics) + 2 * sum(details.batch.nbytes for details in found)
        await progress.held.grow(size)
        return await self._workers.call(asker, partial(_merged, topics, counts, found, wants), quick=quick)

    async def _asked(
        self,
        progress: ListingInProgress,
        accepted: AcceptedAnswer,
        topics: pa.LargeStringArray,
        wants: frozenset[str],
    ) -> list[Details]:
        """The lister's details of these topics, asked for now."""
        describers = self._describers(progress, accepted)
        asks_default = accepted.lister == self._lister.name and wants != {"partitions"}
        found: list[Details] = []
        request = progress.request
        for start in range(0, len(topics) if describers or asks_default else 0, _ASKED):
            part = topics[start : start + _ASKED]
            question = DescribeRequest(
                request.namespace, request.asker, part, None, wants, request.deadline, progress.held
            )
            accept = partial(self.accepted, progress, question)
            answers = [
                await self._dispatcher.describe_hook.details(name, question, accept) for name in describers
            ]
            if asks_default:
                answers.append(await self._lister.describe(question))
            found += [details for details in answers if details is not None]
        return found

    def _describers(self, progress: ListingInProgress, accepted: AcceptedAnswer) -> list[str]:
        """The plugins that say more of the topics: those in front of the lister that do not list, and the lister.

        As in lookups. Names are all that a lister knows that does not describe.
        """
        names: list[str] = []
        for plugin, describes in self._dispatcher.describe_hook.plugins(progress.request.namespace):
            is_it = plugin.name == accepted.lister
            if describes and (is_it or not plugin.lists):
                names.append(plugin.name)
            if is_it:
                break
        return names

    async def accepted(
        self, progress: ListingInProgress, question: DescribeRequest, details: Details
    ) -> Details:
        """Check details that a plugin gave when it was asked. Raises :exc:`ListingFailed`."""
        async with Lease(progress.held, CHECK_FACTOR * details.batch.nbytes):
            work = partial(check_details, details, question.wants, question.names)
            await self._workers.call(question.asker, work, quick=are_few(len(details)))
        await progress.held.grow(details.batch.nbytes)
        return details


def _ordered(order: Any, selection: Selection) -> tuple[pa.LargeStringArray, np.ndarray[Any, Any]]:
    """The names of a selection in the order of pages, and how many partitions the topic of each has."""
    pieces = list(order.walk(selection, 0, max(len(selection), 1)))
    places = np.concatenate(pieces) if pieces else np.zeros(0, np.int64)
    return order.names_at(selection.listing, places), order.partitions_at(places)


def _topics(
    names: pa.LargeStringArray, partitions: np.ndarray[Any, Any]
) -> tuple[pa.LargeStringArray, np.ndarray[Any, Any]]:
    """Each topic of names in the order of pages once, and how many partitions it has."""
    bases, _ = split_partitions(names)
    if len(bases) < 2:
        return bases, partitions
    differs = pc.not_equal(bases[:-1], bases[1:]).to_numpy(zero_copy_only=False)
    last = np.append(np.flatnonzero(differs), len(bases) - 1)
    return bases.take(pa.array(last)), partitions[last]


def _merged(
    topics: pa.LargeStringArray,
    counts: np.ndarray[Any, Any],
    found: Sequence[Details],
    wants: frozenset[str],
) -> Details:
    columns: dict[str, Any] = {TOPIC: topics}
    for name, type_ in DETAIL_TYPES.items():
        if name not in wants:
            continue
        parts = [details for details in found if name in details.columns]
        if parts:
            keys = pa.concat_arrays([details.topics for details in parts])
            values = pa.concat_arrays([details.column(name) for details in parts])
            column = values.take(pc.index_in(topics, value_set=keys))
        else:
            column = pa.nulls(len(topics), type_)
        if name == "partitions" and column.null_count:
            column = pc.coalesce(column, _as_int32(topics, counts))
        columns[name] = column
    return Details(pa.RecordBatch.from_pydict(columns))


def _as_int32(topics: pa.LargeStringArray, counts: np.ndarray[Any, Any]) -> pa.Array[Any]:
    limit = np.iinfo(np.int32).max
    if len(counts) and counts.max() > limit:
        topic = topics[int(counts.argmax())].as_py()
        raise ListingFailed(
            f"Topic {topic[:200]!r} has a partition of index {counts.max() - 1}: clients count {limit} at most",
            cause=Cause.INTERNAL,
            reason="bad_topics",
        )
    return pa.array(counts.astype(np.int32))
