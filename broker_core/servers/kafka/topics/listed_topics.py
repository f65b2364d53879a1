"""All topics of a namespace that a caller may see, encoded: whole, or a page. ACLs are a predicate of the use case."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.access import Asker
from broker_core.concurrency import EACH_TOPIC_OF_TABLE, ON_LOOP
from broker_core.kafka import INTERNAL
from broker_core.kafka.acls import Operation
from broker_core.listing import RenderedChunk, TopicChunk, TopicTable
from broker_core.memory import PermitError, permits_refused
from broker_core.pipeline import ListingTables, Pipeline
from broker_core.servers.kafka.callers.authorizer import Authorizer, Caller
from broker_core.servers.kafka.pages.answer_page import AnswerPage
from broker_core.servers.kafka.pages.kept_answers import KeptRequest
from broker_core.servers.kafka.pages.topic_pages import topics_of_page
from broker_core.service import Allowed, ListTopics, VisibleTopics
from broker_core.wire.kafka import Api, Encoded, Fields, RawRows
from broker_core.wire.kafka.topic_fragments import Family, with_operations

__all__ = ["ListedTopics", "are_many", "copied_bytes", "fragments", "is_rendered", "rendered", "with_rows"]

#: Names from which on they are looked for in the table of all topics.
_MANY: Final = 100
#: A table is looked through for names if it has at most so many topics for each of them.
_SPARSE: Final = 32
#: About the bytes of a topic.
_TOPIC_BYTES: Final = 80

_T = TypeVar("_T")
_Array = np.ndarray[Any, Any]
Operations: TypeAlias = "Sequence[_Array | None] | None"


def are_many(names: Sequence[Any]) -> bool:
    """Whether so many names are looked for in the table of all topics (:meth:`ListedTopics.named_encoded`)."""
    return len(names) >= _MANY


class ListedTopics:
    """Topics for callers; ``tables`` is ``None`` before a cluster: then all data is from plugins and brokers."""

    def __init__(
        self,
        pipeline: Pipeline,
        authorizer: Authorizer,
        tables: ListingTables | None,
    ) -> None:
        self._pipeline = pipeline
        self._authorizer = authorizer
        self._tables = tables
        self.every = ListTopics(pipeline, tables)

    async def all_encoded(
        self,
        caller: Caller,
        family: Family,
        *,
        operations: bool = False,
        internal: bool = True,
        acls: bool = True,
    ) -> Encoded:
        """All visible topics as elements of an array, or the topics of the wanted page; ``operations``: with the
        authorized operations of this caller. ``acls`` false asks none.

        ``internal`` false leaves out Kafka's internal topics. Raises :exc:`~broker_core.errors.ListingFailed`.
        """
        visible = await self.of(caller, acls=acls)
        if not internal:
            visible = visible.without_names(INTERNAL)
        if caller.page is not None:
            return topics_of_page(
                caller.page,
                visible,
                family,
                lambda chunk: self._authorizer.chunk_operations(caller, (chunk,))[0] if operations else None,
            )
        chunks, bits = await self._rendered(caller, visible, family, operations=operations)
        copied = copied_bytes(visible, chunks, bits)
        if copied:
            await self._hold(caller, copied)
        count = copied // _TOPIC_BYTES
        return await self._beside(caller.asker, count, fragments, visible, family, chunks, bits)

    async def named_page(
        self, caller: Caller, page: AnswerPage, kept: KeptRequest, family: Family
    ) -> Encoded | None:
        """The page of the topics that a request names, each once.

        ``None`` if the caller may not see all of them, or if they are few of many. Raises
        :exc:`~broker_core.errors.ListingFailed`.
        """
        visible = await self.of(caller)
        table = visible.table
        if table.size > _SPARSE * len(kept.rows):
            return None
        found, masks = (lambda: None, None) if kept.found is None else kept.found
        if found() is not table:
            masks = await self._beside(caller.asker, len(kept.rows), _masks_of, table, kept.rows)
            kept.found = weakref.ref(table), masks
        some = None if masks is None else visible.among(masks)
        if some is None or some.count < len(kept.rows):
            return None
        return topics_of_page(page, some, family, lambda _: None)

    async def named_encoded(
        self, caller: Caller, names: pa.LargeBinaryArray, family: Family, *, operations: bool = False
    ) -> tuple[Encoded, Sequence[str]] | None:
        """The topics of these names, each once, that the caller may see, in their order; and the other names.

        ``None`` if they are few of many: looking at each of them is quicker then. Raises
        :exc:`~broker_core.errors.ListingFailed`.
        """
        visible = await self.of(caller)
        if visible.table.size > _SPARSE * len(names):
            return None
        chunks, bits = await self._rendered(caller, visible, family, operations=operations)
        made = await self._beside(
            caller.asker, len(names), named_fragments, visible, family, chunks, bits, names
        )
        await self._hold(caller, sum(map(len, made[0].pieces)))
        return made

    async def unlisted(self, caller: Caller, names: Sequence[str]) -> Sequence[str]:
        """The names that are of no topic which the caller may see; all of them if they are few of many topics.

        Raises :exc:`~broker_core.errors.ListingFailed`.
        """
        visible = await self.of(caller)
        if visible.table.size > _SPARSE * len(names):
            return names
        return await self._beside(caller.asker, len(names), _unlisted, visible, names)

    async def _rendered(
        self, caller: Caller, visible: VisibleTopics, family: Family, *, operations: bool
    ) -> tuple[list[RenderedChunk], Operations]:
        """Every chunk, encoded, and if wanted the caller's operations on each topic."""
        bits = None
        if operations and self._authorizer.enabled:
            table = visible.table
            bits = await self._beside(
                caller.asker, table.size, self._authorizer.chunk_operations, caller, table.chunks
            )
        size = 0 if is_rendered(visible, family) else visible.table.size
        chunks = await self._beside(caller.asker, size, rendered, visible, family)
        if size:
            await self._settle(caller, visible)
        caller.pinned.append(chunks)
        return chunks, bits

    async def _beside(self, asker: Asker, topics: int, work: Callable[..., _T], *arguments: Any) -> _T:
        """The result of ``work`` for so many topics: by the threads of listings if they are many."""
        if topics * EACH_TOPIC_OF_TABLE <= ON_LOOP:
            return work(*arguments)
        return await self._pipeline.workers.call(asker, partial(work, *arguments))

    async def _settle(self, caller: Caller, visible: VisibleTopics) -> None:
        """Count the memory of encoded topics: with the table, or, if that has no room, with this answer."""
        fresh = [
            (chunk, family, rendered)
            for chunk in visible.table.chunks
            for family, rendered in chunk.take_unheld()
        ]
        parts = [(rendered, rendered.nbytes) for _, _, rendered in fresh]
        if not fresh or (
            visible.is_kept and self._tables is not None and self._tables.hold(caller.namespace, parts)
        ):
            return
        for chunk, family, _ in fresh:
            chunk.forget(family)
        await self._hold(caller, sum(size for _, size in parts))

    async def _hold(self, caller: Caller, size: int) -> None:
        """Hold permits for memory of this answer, until it has left."""
        try:
            permit = await self._pipeline.permits.heap.acquire(size, key=caller.asker.connection)
        except PermitError as error:
            raise permits_refused("heap", error) from error
        caller.hold_permit(permit)

    async def of(self, caller: Caller, *, acls: bool = True) -> VisibleTopics:
        """All topics that the caller may see. Raises :exc:`~broker_core.errors.ListingFailed`."""
        allowed: Allowed | None = None
        if acls and self._authorizer.enabled:
            authorizer = self._authorizer

            def allowed(chunk: TopicChunk) -> Any:
                return authorizer.chunk_mask(caller, Operation.DESCRIBE, chunk)

        hold = partial(self._hold, caller)
        return await self.every.of(caller.asker, caller.namespace, hold, allowed, caller.deadline)


