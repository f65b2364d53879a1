"""Facts of partitions from their leaders, from all nodes or from the controller, in pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Mapping
from typing import Final, TypeAlias, TypeVar

from broker_core.client.client_errors import ClientError
from broker_core.client.kafka.asking import Asking
from broker_core.client.kafka.calls.nodes import at_node, every_node, leaders
from broker_core.client.kafka.groups import TopicPartition
from broker_core.client.kafka.kafka_errors import kafka_error
from broker_core.client.kafka.logs import PartitionOffset, PartitionReassignment, ProducerState, ReplicaLog
from broker_core.client.kafka.node_connection import NodeConnection
from broker_core.client.kafka.pages import Page, Pager, joined
from broker_core.client.kafka.results import Results
from broker_core.wire.kafka import (
    DESCRIBE_LOG_DIRS,
    DESCRIBE_PRODUCERS,
    LIST_OFFSETS,
    LIST_PARTITION_REASSIGNMENTS,
    Api,
    Fields,
)

__all__ = [
    "LOGS",
    "every_log",
    "every_move",
    "log_dirs",
    "offsets",
    "producers",
    "reassignments",
    "with_producers",
]

V = TypeVar("V")
#: The key of a row, and of the rows that are dropped if its topic was recreated (:func:`~..pages.joined`).
_Keys: TypeAlias = "tuple[Callable[[V], Hashable], Callable[[V], Hashable]]"
LOGS: Final[_Keys[ReplicaLog]] = (
    lambda row: (row.node_id, row.log_dir, row.partition),
    lambda row: (row.node_id, row.partition and row.partition.topic),
)
_MOVES: Final[_Keys[PartitionReassignment]] = (lambda row: row.partition, lambda row: row.partition.topic)


async def offsets(
    pager: Pager, wanted: Mapping[TopicPartition, int]
) -> AsyncIterator[Results[TopicPartition, PartitionOffset]]:
    """The offset of each partition at a time in milliseconds since 1970; -1 is its end, -2 its beginning."""

    def body_of(some: list[TopicPartition]) -> Fields:
        return {"topics": _by_topic(some, "partitions", lambda each: _time(each, wanted[each]))}

    def described(row: Fields) -> PartitionOffset:
        return PartitionOffset(row["offset"], row["timestamp"], row["leader_epoch"])

    async for page in _by_leader(pager, LIST_OFFSETS, wanted, body_of, described):
        yield page


def _time(each: TopicPartition, timestamp: int) -> Fields:
    return {"partition_index": each.partition, "timestamp": timestamp}


async def producers(
    pager: Pager, partitions: Iterable[TopicPartition]
) -> AsyncIterator[Results[TopicPartition, tuple[ProducerState, ...]]]:
    """The producers of each partition, newest first if the server has pages."""

    def body_of(some: list[TopicPartition]) -> Fields:
        return {"topics": _by_topic(some, "partition_indexes", lambda each: each.partition)}

    def described(row: Fields) -> tuple[ProducerState, ...]:
        return tuple(
            ProducerState(
                each["producer_id"],
                each["producer_epoch"],
                each["last_sequence"],
                each["last_timestamp"],
                each["coordinator_epoch"],
                each["current_txn_start_offset"],
            )
            for each in row["active_producers"]
        )

    async for page in _by_leader(pager, DESCRIBE_PRODUCERS, partitions, body_of, described):
        yield page


async def log_dirs(
    pager: Pager, nodes: Iterable[int] | None, partitions: Iterable[TopicPartition] | None
) -> AsyncIterator[Page[ReplicaLog]]:
    """The logs in the directories of nodes."""
    topics = None
    if partitions is not None:
        topics = _by_topic(list(partitions), "partitions", lambda each: each.partition, name="topic")
    for node_id in await every_node(pager.asking()) if nodes is None else nodes:

        def check(value: Fields) -> None:
            for row in value["results"]:
                failed = kafka_error(row["error_code"])
                if failed is not None:
                    raise failed

        async for value, paged_by in pager.answers(
            DESCRIBE_LOG_DIRS, {"topics": topics}, at_node(node_id), check=check
        ):
            yield Page((log for row in value["results"] for log in _logs(node_id, row)), paged_by)


def with_producers(
    former: tuple[ProducerState, ...], more: tuple[ProducerState, ...]
) -> tuple[ProducerState, ...]:
    """The producers of a partition with the next page's, which are older unless its topic was recreated."""
    if former and more and more[0].producer_id >= former[-1].producer_id:
        return more
    return former + more


