"""Edits of topics of a Kafka cluster: what the decisions of the catalogue come to there, as far as it can do that."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

from broker_core.access.asker import Asker
from broker_core.catalog import CatalogError, Edit, TopicExists, TopicInvalid, TopicRecord, TopicWrite
from broker_core.change_log import CatalogVersion
from broker_core.errors import Cause, ListingFailed
from broker_core.names import NamespaceName, TopicName
from broker_core.names.listed_names import ListedNames
from broker_core.service.find import Asked, Find
from broker_core.upstream.kafka import CONTROLLER, ClusterPlugin, KafkaCluster, cluster_failures
from broker_core.wire.kafka import CREATE_TOPICS, DELETE_TOPICS, METADATA, Api, Fields, error_name

__all__ = ["ClusterEdits"]

#: Milliseconds that the controller has for a change.
_CHANGE_MS: Final = 15_000
#: The version of DeleteTopics from which on topics are rows.
_ROWS: Final = 6
_UNKNOWN: Final = datetime.fromtimestamp(0, UTC)
_CAUSES: Final[Mapping[int, Cause]] = {
    3: Cause.NOT_FOUND,
    29: Cause.DENIED,
    31: Cause.DENIED,
    36: Cause.CONFLICT,
    **dict.fromkeys((17, 37, 38, 39, 40, 42, 44), Cause.BAD_REQUEST),
}


class ClusterEdits:
    """Creates and deletes topics of ``namespace`` for those who have the right. All else is for Kafka's own protocol.

    What a mask hides from a client is not there for it, and a topic of that name cannot be created.
    """

    def __init__(self, cluster: KafkaCluster, plugin: ClusterPlugin, find: Find) -> None:
        self.namespace: Final[NamespaceName] = plugin.namespace
        self._cluster = cluster
        self._plugin = plugin
        self._find = find

    async def edit(
        self, asker: Asker, edits: Sequence[Edit], deadline: float | None
    ) -> list[TopicWrite | CatalogError | ListingFailed]:
        """Do edits one after another; each is done, or the error of it alone."""
        done: list[TopicWrite | CatalogError | ListingFailed] = []
        for edit in edits:
            try:
                done.append(await self._edited(asker, edit, deadline))
            except (CatalogError, ListingFailed) as failure:
                done.append(failure)
        return done

    async def _edited(self, asker: Asker, edit: Edit, deadline: float | None) -> TopicWrite:
        topic = edit.topic
        with cluster_failures():
            there = await self._there(asker, topic)
        (found,) = await self._find.by_name(Asked(asker=asker, action=None, deadline=deadline), [topic])
        if found.failure is not None:
            raise found.failure
        seen = there if found.exists else None
        if edit.require is not None:
            edit.require(seen)
        after = edit.decide(seen)
        if seen is None and after is not None:
            if there is not None:
                raise TopicExists.of(topic)
            after = await self._created(asker, after)
        elif seen is not None and after is None:
            await self._deleted(asker, topic)
        else:
            raise ListingFailed(
                f"Topics of {self.namespace}, which are those of a Kafka cluster, are created and deleted here: "
                "change them by Kafka's protocol",
                cause=Cause.CONFLICT,
            )
        return TopicWrite(seen, after, await self._version())

    async def _there(self, asker: Asker, topic: TopicName) -> TopicRecord | None:
        """What the cluster has by the name of a topic."""
        body = {"topics": [{"name": topic.local}], "allow_auto_topic_creation": False}
        (row,) = (await self._ask(asker, METADATA, body))["topics"]
        if row["error_code"] == _MISSING or topic.partition >= 0:
            return None
        _check(row)
        listed = ListedNames.partitioned(len(row["partitions"]))
        return TopicRecord(topic, row["topic_id"], listed, {}, _UNKNOWN)

    async def _created(self, asker: Asker, wanted: TopicRecord) -> TopicRecord:
        if wanted.properties:
            raise TopicInvalid("A topic of a Kafka cluster has no properties: leave them out")
        topic = {
            "name": wanted.name.local,
            "num_partitions": wanted.partitions or -1,
            "replication_factor": wanted.replication or -1,
            "assignments": [],
            "configs": [{"name": name, "value": value} for name, value in wanted.configs.items()],
        }
        body = {"topics": [topic], "timeout_ms": _CHANGE_MS, "validate_only": False}
        with cluster_failures():
            (row,) = (await self._ask(asker, CREATE_TOPICS, body, again=False))["topics"]
        _check(row)
        count = max(row.get("num_partitions", -1), wanted.partitions, 1)
        topic_id: uuid.UUID = row.get("topic_id", wanted.topic_id)
        listed = ListedNames.partitioned(count)
        return replace(wanted, topic_id=topic_id, listed=listed, created=datetime.now(UTC))

    async def _deleted(self, asker: Asker, topic: TopicName) -> None:
        body = {
            "topics": [{"name": topic.local, "topic_id": uuid.UUID(int=0)}],
            "timeout_ms": _CHANGE_MS,
        }
        with cluster_failures():
            answer = await self._ask(asker, DELETE_TOPICS, body, again=False, versions=(_ROWS, _ROWS))
        (row,) = answer["responses"]
        _check(row)

    async def _ask(
        self,
        asker: Asker,
        api: Api,
        body: Mapping[str, Any],
        *,
        again: bool = True,
        versions: tuple[int, int] | None = None,
    ) -> Fields:
        identity = self._plugin.store.identity(asker)
        return await self._cluster.request(CONTROLLER, api, versions, body, identity, again=again)

    async def _version(self) -> CatalogVersion:
        """The state of the namespace with the change, where all clients have one; the change is made in any case."""
        log = await self._plugin.broker_core_change_log()
        try:
            if log is not None:
                return await log.version(self.namespace)
        except ListingFailed:
            pass
        return CatalogVersion(self._plugin.snapshots.id, 0)


#: UNKNOWN_TOPIC_OR_PARTITION.
_MISSING: Final = 3


def _check(row: Fields) -> None:
    """Raise :exc:`ListingFailed` for a row with an error."""
    code: int = row["error_code"]
    if code:
        text = row.get("error_message") or f"The Kafka cluster answers {error_name(code)}"
        raise ListingFailed(text, cause=_CAUSES.get(code, Cause.UPSTREAM), reason="upstream")