def rendered(visible: VisibleTopics, family: Family) -> list[RenderedChunk]:
    """Every chunk, encoded; the bytes are kept with the chunks."""
    return [family.of(chunk) for chunk in visible.table.chunks]


def is_rendered(visible: VisibleTopics, family: Family) -> bool:
    """Whether :func:`rendered` has nothing to encode."""
    return all(chunk.known(family.key) is not None for chunk in visible.table.chunks)


def copied_bytes(
    visible: VisibleTopics, chunks: Sequence[RenderedChunk], operations: Operations = None
) -> int:
    """Bytes that :func:`fragments` copies."""
    return sum(
        len(chunk.data)
        for number, chunk in enumerate(chunks)
        if visible.masks[number] is not None or (operations is not None and operations[number] is not None)
    )


def fragments(
    visible: VisibleTopics, family: Family, chunks: Sequence[RenderedChunk], operations: Operations = None
) -> Encoded:
    """All visible topics as the elements of an array, of the chunks of :func:`rendered`.

    ``operations`` are the bits of the caller's operations on each topic, by chunk; ``None``: the family's.
    """
    pieces = []
    for number, (chunk, mask) in enumerate(zip(chunks, visible.masks, strict=True)):
        bits = None if operations is None else operations[number]
        pieces.append((chunk if bits is None else with_operations(chunk, family, bits)).joined(mask))
    return Encoded(visible.count, pieces)


