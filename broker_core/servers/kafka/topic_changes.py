"""Changing topics of the embedded catalogue for Kafka clients: their rights, and a request as one transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from broker_core.access.access import Access
from broker_core.catalog import CatalogError, Edit, TopicWrite
from broker_core.errors import ListingFailed
from broker_core.names import PERSISTENT, TopicName
from broker_core.pipeline import Pipeline
from broker_core.servers.kafka.caller import Caller
from broker_core.servers.kafka.row_error import RowError, error_of
from broker_core.service import Catalog

__all__ = ["TopicChanges"]


class TopicChanges:
    """On one event loop."""

    def __init__(self, catalog: Catalog, pipeline: Pipeline) -> None:
        self._catalog = catalog
        self._pipeline = pipeline

    async def denied(self, caller: Caller, names: Iterable[str]) -> dict[str, RowError]:
        """Which of these topics the rules and the gates do not let the caller change, and why."""
        denied: dict[str, RowError] = {}
        if not self._pipeline.has_guards:
            return denied
        for name in names:
            topic = TopicName(PERSISTENT, caller.namespace, name)
            try:
                await self._pipeline.authorize(
                    Access("admin", caller.namespace, topic, caller.asker), caller.deadline
                )
            except ListingFailed as failure:
                denied[name] = error_of(failure)
        return denied

    async def taken(self, caller: Caller, names: Sequence[str]) -> Mapping[str, str]:
        """By each name that no new topic can have, the topic that has it, or the first that collides with it.

        Raises :exc:`~broker_core.catalog.CatalogError`.
        """
        return await self._catalog.taken_names(caller.namespace, names)

    async def change(
        self, caller: Caller, edits: Sequence[Edit], timeout_ms: int | None = None
    ) -> list[TopicWrite | CatalogError | ListingFailed]:
        """Make these changes, each by itself, in one transaction; they are on the disk when this returns.

        ``timeout_ms`` is that of the request, after which no change begins.
        """
        if not edits:
            return []
        deadline = caller.deadline
        if timeout_ms is not None:
            deadline = min(deadline, asyncio.get_running_loop().time() + max(timeout_ms, 0) / 1000)
        try:
            done: list[TopicWrite | CatalogError | ListingFailed] = []
            done += await self._catalog.edit(caller.namespace, edits, deadline)
        except (CatalogError, ListingFailed) as failure:
            return [failure] * len(edits)
        return done
