"""Describing topics by name (DescribeTopicPartitions, in pages), and by name and id (Metadata).

Servers without pages for ids answer Metadata as a whole.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from broker_core.client.client_errors import ClientError, UnexpectedAnswer
from broker_core.client.kafka.attempts import Attempts
from broker_core.client.kafka.authorized_operations import authorized_operations
from broker_core.client.kafka.calls.nodes import any_node
from broker_core.client.kafka.cluster import Cluster, Node
from broker_core.client.kafka.kafka_errors import InvalidTopicException, kafka_error
from broker_core.client.kafka.pages import Pager, goes_on
from broker_core.client.kafka.results import PagedBy, Results, complete
from broker_core.client.kafka.topic_collection import TopicIdCollection, TopicNameCollection
from broker_core.client.kafka.topics import TopicDescription, TopicPartitionInfo
from broker_core.listing import utf16_key
from broker_core.wire.kafka import DESCRIBE_TOPIC_PARTITIONS, METADATA, ZERO_ID, Fields

__all__ = ["describe_by_id", "describe_by_name"]

#: Partitions of a page; servers give 2,000 at most, unless their settings say more.
_PAGE: Final = 2000


class _DescribedPages:
    """The pages of DescribeTopicPartitions for ``names`` (KIP-966), each once, in their order; ``found`` are the rows
    by name, with the partitions of all pages.

    A topic that was recreated between two of its pages is asked for again: its partitions are of two topics.
    """

    def __init__(self, names: list[str]) -> None:
        self._left = sorted(names, key=utf16_key)
        self._again: list[str] = []
        self._cursor: dict[str, Any] | None = None
        self.found: dict[str, dict[str, Any]] = {}

    def request(self) -> dict[str, Any] | None:
        """The request of the next page; ``None`` after the last one."""
        if not self._left:
            return None
        return {
            "topics": [{"name": name} for name in self._left],
            "response_partition_limit": _PAGE,
            "cursor": self._cursor,
        }

    def take(self, answer: dict[str, Any]) -> None:
        """Add a page. Raises :exc:`~broker_core.client.UnexpectedAnswer` for a cursor that does not go on."""
        for row in answer["topics"]:
            self._add(row)
        after = answer["next_cursor"]
        if after is None:
            self._left, self._again, self._cursor = self._again, [], None
            return
        name, partition = after["topic_name"], after["partition_index"]
        before = self._cursor or {"topic_name": self._left[0], "partition_index": 0}
        left = [each for each in self._left if utf16_key(each) >= utf16_key(name)]
        if not goes_on(before, after) or left[:1] != [name]:
            raise UnexpectedAnswer(f"the next page of topics would begin at {after}, behind {before}")
        self._left = left
        # At its first partition a topic is asked for by its name alone.
        self._cursor = after if partition else None

    def _add(self, row: dict[str, Any]) -> None:
        name = row["name"]
        known = self.found.get(name)
        if known is None or self._cursor is None or self._cursor["topic_name"] != name or row["error_code"]:
            self.found[name] = row
        elif known["topic_id"] == row["topic_id"]:
            known["partitions"] += row["partitions"]
        else:
            del self.found[name]
            self._again.append(name)


#: The first version of Metadata that takes ids.
_BY_ID: Final = 12
#: The first version of Metadata with authorized operations of topics.
_WITH_OPERATIONS: Final = 8


async def describe_by_name(
    pager: Pager, topics: TopicNameCollection, *, include_authorized_operations: bool
) -> Results[str, TopicDescription]:
    """Describe each topic by itself. A topic that is recreated between two pages is asked for again."""
    rows: dict[str, TopicDescription | ClientError] = {
        name: InvalidTopicException(f"The given topic name {name!r} cannot be represented in a request.")
        for name in topics.topic_names
        if not name
    }
    names = [name for name in topics.topic_names if name]
    pages = _DescribedPages(names)

    async def ask(attempts: Attempts) -> Cluster | None:
        connection = await attempts.cluster.any_node()
        if not connection.has(DESCRIBE_TOPIC_PARTITIONS):
            return None
        cluster = await attempts.cluster.cluster()
        while (request := pages.request()) is not None:
            pages.take(await connection.ask(DESCRIBE_TOPIC_PARTITIONS, request))
        return cluster

    paged_by: PagedBy = None
    if names:
        attempts = pager.attempts()
        cluster = await attempts.until_answered(partial(ask, attempts))
        found: Mapping[Any, Fields] = pages.found
        paged_by = "server"
        if cluster is None:
            wanted: list[Fields] = [{"name": name} for name in names]
            found, cluster, paged_by = await _metadata(
                pager, wanted, "name", operations=include_authorized_operations
            )
        for name, row in found.items():
            rows[name] = _row(row, cluster, operations=include_authorized_operations)
    return Results(complete(topics.topic_names, rows), paged_by)


async def describe_by_id(
    pager: Pager, topics: TopicIdCollection, *, include_authorized_operations: bool
) -> Results[uuid.UUID, TopicDescription]:
    """Describe each topic by itself."""
    rows: dict[uuid.UUID, TopicDescription | ClientError] = {
        ZERO_ID: InvalidTopicException("The zero id cannot be represented in a request.")
    }
    wanted: list[Fields] = [{"topic_id": each, "name": None} for each in topics.topic_ids if each != ZERO_ID]
    paged_by: PagedBy = None
    if wanted:
        found, cluster, paged_by = await _metadata(
            pager, wanted, "topic_id", operations=include_authorized_operations, least=_BY_ID
        )
        for topic_id, row in found.items():
            rows[topic_id] = _row(row, cluster, operations=include_authorized_operations)
    return Results(complete(topics.topic_ids, rows), paged_by)


def _row(row: dict[str, Any], cluster: Cluster, *, operations: bool) -> TopicDescription | ClientError:
    """The description of one topic in an answer."""
    failed = kafka_error(row["error_code"])
    if failed is not None:
        return failed
    name = row["name"]
    if name is None:
        return UnexpectedAnswer("a topic is described without its name")
    partitions = sorted(row["partitions"], key=lambda each: int(each["partition_index"]))
    return TopicDescription(
        name,
        row["topic_id"],
        row["is_internal"],
        tuple(_partition(each, cluster) for each in partitions),
        authorized_operations(row["topic_authorized_operations"]) if operations else None,
    )


def _partition(row: dict[str, Any], cluster: Cluster) -> TopicPartitionInfo:
    def nodes(name: str) -> tuple[Node, ...] | None:
        ids = row.get(name)
        return None if ids is None else tuple(map(cluster.node, ids))

    return TopicPartitionInfo(
        row["partition_index"],
        cluster.nodes.get(row["leader_id"]),
        nodes("replica_nodes") or (),
        nodes("isr_nodes") or (),
        nodes("eligible_leader_replicas"),
        nodes("last_known_elr"),
    )


async def _metadata(
    pager: Pager, topics: list[Fields], key: str, *, operations: bool, least: int = 1
) -> tuple[dict[Any, Fields], Cluster, PagedBy]:
    """The rows of the named topics, by a field, with the partitions of all pages, and the cluster at the end."""
    more = {"allow_auto_topic_creation": False, "include_topic_authorized_operations": operations}
    least = max(least, _WITH_OPERATIONS) if operations else least
    rows: dict[Any, Fields] = {}
    cluster, paged_by = Cluster(), None
    for part in pager.parts(topics):
        body = {"topics": part, **more}
        async for value, by in pager.answers(METADATA, body, any_node, cut=True, least=least):
            cluster, paged_by = Cluster.of_metadata(value), by
            for row in value["topics"]:
                known = rows.get(row[key])
                if known is not None and not row["error_code"] and known["topic_id"] == row["topic_id"]:
                    row["partitions"] = known["partitions"] + row["partitions"]
                rows[row[key]] = row
    return rows, cluster, paged_by
