"""Facts of partitions from their leaders, from all nodes or from the controller, in pages."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Hashable, Iterable, Mapping
from typing import Final, TypeAlias, TypeVar

from broker_core.client.client_errors import ClientError
from broker_core.client.kafka.calls.answers_by_item import row_error
from broker_core.client.kafka.calls.nodes import at_node, by_topic, controller, every_node, leaders
from broker_core.client.kafka.groups import TopicPartition
from broker_core.client.kafka.kafka_errors import raise_for
from broker_core.client.kafka.logs import PartitionOffset, PartitionReassignment, ProducerState, ReplicaLog
from broker_core.client.kafka.pages import Page, Pager
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
    "MOVES",
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
MOVES: Final[_Keys[PartitionReassignment]] = (lambda row: row.partition, lambda row: row.partition.topic)


def offsets(
    pager: Pager, wanted: Mapping[TopicPartition, int]
) -> AsyncIterator[Results[TopicPartition, PartitionOffset]]:
    """The offset of each partition at a time in milliseconds since 1970; -1 is its end, -2 its beginning."""

    def time_of(each: TopicPartition) -> Fields:
        return {"partition_index": each.partition, "timestamp": wanted[each]}

    def described(row: Fields) -> PartitionOffset:
        return PartitionOffset(row["offset"], row["timestamp"], row["leader_epoch"])

    return _by_leader(
        pager, LIST_OFFSETS, wanted, lambda some: by_topic(some, "partitions", time_of), described
    )


def producers(
    pager: Pager, partitions: Iterable[TopicPartition]
) -> AsyncIterator[Results[TopicPartition, tuple[ProducerState, ...]]]:
    """The producers of each partition, newest first if the server has pages."""

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

    return _by_leader(pager, DESCRIBE_PRODUCERS, partitions, by_topic, described)


async def log_dirs(
    pager: Pager, nodes: Iterable[int] | None, partitions: Iterable[TopicPartition] | None
) -> AsyncIterator[Page[ReplicaLog]]:
    """The logs in the directories of nodes."""
    topics = None if partitions is None else by_topic(partitions, "partitions", name="topic")
    for node_id in await every_node(pager.attempts()) if nodes is None else nodes:
        async for value, paged_by in pager.answers(
            DESCRIBE_LOG_DIRS, {"topics": topics}, at_node(node_id), check=_check_directories
        ):
            yield Page((log for row in value["results"] for log in _logs(node_id, row)), paged_by)


def _check_directories(answer: Fields) -> None:
    for row in answer["results"]:
        raise_for(row["error_code"])


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
    body = {"topics": None if partitions is None else by_topic(partitions), "timeout_ms": 30_000}
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


async def _by_leader(
    pager: Pager,
    api: Api,
    partitions: Iterable[TopicPartition],
    topics_of: Callable[[list[TopicPartition]], list[Fields]],
    described: Callable[[Fields], V],
) -> AsyncIterator[Results[TopicPartition, V]]:
    every = list(dict.fromkeys(partitions))
    by_node, failed = await leaders(pager.attempts(), every) if every else ({}, {})
    for part in pager.parts(failed):
        yield Results({each: failed[each] for each in part}, "client")
    for node_id, some in by_node.items():
        for part in pager.parts(some):
            body = {"topics": topics_of(part)}
            async for value, paged_by in pager.answers(api, body, at_node(node_id), cut=True):
                rows: dict[TopicPartition, V | ClientError] = {
                    TopicPartition(topic["name"], row["partition_index"]): row_error(row) or described(row)
                    for topic in value["topics"]
                    for row in topic["partitions"]
                }
                yield Results(rows, paged_by)