def _logs(node_id: int, row: Fields) -> list[ReplicaLog]:
    total, usable = row["total_bytes"], row["usable_bytes"]
    return [
        ReplicaLog(
            node_id,
            row["log_dir"],
            TopicPartition(topic["name"], one["partition_index"]),
            one["partition_size"],
            one["offset_lag"],
            one["is_future_key"],
            total,
            usable,
        )
        for topic in row["topics"]
        for one in topic["partitions"]
    ] or [ReplicaLog(node_id, row["log_dir"], None, 0, 0, False, total, usable)]


async def reassignments(
    pager: Pager, partitions: Iterable[TopicPartition] | None
) -> AsyncIterator[Page[PartitionReassignment]]:
    """Partitions under reassignment."""
    topics = None
    if partitions is not None:
        topics = _by_topic(list(partitions), "partition_indexes", lambda each: each.partition)

    async def controller(asking: Asking) -> NodeConnection:
        return await asking.cluster.controller()

    body = {"topics": topics, "timeout_ms": 30_000}
    async for value, paged_by in pager.answers(LIST_PARTITION_REASSIGNMENTS, body, controller):
        rows = (
            PartitionReassignment(
                TopicPartition(topic["name"], one["partition_index"]),
                tuple(one["replicas"]),
                tuple(one["adding_replicas"]),
                tuple(one["removing_replicas"]),
            )
            for topic in value["topics"]
            for one in topic["partitions"]
        )
        yield Page(rows, paged_by)


async def every_log(
    pager: Pager, nodes: Iterable[int] | None, partitions: Iterable[TopicPartition] | None
) -> Page[ReplicaLog]:
    """The logs of all pages."""
    return await joined(log_dirs(pager, nodes, partitions), *LOGS)


async def every_move(
    pager: Pager, partitions: Iterable[TopicPartition] | None
) -> Page[PartitionReassignment]:
    """The reassignments of all pages."""
    return await joined(reassignments(pager, partitions), *_MOVES)


def _by_topic(
    partitions: list[TopicPartition],
    array: str,
    one: Callable[[TopicPartition], object],
    *,
    name: str = "name",
) -> list[Fields]:
    topics: dict[str, list[object]] = {}
    for each in partitions:
        topics.setdefault(each.topic, []).append(one(each))
    return [{name: topic, array: rows} for topic, rows in topics.items()]


async def _by_leader(
    pager: Pager,
    api: Api,
    partitions: Iterable[TopicPartition],
    body_of: Callable[[list[TopicPartition]], Fields],
    described: Callable[[Fields], V],
) -> AsyncIterator[Results[TopicPartition, V]]:
    every = list(dict.fromkeys(partitions))
    by_node, failed = await leaders(pager.asking(), every) if every else ({}, {})
    for part in pager.parts(failed):
        yield Results({each: failed[each] for each in part}, "client")
    for node_id, some in by_node.items():
        for part in pager.parts(some):
            async for value, paged_by in pager.answers(api, body_of(part), at_node(node_id), cut=True):
                rows: dict[TopicPartition, V | ClientError] = {
                    TopicPartition(topic["name"], row["partition_index"]): kafka_error(
                        row["error_code"], row.get("error_message")
                    )
                    or described(row)
                    for topic in value["topics"]
                    for row in topic["partitions"]
                }
                yield Results(rows, paged_by)
