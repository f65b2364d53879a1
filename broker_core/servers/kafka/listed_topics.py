"""All topics of a namespace that a caller may see.

They are listed by the pipeline, so that rules, plugins and masks have their say, and then narrowed by ACLs. Nothing of
it is remembered here but what belongs to a listing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.errors import TooManyRequests
from broker_core.kafka.acls.bindings import Operation
from broker_core.kafka.topic_names import INTERNAL, legal_names
from broker_core.listing.details import Details
from broker_core.listing.listing import Listing
from broker_core.listing.topic_table import TopicTable
from broker_core.memory.permit_errors import PermitError
from broker_core.names import Mode, NamespaceName
from broker_core.pipeline import Answer, Pipeline
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.servers.kafka.authorizer import Authorizer
from broker_core.servers.kafka.caller import Caller
from broker_core.servers.kafka.selection_masks import SelectionMasks, local_names
from broker_core.servers.kafka.topic_pages import Cursor, Page, page
from broker_core.servers.kafka.visible_topics import VisibleTopics
from broker_core.wire.kafka import Encoded
from broker_core.wire.kafka.topic_fragments import Family

__all__ = ["ListedTopics", "TopicTables"]

_Array = np.ndarray[Any, Any]
_WANTS: Final = frozenset({"partitions", "topic_id"})
#: Topics up to which columns are looked at on the event loop.
_FEW: Final = 10_000
#: About the bytes of one.
_TOPIC_BYTES: Final = 80


class TopicTables(Protocol):
    """Where the tables of listings of the catalogue are (:class:`broker_core.catalog.CatalogLister`)."""

    def now(self, listing: Listing) -> TopicTable | None: ...

    async def of(self, listing: Listing) -> TopicTable | None: ...

    def hold(self, namespace: NamespaceName, parts: Sequence[tuple[object, int]]) -> bool: ...


class ListedTopics:
    """``tables`` is ``None`` before a cluster: then all is what plugins and brokers tell."""

    def __init__(
        self,
        pipeline: Pipeline,
        authorizer: Authorizer,
        tables: TopicTables | None,
    ) -> None:
        self._pipeline = pipeline
        self._authorizer = authorizer
        self._tables = tables
        #: By each namespace that was listed, how many topics have names that Kafka cannot have.
        self.left_out: dict[NamespaceName, int] = {}
        self._masks = SelectionMasks()

    async def all_encoded(
        self, caller: Caller, family: Family, *, operations: bool = False, internal: bool = True
    ) -> Encoded:
        """The same as elements of an array; ``operations``: with the authorized operations of this caller.

        ``internal`` false leaves out what Kafka keeps for itself. Raises :exc:`~broker_core.errors.ListingFailed`.
        """
        visible = await self.of(caller)
        if not internal:
            visible = visible.without_names(INTERNAL)
        bits = None
        if operations and self._authorizer.enabled:
            chunks = visible.table.chunks
            bits = await _off_loop(visible.table.size, self._authorizer.chunk_operations, caller, chunks)
        size = 0 if visible.is_rendered(family) else visible.table.size
        rendered = await _off_loop(size, visible.rendered, family)
        if size:
            await self._settle(caller, visible)
        caller.pinned.append(rendered)
        copied = visible.copied_bytes(rendered, bits)
        if copied:
            await self._hold(caller, copied)
        encoded: Encoded = await _off_loop(copied // _TOPIC_BYTES, visible.fragments, family, rendered, bits)
        return encoded

    async def page(self, caller: Caller, start: Cursor, budget: int, node_id: int) -> Page:
        """The page of topics from ``start`` on. Raises :exc:`~broker_core.errors.ListingFailed`."""
        visible = await self.of(caller)
        found = page(
            visible,
            start,
            budget,
            node_id,
            lambda chunk: self._authorizer.chunk_operations(caller, (chunk,))[0],
        )
        await self._settle(caller, visible)
        caller.pinned.append(visible.table)
        return found

    async def _settle(self, caller: Caller, visible: VisibleTopics) -> None:
        """Count the memory of what was encoded: with the table, or, where that has no room, with this answer."""
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
            raise TooManyRequests("Failed due to heap memory limit exceeded", reason="heap") from error
        caller.hold_permit(permit)

    async def of(self, caller: Caller) -> VisibleTopics:
        """All topics that the caller may see, at one version of the namespace.

        Raises :exc:`~broker_core.errors.ListingFailed`.
        """
        wants = _WANTS if self._tables is None else frozenset[str]()
        if self._pipeline.dispatcher.describe_hook.plugins(caller.namespace):
            wants = _WANTS
        while True:
            request = ListingRequest(
                caller.namespace, Mode.PERSISTENT, asker=caller.asker, deadline=caller.deadline, wants=wants
            )
            answer = self._pipeline.answer_now(request, tentative=True)
            if answer is None:
                answer = await self._pipeline.answer(request, tentative=True)
            try:
                selection = answer.selection
                assert selection is not None  # the request has no hash
                if wants:
                    assert answer.details is not None
                    table = await _off_loop(len(answer.details), _table_of, answer.details, caller.namespace)
                    self.left_out[caller.namespace] = table.left_out
                    await self._hold(caller, table.nbytes)
                    every = VisibleTopics(table, [None] * len(table.chunks), is_kept=False)
                    return self._allowed(caller, every, answer)
                if answer.lister != self._pipeline.lister.name:  # a plugin that lists has come meanwhile
                    wants = _WANTS
                    answer.replaced = True
                    continue
                assert self._tables is not None
                found = await self._tables.of(selection.listing)
                if found is None:  # the namespace has changed since
                    answer.replaced = True
                    continue
                self.left_out[caller.namespace] = found.left_out
                if self._tables.now(selection.listing) is not found:
                    await self._hold(caller, found.nbytes)
                visible = VisibleTopics(found, [None] * len(found.chunks))
                if not selection.is_whole:
                    visible = await _off_loop(len(selection), self._masks.of, found, selection)
                return self._allowed(caller, visible, answer)
            finally:
                answer.release()

    def _allowed(self, caller: Caller, visible: VisibleTopics, answer: Answer) -> VisibleTopics:
        """What ACLs leave of the topics of an answer."""
        allowed = visible
        if self._authorizer.enabled:
            masks = [
                _both(mask, self._authorizer.chunk_mask(caller, Operation.DESCRIBE, chunk))
                for chunk, mask in zip(visible.table.chunks, visible.masks, strict=True)
            ]
            allowed = VisibleTopics(visible.table, masks, visible.is_kept)
        if self._pipeline.sight:  # somebody is told
            answer.shown = allowed.count
        return allowed


async def _off_loop(size: int, work: Any, *arguments: Any) -> Any:
    return work(*arguments) if size <= _FEW else await asyncio.to_thread(work, *arguments)


def _table_of(details: Details, namespace: NamespaceName) -> TopicTable:
    """The table of what plugins or brokers tell of topics."""
    names = local_names(details.topics, namespace).cast(pa.large_binary())
    partitions = details.column("partitions").to_numpy(zero_copy_only=False).astype(np.int32)
    ids = None
    if "topic_id" in details.columns:
        told = details.column("topic_id")
        if told.null_count < len(told):
            ids = pc.coalesce(told, pa.scalar(bytes(16), pa.binary(16))).cast(pa.large_binary())
    return TopicTable.of_columns(names, partitions, ids, legal_names)


def _both(first: _Array | None, second: _Array | None) -> _Array | None:
    if first is None or second is None:
        return second if first is None else first
    both: _Array = first & second
    return both
