"""All topics of a namespace that an asker may see, as a table with masks: for protocols that list topics, not names.

The pipeline lists them, so that rules, plugins and masks apply, and ACLs narrow them. Nothing is remembered here but
what belongs to a listing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.access import Asker
from broker_core.concurrency import EACH_TOPIC_OF_TABLE
from broker_core.kafka import legal_names
from broker_core.listing import Details, TopicTable
from broker_core.names import Mode, NamespaceName
from broker_core.pipeline import ListingTables, Pipeline
from broker_core.plugin_api import ListingRequest
from broker_core.service.selection_masks import SelectionMasks, local_names
from broker_core.service.visible_topics import Allowed, VisibleTopics

__all__ = ["ListTopics"]

_WANTS: Final = frozenset({"partitions", "topic_id"})


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
            if self._pipeline.sinks:  # listing events are reported
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
        told = details.column("topic_id")
        if told.null_count < len(told):
            ids = pc.coalesce(told, pa.scalar(bytes(16), pa.binary(16))).cast(pa.large_binary())
    return TopicTable.of_columns(names, partitions, ids, legal_names)
