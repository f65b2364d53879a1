"""The topics that a caller may see: all of a namespace, or some by name or by id. One path to all of Kafka's APIs.

They are listed by the pipeline, so that rules, plugins and masks have their say, and then narrowed by ACLs. Nothing of
it is remembered here but what belongs to a listing.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.catalog import SqliteCatalog
from broker_core.kafka.acls.bindings import Operation
from broker_core.listing.details import Details
from broker_core.listing.listing import Listing, Selection
from broker_core.listing.topic_table import TopicTable
from broker_core.names import PERSISTENT, Mode, NamespaceName
from broker_core.names.name_columns import without_ends
from broker_core.names.partition_columns import partitioned_local_names
from broker_core.pipeline import Pipeline
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.servers.kafka.authorizer import Authorizer
from broker_core.servers.kafka.caller import Caller
from broker_core.servers.kafka.named_topic import NamedTopic
from broker_core.servers.kafka.topics_by_name import TopicRecords, TopicsByName
from broker_core.servers.kafka.visible_topics import VisibleTopics, names_of
from broker_core.wire.kafka import Encoded
from broker_core.wire.kafka.topic_fragments import Family

__all__ = ["ListedTopics", "TopicTables"]

_Array = np.ndarray[Any, Any]
_WANTS: Final = frozenset({"partitions", "topic_id"})
#: Topics up to which columns are looked at on the event loop.
_FEW: Final = 10_000


class TopicTables(TopicRecords, Protocol):
    """Where the tables of listings of the catalogue are (:class:`broker_core.catalog.CatalogLister`)."""

    def now(self, listing: Listing) -> TopicTable | None: ...

    async def of(self, listing: Listing) -> TopicTable | None: ...


class ListedTopics:
    """``tables`` and ``catalog`` are ``None`` before a cluster: then all is what plugins and brokers tell."""

    def __init__(
        self,
        pipeline: Pipeline,
        authorizer: Authorizer,
        tables: TopicTables | None,
        catalog: SqliteCatalog | None,
    ) -> None:
        self._pipeline = pipeline
        self._authorizer = authorizer
        self._tables = tables
        self._by_name = TopicsByName(pipeline, authorizer, catalog, tables, self.of)

    async def of(self, caller: Caller) -> VisibleTopics:
        """All topics that the caller may see. Raises :exc:`~broker_core.errors.ListingFailed`."""
        visible = await self._listed(caller)
        masks = [
            _both(mask, self._authorizer.chunk_mask(caller, Operation.DESCRIBE, chunk))
            for chunk, mask in zip(visible.table.chunks, visible.masks, strict=True)
        ]
        return VisibleTopics(visible.table, masks)

    async def all_encoded(
        self, caller: Caller, family: Family, *, operations: bool = False, internal: bool = True
    ) -> Encoded:
        """The same as elements of an array; ``operations``: with the authorized operations of this caller.

        ``internal`` false leaves out what Kafka keeps for itself. Raises :exc:`~broker_core.errors.ListingFailed`.
        """
        visible = await self.of(caller)
        if not internal:
            visible = visible.without([chunk.internal for chunk in visible.table.chunks])
        bits = None
        if operations and self._authorizer.enabled:
            bits = [self._authorizer.chunk_operations(caller, chunk) for chunk in visible.table.chunks]
        size = 0 if visible.is_rendered(family) else visible.table.size
        encoded: Encoded = await _off_loop(size, visible.fragments, family, bits)
        return encoded

    async def named(
        self,
        caller: Caller,
        names: Sequence[str],
        *,
        operation: Operation | None = Operation.DESCRIBE,
        action: str = "describe",
    ) -> list[NamedTopic]:
        """The topics of these names in the order of the names, each with the code that it is answered with.

        ACLs have to allow ``operation``, ``None``: none are asked; rules and gates the ``action``.
        """
        return await self._by_name.named(caller, names, operation=operation, action=action)

    async def by_ids(
        self,
        caller: Caller,
        ids: Sequence[uuid.UUID],
        *,
        operation: Operation | None = Operation.DESCRIBE,
        action: str = "describe",
    ) -> list[NamedTopic]:
        """The same of topics by their ids."""
        return await self._by_name.by_ids(caller, ids, operation=operation, action=action)

    async def _listed(self, caller: Caller) -> VisibleTopics:
        """What the pipeline lists, at one version of the namespace."""
        wants = _WANTS if self._tables is None else frozenset[str]()
        if self._pipeline.dispatcher.lists(caller.namespace):
            wants = _WANTS
        while True:
            request = ListingRequest(
                caller.namespace, Mode.PERSISTENT, asker=caller.asker, deadline=caller.deadline, wants=wants
            )
            answer = self._pipeline.answer_now(request) or await self._pipeline.answer(request)
            try:
                selection = answer.selection
                assert selection is not None  # the request has no hash
                if wants:
                    assert answer.details is not None
                    table = await _off_loop(len(answer.details), _table_of, answer.details, caller.namespace)
                    return VisibleTopics(table, [None] * len(table.chunks))
                if answer.lister != self._pipeline.lister.name:  # a plugin that lists has come meanwhile
                    wants = _WANTS
                    continue
                assert self._tables is not None
                found = await self._tables.of(selection.listing)
                if found is None:  # the namespace has changed since
                    continue
                visible: VisibleTopics = await _off_loop(
                    len(selection), _masked, found, selection, caller.namespace
                )
                return visible
            finally:
                answer.release()


async def _off_loop(size: int, work: Any, *arguments: Any) -> Any:
    return work(*arguments) if size <= _FEW else await asyncio.to_thread(work, *arguments)


def _masked(table: TopicTable, selection: Selection, namespace: NamespaceName) -> VisibleTopics:
    """The topics of a table of which some name is in the selection."""
    if selection.is_whole:
        return VisibleTopics(table, [None] * len(table.chunks))
    bases = partitioned_local_names(_locals(selection.names, namespace)).cast(pa.large_binary())
    marks = pc.is_in(names_of(table), value_set=bases.unique()).to_numpy(zero_copy_only=False)
    ends = np.cumsum([len(chunk) for chunk in table.chunks])
    return VisibleTopics(table, np.split(marks, ends[:-1]) if len(ends) else [])


def _table_of(details: Details, namespace: NamespaceName) -> TopicTable:
    """The table of what plugins or brokers tell of topics."""
    names = _locals(details.topics, namespace).cast(pa.large_binary())
    partitions = details.column("partitions").to_numpy(zero_copy_only=False).astype(np.int32)
    ids = None
    if "topic_id" in details.columns:
        told = details.column("topic_id")
        if told.null_count < len(told):
            ids = pc.coalesce(told, pa.scalar(bytes(16), pa.binary(16))).cast(pa.large_binary())
    return TopicTable.of_columns(names, partitions, ids)


def _locals(names: pa.LargeStringArray, namespace: NamespaceName) -> pa.LargeStringArray:
    return without_ends(names, len(f"{PERSISTENT}://{namespace}/"), 0)


def _both(first: _Array | None, second: _Array | None) -> _Array | None:
    if first is None or second is None:
        return second if first is None else first
    both: _Array = first & second
    return both
