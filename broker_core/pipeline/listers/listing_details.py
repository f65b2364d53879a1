"""The details of an answer's topics: given with the listing, asked of the lister, or derived from the names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.concurrency import EACH_NAME
from broker_core.errors import Cause, ListingFailed
from broker_core.listing import (
    DETAIL_TYPES,
    TOPIC,
    Details,
    PageBlock,
    PageStart,
    PageWalk,
    Position,
    Selection,
    topic_ends,
)
from broker_core.pipeline.answer import bad_topics
from broker_core.pipeline.listers.verify_answer_claims import (
    CHECK_FACTOR,
    check_details,
    check_listed_details,
)
from broker_core.pipeline.request.listing_in_progress import AcceptedAnswer, ListingInProgress
from broker_core.pipeline.runs.worker_threads import Workers
from broker_core.plugin_api import DefaultLister, DescribeRequest
from broker_core.plugins import Dispatcher

__all__ = ["ListingDetails"]

_Array = np.ndarray[Any, Any]

#: The most topics in one question to a lister.
_AT_A_TIME: Final = 10_000
#: Names that are looked at together.
_BLOCK: Final = 64 * 1024
#: Bytes that an answer's details take for each topic, beside its name and the lister's own columns.
_EACH: Final = 64


@dataclass(slots=True, eq=False)
class ListingDetails:
    """Makes the details of answers; one for a pipeline."""

    _lister: DefaultLister
    _dispatcher: Dispatcher
    _workers: Workers

    async def accept(self, progress: ListingInProgress, details: Details, selection: Selection) -> Details:
        """Check details that came with topics. Raises :exc:`ListingFailed`."""
        size = details.batch.nbytes + selection.fields_size
        async with progress.held.leased(CHECK_FACTOR * size):
            work = partial(
                check_listed_details, details, progress.request.wants, selection, progress.request.pattern
            )
            names = len(details) + len(selection)
            details = await self._workers.call(progress.request.asker, work, EACH_NAME * names)
        await progress.held.grow(details.batch.nbytes)  # theirs, until the request is over
        return details

    async def of_selection(
        self, progress: ListingInProgress, accepted: AcceptedAnswer, listed: Selection, visible: Selection
    ) -> Details:
        """The details of topics of ``listed`` that have a name in ``visible``, after the masks."""
        asker, cost = progress.request.asker, EACH_NAME * len(listed)
        async with progress.held.leased(visible.fields_size + _EACH * len(visible)):
            seen = None if visible is listed else visible.row_array
            walk = PageWalk(listed)
            place: PageStart | None = PageStart()
            topics = [pa.array([], pa.large_string())]
            partitions = [np.zeros(0, np.int64)]
            while place is not None:
                block = await self._workers.call(asker, partial(walk.block, place, _BLOCK), cost)
                async with progress.held.leased(2 * block.nbytes):
                    work = partial(_topics_of, block, seen)
                    place, some, counts = await self._workers.call(asker, work, cost)
                    topics.append(some)
                    partitions.append(counts)
            given = [] if accepted.details is None else [accepted.details]
            return await self.of(
                progress, accepted, pa.concat_arrays(topics), np.concatenate(partitions), given, None
            )

    async def of(
        self,
        progress: ListingInProgress,
        accepted: AcceptedAnswer,
        topics: pa.LargeStringArray,
        partitions: _Array,
        given: Sequence[Details],
        cut_at: Position | None,
    ) -> Details:
        """The details of topics in the order of pages; ``partitions`` are their numbers as the names alone say.

        A topic may be there several times in a row. ``given`` came with the topics. ``cut_at`` is the end of a plugin's
        page: names after it are not known here.
        """
        wants, asker = progress.request.wants, progress.request.asker
        known = set(wants).intersection(*(details.columns for details in given)) if given else set()
        cost = EACH_NAME * len(topics)
        topics, counts = await self._workers.call(asker, partial(_distinct, topics, partitions), cost)
        found = list(given)
        missing = frozenset(wants - known)
        if missing and len(topics):
            found += await self._described(progress, accepted, topics, missing)
        if cut_at is not None and "partitions" in wants and len(topics) and topics[-1].as_py() == cut_at.base:
            if not any("partitions" in details.columns for details in found):
                raise bad_topics(
                    f"plugin {accepted.lister!r} ended a page within the partitions of {cut_at.base!r:.250}, and "
                    "no number of them: it needs details= with the column 'partitions', or broker_core_describe_topics",
                    plugin=accepted.lister,
                )
        size = topics.nbytes + _EACH * len(topics) + 2 * sum(details.batch.nbytes for details in found)
        await progress.held.grow(size)
        return await self._workers.call(asker, partial(_merged, topics, counts, found, wants), cost)

    async def _described(
        self,
        progress: ListingInProgress,
        accepted: AcceptedAnswer,
        topics: pa.LargeStringArray,
        wants: frozenset[str],
    ) -> list[Details]:
        """The lister's details of ``topics``, asked for now."""
        describers = self._describers(progress, accepted)
        asks_default = accepted.lister == self._lister.name and wants != {"partitions"}
        found: list[Details] = []
        request = progress.request
        for start in range(0, len(topics) if describers or asks_default else 0, _AT_A_TIME):
            part = topics[start : start + _AT_A_TIME]
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
        """The plugins that describe the topics: the ones before the lister that do not list, and the lister.

        As in lookups. A lister that does not describe knows names alone.
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
        """Check details that a plugin returned. Raises :exc:`ListingFailed`."""
        async with progress.held.leased(CHECK_FACTOR * details.batch.nbytes):
            work = partial(check_details, details, question.wants, question.names)
            await self._workers.call(question.asker, work, EACH_NAME * len(details))
        await progress.held.grow(details.batch.nbytes)
        return details


def _topics_of(block: PageBlock, seen: _Array | None) -> tuple[PageStart | None, pa.LargeStringArray, _Array]:
    """The start of the next block, the topics of a block, and their numbers of partitions.

    Of the rows in ``seen`` alone, if it is given.
    """
    found, following = block.read()
    if seen is not None:
        at = np.minimum(np.searchsorted(seen, found.rows), max(len(seen) - 1, 0))
        found = found.where(pa.array(seen[at] == found.rows if len(seen) else np.zeros(len(found), bool)))
    return following, *_distinct(found.topics, found.partitions)


def _distinct(topics: pa.LargeStringArray, partitions: _Array) -> tuple[pa.LargeStringArray, _Array]:
    """Each topic once, of columns that may repeat one several times in a row."""
    last = topic_ends(topics)
    return topics.take(pa.array(last)), partitions[last]


def _merged(
    topics: pa.LargeStringArray,
    counts: _Array,
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


def _as_int32(topics: pa.LargeStringArray, counts: _Array) -> pa.Array[Any]:
    limit = np.iinfo(np.int32).max
    if len(counts) and counts.max() > limit:
        topic = topics[int(counts.argmax())].as_py()
        raise ListingFailed(
            f"Topic {topic[:200]!r} has a partition of index {counts.max() - 1}: clients count {limit} at most",
            cause=Cause.INTERNAL,
            reason="bad_topics",
        )
    return pa.array(counts.astype(np.int32))
