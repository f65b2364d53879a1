"""Describing topics: by name in pages (DescribeTopicPartitions), or by name and id at once (Metadata)."""

from __future__ import annotations

import uuid
from collections.abc import Hashable
from typing import Any, Final, TypeVar

from broker_core.client.errors import ClientError, UnexpectedAnswer
from broker_core.client.kafka.asking import Asking
from broker_core.client.kafka.authorized_operations import authorized_operations
from broker_core.client.kafka.calls.described_pages import DescribedPages
from broker_core.client.kafka.cluster import Cluster, Node
from broker_core.client.kafka.errors import InvalidTopicException, kafka_error, raise_for
from broker_core.client.kafka.node_connection import NodeConnection
from broker_core.client.kafka.results import Results
from broker_core.client.kafka.topic_collection import TopicIdCollection, TopicNameCollection
from broker_core.client.kafka.topics import TopicDescription, TopicPartitionInfo
from broker_core.wire.kafka import DESCRIBE_TOPIC_PARTITIONS, METADATA, ZERO_ID

__all__ = ["describe_by_id", "describe_by_name"]

K = TypeVar("K", bound=Hashable)

#: The first version of Metadata that takes ids.
_BY_ID: Final = 12
#: The first version of Metadata that tells authorized operations of topics.
_WITH_OPERATIONS: Final = 8


async def describe_by_name(
    asking: Asking, topics: TopicNameCollection, *, include_authorized_operations: bool
) -> Results[str, TopicDescription]:
    """Each topic by itself. A topic that is made anew between two pages is asked for again."""
    rows: dict[str, TopicDescription | ClientError] = {
        name: InvalidTopicException(f"The given topic name {name!r} cannot be represented in a request.")
        for name in topics.topic_names
        if not name
    }
    names = [name for name in topics.topic_names if name]
    pages = DescribedPages(names)

    async def ask() -> None:
        connection = await asking.cluster.any_node()
        if not connection.has(DESCRIBE_TOPIC_PARTITIONS):
            asked: list[dict[str, Any]] = [{"name": name} for name in names]
            found, cluster = await _metadata(connection, asked, operations=include_authorized_operations)
            rows.update(
                {row["name"]: _row(row, cluster, operations=include_authorized_operations) for row in found}
            )
            return
        cluster = await asking.cluster.cluster()
        while (request := pages.request()) is not None:
            answer = await connection.ask(DESCRIBE_TOPIC_PARTITIONS, request)
            pages.take(answer.value)
        rows.update(
            {
                name: _row(row, cluster, operations=include_authorized_operations)
                for name, row in pages.found.items()
            }
        )

    if names:
        await asking.until_answered(ask)
    return Results(_complete(topics.topic_names, rows))


async def describe_by_id(
    asking: Asking, topics: TopicIdCollection, *, include_authorized_operations: bool
) -> Results[uuid.UUID, TopicDescription]:
    """Each topic by itself."""
    rows: dict[uuid.UUID, TopicDescription | ClientError] = {
        ZERO_ID: InvalidTopicException("The zero id cannot be represented in a request.")
    }
    ids = [each for each in topics.topic_ids if each != ZERO_ID]

    async def ask() -> None:
        connection = await asking.cluster.any_node()
        asked: list[dict[str, Any]] = [{"topic_id": each, "name": None} for each in ids]
        found, cluster = await _metadata(
            connection, asked, operations=include_authorized_operations, least=_BY_ID
        )
        rows.update(
            {row["topic_id"]: _row(row, cluster, operations=include_authorized_operations) for row in found}
        )

    if ids:
        await asking.until_answered(ask)
    return Results(_complete(topics.topic_ids, rows))


def _row(row: dict[str, Any], cluster: Cluster, *, operations: bool) -> TopicDescription | ClientError:
    """What an answer says of one topic."""
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
    connection: NodeConnection, topics: list[dict[str, Any]], *, operations: bool, least: int = 1
) -> tuple[list[dict[str, Any]], Cluster]:
    """Topics that are named, and the cluster of the same answer."""
    request = {
        "topics": topics,
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": operations,
    }
    least = max(least, _WITH_OPERATIONS) if operations else least
    value = (await connection.ask(METADATA, request, least=least)).value
    raise_for(value["error_code"])
    return value["topics"], Cluster.of_metadata(value)


def _complete(
    asked: tuple[K, ...], rows: dict[K, TopicDescription | ClientError]
) -> dict[K, TopicDescription | ClientError]:
    return {
        item: rows[item] if item in rows else UnexpectedAnswer(f"the answer has no row for {item}")
        for item in asked
    }
