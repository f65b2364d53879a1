"""Edits of topics of a Kafka cluster, by the catalogue's interface of edits, as far as a cluster can."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from broker_core.access import Asker
from broker_core.catalog import (
    CatalogError,
    Edit,
    TopicExists,
    TopicInvalid,
    TopicMissing,
    TopicRecord,
    TopicWrite,
)
from broker_core.change_log import CatalogVersion
from broker_core.errors import Cause, ListingFailed
from broker_core.kafka import is_legal, why_illegal
from broker_core.names import ListedNames, NamespaceName, TopicName
from broker_core.service.find_topics import Find, TopicAsker
from broker_core.upstream.kafka import ClusterPlugin

__all__ = ["ClusterEdits"]

_UNKNOWN: Final = datetime.fromtimestamp(0, UTC)


class ClusterEdits:
    """Creates and deletes topics of ``namespace`` for askers with the right. All else is for Kafka's own protocol.

    A topic that a mask hides does not exist for the client, but no topic of its name can be created.
    """

    def __init__(self, plugin: ClusterPlugin, find: Find) -> None:
        self.namespace: Final[NamespaceName] = plugin.namespace
        self._plugin = plugin
        self._find = find

    async def edit(
        self, asker: Asker, edits: Sequence[Edit], deadline: float | None
    ) -> list[TopicWrite | CatalogError | ListingFailed]:
        """Do edits one after another; each is done, or has an error of its own."""
        done: list[TopicWrite | CatalogError | ListingFailed] = []
        for edit in edits:
            try:
                done.append(await self._edited(asker, edit, deadline))
            except (CatalogError, ListingFailed) as failure:
                done.append(failure)
        return done

    async def _edited(self, asker: Asker, edit: Edit, deadline: float | None) -> TopicWrite:
        topic = edit.topic
        there = await self._there(asker, topic)
        (found,) = await self._find.by_name(TopicAsker(asker=asker, action=None, deadline=deadline), [topic])
        if found.failure is not None:
            raise found.failure
        seen = there if found.exists else None
        if edit.require is not None:
            edit.require(seen)
        try:
            after = edit.decide(seen)
        except TopicMissing:
            raise TopicMissing(f"There is no topic {topic} in the Kafka cluster") from None
        if seen is None and after is not None:
            if there is not None:
                raise TopicExists.of(topic)
            after = await self._created(asker, after)
        elif seen is not None and after is None:
            await self._plugin.store.delete(asker, seen.topic_id)
        else:
            raise ListingFailed(
                f"Topics of {self.namespace}, which are those of a Kafka cluster, are created and deleted here: "
                "change them by Kafka's protocol",
                cause=Cause.CONFLICT,
            )
        return TopicWrite(seen, after, await self._version())

    async def _there(self, asker: Asker, topic: TopicName) -> TopicRecord | None:
        """The cluster's topic of a name."""
        if topic.partition >= 0 or not is_legal(topic.local):
            return None
        found = await self._plugin.store.topic(asker, topic.local)
        if found is None:
            return None
        topic_id, partitions = found
        return TopicRecord(topic, topic_id, ListedNames.partitioned(partitions), {}, _UNKNOWN)

    async def _created(self, asker: Asker, wanted: TopicRecord) -> TopicRecord:
        if wanted.properties:
            raise ListingFailed(
                "A topic of a Kafka cluster has no properties: leave them out", cause=Cause.CONFLICT
            )
        illegal = why_illegal(wanted.name.local)
        if illegal is not None:
            raise TopicInvalid(illegal)
        topic_id, partitions = await self._plugin.store.create(
            asker, wanted.name.local, wanted.partitions, wanted.replication, wanted.configs
        )
        listed = ListedNames.partitioned(partitions)
        return replace(wanted, topic_id=topic_id or wanted.topic_id, listed=listed, created=datetime.now(UTC))

    async def _version(self) -> CatalogVersion:
        """The state of the namespace with the change, if all clients share one; the change is made in any case."""
        log = await self._plugin.broker_core_change_log()
        try:
            if log is not None:
                return await log.version(self.namespace)
        except ListingFailed:
            pass
        return CatalogVersion(self._plugin.snapshots.id, 0)