def with_rows(api: Api, version: int, listed: Encoded, rows: Sequence[Fields]) -> Encoded:
    """Listed topics, followed by rows of an answer, which may have errors."""
    others = api.response_elements("topics", rows, version)
    return Encoded(listed.count + others.count, [*listed.pieces, *others.pieces], others.error)


def named_fragments(
    visible: VisibleTopics,
    family: Family,
    chunks: Sequence[RenderedChunk],
    operations: Operations,
    names: pa.LargeBinaryArray,
) -> tuple[Encoded, Sequence[str]]:
    """The topics of these names, each once, as the elements of an array in the order of the names; and the names of
    invisible topics.
    """
    columns, count = [pa.array([], pa.large_binary())], 0
    places = np.full(len(names), -1, np.int64)
    for number, rows in enumerate(_by_chunk(visible.table, pc.index_in, names)):
        there, mask = rows >= 0, visible.masks[number]
        at = np.flatnonzero(there if mask is None else there & mask)
        if not len(at):
            continue
        bits = None if operations is None else operations[number]
        encoded = chunks[number] if bits is None else with_operations(chunks[number], family, bits)
        column = encoded.column()
        columns.append(column if len(at) == len(rows) else column.take(pa.array(at)))
        places[rows[at]] = np.arange(count, count + len(at))
        count += len(at)
    missing = places < 0
    made = RenderedChunk.of_column(pa.concat_arrays(columns).take(pa.array(places[~missing])))
    others = names.filter(pa.array(missing)).to_pylist()
    return Encoded(count, [made.data]), [name.decode("utf-8", "replace") for name in others]


def _unlisted(visible: VisibleTopics, names: Sequence[str]) -> list[str]:
    wanted = pa.array([name.encode("utf-8", "replace") for name in names], pa.large_binary())
    missing = np.ones(len(names), np.bool_)
    for rows, mask in zip(_by_chunk(visible.table, pc.index_in, wanted), visible.masks, strict=True):
        missing[rows[rows >= 0 if mask is None else (rows >= 0) & mask]] = False
    return [names[int(place)] for place in np.flatnonzero(missing)]


def _by_chunk(table: TopicTable, look: Callable[..., Any], names: pa.LargeBinaryArray) -> list[_Array]:
    """The result of an Arrow function for each topic of a table, by chunk, with ``names`` as the set of values: a place
    in these, -1 for none, or whether it is in them.
    """
    if not table.chunks:
        return []
    every = pa.chunked_array([chunk.names for chunk in table.chunks], pa.large_binary())
    found = look(every, value_set=names).combine_chunks()
    if found.null_count:
        found = found.fill_null(-1)
    ends = np.cumsum([len(chunk.names) for chunk in table.chunks])
    return np.split(found.to_numpy(zero_copy_only=False), ends[:-1])


def _masks_of(table: TopicTable, rows: RawRows) -> list[_Array] | None:
    """A mask of the topics with a name in rows, by chunk; ``None`` for unusual names."""
    names = rows.column("name")
    return None if names is None else _by_chunk(table, pc.is_in, names)
