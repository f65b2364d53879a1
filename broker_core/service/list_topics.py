"""All topics of a namespace that an asker may see, as a table with masks: for protocols that list topics, not names.

The pipeline lists them, so that rules, plugins and masks apply, and ACLs narrow them. Nothing is remembered here but
what belongs to a listing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.access import Asker
from broker_core.concurrency import EACH_TOPIC_OF_TABLE
from broker_core.kafka import legal_names
from broker_core.listing import Details, Listing, TopicTable
from broker_core.names import Mode, NamespaceName
from broker_core.pipeline import Answer, Pipeline
from broker_core.plugin_api import ListingRequest
from broker_core.service.selection_masks import SelectionMasks, local_names
from broker_core.service.visible_topics import Allowed, VisibleTopics

__all__ = ["ListTopics", "ListingTables"]

_WANTS: Final = frozenset({"partitions", "topic_id"})


class ListingTables(Protocol):
    """The tables of listings, of the catalogue (:class:`broker_core.catalog.CatalogLister`) or a cluster."""

    @property
    def lister(self) -> str:
        """The name of the lister whose listings have tables."""

    async def of(self, listing: Listing) -> tuple[TopicTable, bool] | None:
        """The table of a listing, and whether it is kept under permits of its own; ``None`` if there is a newer one."""

    def hold(self, namespace: NamespaceName, parts: Sequence[tuple[object, int]]) -> bool: ...

    async def completed(self, table: TopicTable, asker: Asker) -> TopicTable:
        """Topics of another lister, with all known details."""


class ListTopics:
    """Lists topics as tables; ``tables`` is ``None`` before a cluster, where plugins and brokers give all details."""

    def __init__(self, pipeline: Pipeline, tables: ListingTables | None) -> None:
        self._pipeline = pipeline
        self._tables = tables
        #: By each namespace that was listed, how many topics have names that Kafka cannot have.
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
        wants = _WANTS if self._tables is None else frozenset[str]()
        lister = None if self._tables is None else self._tables.lister
        others = self._pipeline.dispatcher.describe_hook.plugins(namespace)
        if any(plugin.name != lister for plugin, _ in others):
            wants = _WANTS
        while True:
            request = ListingRequest(namespace, Mode.PERSISTENT, asker=asker, deadline=deadline, wants=wants)
            answer = self._pipeline.answer_now(request, tentative=True)
            if answer is None:
                answer = await self._pipeline.answer(request, tentative=True)
            try:
                selection = answer.selection
                assert selection is not None  # the request has no hash
                if wants:
                    assert answer.details is not None
                    work = partial(_table_of, answer.details, namespace)
                    duration = len(answer.details) * EACH_TOPIC_OF_TABLE
                    table = await self._pipeline.workers.call(asker, work, duration)
                    if self._tables is not None:
                        table = await self._tables.completed(table, asker)
                    self.left_out[namespace] = table.left_out
                    await hold(table.nbytes)
                    every = VisibleTopics(table, [None] * len(table.chunks), is_kept=False)
                    return self._allowed(every, allowed, answer)
                if answer.lister != lister:  # a plugin that lists has come meanwhile
                    wants = _WANTS
                    answer.replaced = True
                    continue
                assert self._tables is not None
                found = await self._tables.of(selection.listing)
                if found is None:  # the namespace has changed since
                    answer.replaced = True
                    continue
                table, is_kept = found
                self.left_out[namespace] = table.left_out
                if not is_kept:
                    await hold(table.nbytes)
                visible = VisibleTopics(table, [None] * len(table.chunks))
                if not selection.is_whole:
                    mask = partial(self._masks.of, table, selection)
                    duration = len(selection) * EACH_TOPIC_OF_TABLE
                    visible = await self._pipeline.workers.call(asker, mask, duration)
                return self._allowed(visible, allowed, answer)
            finally:
                answer.release()

    def _allowed(self, visible: VisibleTopics, allowed: Allowed | None, answer: Answer) -> VisibleTopics:
        """The topics of an answer that ACLs allow."""
        if allowed is not None:
            visible = visible.allowed(allowed)
        if self._pipeline.sinks:  # listing events are reported
            answer.shown = visible.count
        return visible


def _table_of(details: Details, namespace: NamespaceName) -> TopicTable:
    """The table of details from plugins or brokers."""
    names = local_names(details.topics, namespace).cast(pa.large_binary())
    partitions = details.column("partitions").to_numpy(zero_copy_only=False).astype(np.int32)
    ids = None
    if "topic_id" in details.columns:
        told = details.column("topic_id")
        if told.null_count < len(told):
            ids = pc.coalesce(told, pa.scalar(bytes(16), pa.binary(16))).cast(pa.large_binary())
    return TopicTable.of_columns(names, partitions, ids, legal_names)
