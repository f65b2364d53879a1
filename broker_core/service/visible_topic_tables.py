"""All topics of a namespace that an asker may see, as a table with masks: for protocols that list topics, not names.

The pipeline lists them, so that rules, plugins and masks apply, and ACLs narrow them. Nothing is remembered here but
what belongs to a listing: the masks of topics with a name that plugins' masks show, for all equal selections of names,
of which a topic with partitions has many.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.access import Asker
from broker_core.concurrency import EACH_TOPIC_OF_TABLE
from broker_core.kafka import legal_names
from broker_core.listing import Details, RowsKey, Selection, TopicChunk, TopicTable, rows_key_of
from broker_core.names import PERSISTENT, Mode, NamespaceName, partitioned_local_names, without_ends
from broker_core.pipeline import ListingTables, Pipeline
from broker_core.plugin_api import ListingRequest

__all__ = [
    "Allowed",
    "ListTopics",
    "SelectionMasks",
    "VisibleTopics",
    "local_names",
    "names_of",
]

_WANTS: Final = frozenset({"partitions", "topic_id"})


class ListTopics:
    """Lists topics as tables; ``tables`` is ``None`` before a cluster, where plugins and brokers give all details."""

    def __init__(self, pipeline: Pipeline, tables: ListingTables | None) -> None:
        self._pipeline = pipeline
        self._tables = tables
        #: The number of topics with names that Kafka cannot have, by each namespace that was listed.
        self.left_out: dict[NamespaceName, int] = {}
        self._masks = SelectionMasks()

    async def of(
        self,
        asker: Asker,
        namespace: NamespaceName,
        hold: Callable[[int], Awaitable[None]],
        allowed: Allowed | None,
        deadline: float,
    ) -> VisibleTopics:
        """All persistent topics that an asker may see, at one version of the namespace; ``allowed`` are ACLs.

        ``hold`` holds permits for bytes that the answer needs until it has left. Raises
        :exc:`~broker_core.errors.ListingFailed`.
        """
        plugins = {plugin.name for plugin, _ in self._pipeline.dispatcher.describe_hook.plugins(namespace)}
        tables = self._tables
        if tables is not None and (plugins or {self._pipeline.lister.name}) != {tables.lister}:
            tables = None  # others know of these topics
        wants = _WANTS if tables is None else frozenset[str]()
        request = ListingRequest(namespace, Mode.PERSISTENT, asker=asker, deadline=deadline, wants=wants)
        answer = self._pipeline.answer_now(request, tables=tables)
        if answer is None:
            answer = await self._pipeline.answer(request, tables=tables)
        try:
            selection = answer.selection
            assert selection is not None  # the request has no hash
            if answer.table is not None:
                table, is_kept = answer.table
            elif answer.details is not None:
                table, is_kept = await self._described(asker, namespace, answer.details), False
            else:  # a plugin that lists has come meanwhile
                answer.release()  # its permits are not held while others are waited for
                return await self.of(asker, namespace, hold, allowed, deadline)
            self.left_out[namespace] = table.left_out
            if not is_kept:
                await hold(table.nbytes)
            visible = VisibleTopics(table, [None] * len(table.chunks), is_kept=answer.table is not None)
            if answer.table is not None and not selection.is_whole:
                mask = partial(self._masks.of, table, selection)
                duration = len(selection) * EACH_TOPIC_OF_TABLE
                visible = await self._pipeline.workers.call(asker, mask, duration)
            if allowed is not None:
                visible = visible.allowed(allowed)
            if self._pipeline.has_sinks:
                answer.shown = visible.count
            return visible
        finally:
            answer.release()

    async def _described(self, asker: Asker, namespace: NamespaceName, details: Details) -> TopicTable:
        """The table of details from plugins or brokers, completed by what the tables know."""
        work = partial(_table_of, details, namespace)
        table = await self._pipeline.workers.call(asker, work, len(details) * EACH_TOPIC_OF_TABLE)
        return table if self._tables is None else await self._tables.completed(table, asker)


def _table_of(details: Details, namespace: NamespaceName) -> TopicTable:
    """The table of details from plugins or brokers."""
    names = local_names(details.topics, namespace).cast(pa.large_binary())
    partitions = details.column("partitions").to_numpy(zero_copy_only=False).astype(np.int32)
    ids = None
    if "topic_id" in details.columns:
        column = details.column("topic_id")
        if column.null_count < len(column):
            ids = pc.coalesce(column, pa.scalar(bytes(16), pa.binary(16))).cast(pa.large_binary())
    return TopicTable.of_columns(names, partitions, ids, legal_names)


_Array = np.ndarray[Any, Any]
#: Whether ACLs allow each topic of a chunk; ``None``: all.
Allowed: TypeAlias = Callable[[TopicChunk], _Array | None]


@dataclass(frozen=True, slots=True)
class VisibleTopics:
    """Topics of a table that an asker may see.

    ``masks`` has one for each chunk: whether each of its topics is visible, ``None`` if all are.

    ``is_kept``: the table is kept for others, and so are encoded parts of it.
    """

    table: TopicTable
    masks: Sequence[_Array | None]
    is_kept: bool = True

    @property
    def count(self) -> int:
        """The number of visible topics."""
        return sum(
            len(chunk) if mask is None else int(mask.sum())
            for chunk, mask in zip(self.table.chunks, self.masks, strict=True)
        )

    def without_names(self, names: Iterable[str]) -> VisibleTopics:
        """The topics without a few, by name."""
        masks: list[Any] = list(self.masks)
        for name in names:
            number, row = self.table.from_name(name.encode())
            if number < len(masks) and self.table.chunks[number].name(row) == name.encode():
                mask = masks[number]
                masks[number] = (
                    np.ones(len(self.table.chunks[number]), np.bool_) if mask is None else mask.copy()
                )
                masks[number][row] = False
        return VisibleTopics(self.table, masks, self.is_kept)

    def among(self, masks: Sequence[_Array | None]) -> VisibleTopics:
        """The topics that these masks, one for each chunk, have as well."""
        both = [_both(mine, mask) for mine, mask in zip(self.masks, masks, strict=True)]
        return VisibleTopics(self.table, both, self.is_kept)

    def allowed(self, allowed: Allowed) -> VisibleTopics:
        """The topics that are allowed."""
        return self.among([allowed(chunk) for chunk in self.table.chunks])


def names_of(table: TopicTable) -> pa.LargeBinaryArray:
    """All names, in one column."""
    columns = [chunk.names for chunk in table.chunks]
    return pa.concat_arrays(columns) if columns else pa.array([], pa.large_binary())


def _both(first: _Array | None, second: _Array | None) -> _Array | None:
    if first is None or second is None:
        return second if first is None else first
    both: _Array = first & second
    return both


#: Masks of a table that are kept, of a bit for each topic: the permits of its chunks count them before they are made.
_KEPT: Final = 32


class SelectionMasks:
    """Masks by selection, for any thread. A selection is known by its rows: a table belongs to one listing."""

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[TopicTable, OrderedDict[RowsKey, _Array]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def of(self, table: TopicTable, selection: Selection) -> VisibleTopics:
        """The topics of a table with a name in ``selection``, which is of the table's listing."""
        key = rows_key_of(selection)
        with self._lock:
            kept = self._kept.setdefault(table, OrderedDict())
            packed = kept.get(key)
            if packed is not None:
                kept.move_to_end(key)
        if packed is None:
            packed = np.packbits(_marks(table, selection))
            with self._lock:
                kept[key] = packed
                if len(kept) > _KEPT:
                    kept.popitem(last=False)
        return VisibleTopics(table, _by_chunk(table, packed))


def local_names(names: pa.LargeStringArray, namespace: NamespaceName) -> pa.LargeStringArray:
    """Full names of persistent topics without the namespace."""
    return without_ends(names, len(f"{PERSISTENT}://{namespace}/"), 0)


def _marks(table: TopicTable, selection: Selection) -> _Array:
    names = local_names(selection.names, selection.listing.namespace)
    bases = partitioned_local_names(names).cast(pa.large_binary())
    marks: _Array = pc.is_in(names_of(table), value_set=bases.unique()).to_numpy(zero_copy_only=False)
    return marks


def _by_chunk(table: TopicTable, packed: _Array) -> Sequence[_Array]:
    if not table.chunks:
        return []
    marks = np.unpackbits(packed, count=table.size).view(np.bool_)
    return np.split(marks, np.cumsum([len(chunk) for chunk in table.chunks])[:-1])
