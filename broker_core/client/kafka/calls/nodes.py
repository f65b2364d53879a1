"""The nodes that answer questions: leaders of partitions, coordinators of groups and of transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from broker_core.client.client_errors import ClientError
from broker_core.client.kafka.attempts import Attempts
from broker_core.client.kafka.groups import TopicPartition
from broker_core.client.kafka.kafka_errors import kafka_error, raise_for
from broker_core.client.kafka.node_connection import NodeConnection
from broker_core.client.kafka.pages import Connect
from broker_core.wire.kafka import FIND_COORDINATOR, METADATA, ErrorCode, Fields

__all__ = [
    "GROUP",
    "TRANSACTION",
    "any_node",
    "at_node",
    "by_topic",
    "check_coordinator",
    "controller",
    "coordinators",
    "every_node",
    "leaders",
]

#: The kinds of coordinators.
GROUP: Final = 0
TRANSACTION: Final = 1
#: The first version of FindCoordinator that takes several.
_SEVERAL: Final = 4
_MOVED: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
_MOST: Final = 1_000


async def any_node(attempts: Attempts) -> NodeConnection:
    return await attempts.cluster.any_node()


async def controller(attempts: Attempts) -> NodeConnection:
    return await attempts.cluster.controller()


def at_node(node_id: int | None) -> Connect:
    """The node of this id; any node for ``None``."""
    return any_node if node_id is None else lambda attempts: attempts.cluster.node(node_id)


async def every_node(attempts: Attempts) -> list[int]:
    """The ids of all nodes."""

    async def ask() -> list[int]:
        attempts.cluster.forget()  # one may have come since
        return sorted((await attempts.cluster.cluster()).nodes)

    return await attempts.until_answered(ask)


def check_coordinator(rows: Iterable[Fields]) -> None:
    """Raise an error that leads to a repetition if a coordinator has moved."""
    for row in rows:
        if row["error_code"] in _MOVED:
            raise_for(row["error_code"], row.get("error_message"))


async def coordinators(
    attempts: Attempts, kind: int, keys: Iterable[str]
) -> tuple[dict[int, list[str]], dict[str, ClientError]]:
    """The keys by the node that is their coordinator, and the keys without one, even after some time. If there is one
    node, no question is needed.
    """
    wanted = list(keys)
    found: dict[int, list[str]] = {}
    failed: dict[str, ClientError] = {}

    async def ask() -> None:
        found.clear()
        failed.clear()
        nodes = (await attempts.cluster.cluster()).nodes
        if len(nodes) == 1:
            found[next(iter(nodes))] = wanted
            return
        answered: list[Fields] = []
        for low in range(0, len(wanted), _MOST):
            connection = await attempts.cluster.any_node()
            request = {"key_type": kind, "coordinator_keys": wanted[low : low + _MOST]}
            rows = (await connection.ask(FIND_COORDINATOR, request, least=_SEVERAL))["coordinators"]
            answered += rows
            for row in rows:
                error = kafka_error(row["error_code"], row["error_message"])
                if error is None:
                    found.setdefault(row["node_id"], []).append(row["key"])
                else:
                    failed[row["key"]] = error
        check_coordinator(answered)

    try:
        await attempts.until_answered(ask)
    except ClientError:
        if len(failed) + sum(map(len, found.values())) < len(wanted):
            raise
    return found, failed


async def leaders(
    attempts: Attempts, partitions: Iterable[TopicPartition]
) -> tuple[dict[int, list[TopicPartition]], dict[TopicPartition, ClientError]]:
    """The partitions by the node that leads them, and the partitions without one."""
    wanted = list(partitions)
    names = sorted({each.topic for each in wanted})

    async def ask() -> tuple[dict[int, list[TopicPartition]], dict[TopicPartition, ClientError]]:
        connection = await attempts.cluster.any_node()
        topics: dict[str, int] = {}
        known: dict[TopicPartition, Fields] = {}
        for low in range(0, len(names), _MOST):
            request = {
                "topics": [{"name": name} for name in names[low : low + _MOST]],
                "allow_auto_topic_creation": False,
            }
            value = await connection.ask(METADATA, request, least=4)
            raise_for(value["error_code"])
            for row in value["topics"]:
                topics[row["name"]] = row["error_code"]
                for one in row["partitions"]:
                    known[TopicPartition(row["name"], one["partition_index"])] = one
        found: dict[int, list[TopicPartition]] = {}
        failed: dict[TopicPartition, ClientError] = {}
        absent = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        for each in wanted:
            one, text = known.get(each), None
            code = topics.get(each.topic, absent)
            if not code and one is None:
                code, text = absent, f"{each.topic} has no partition {each.partition}"
            elif not code and one is not None and one["leader_id"] < 0:
                code = one["error_code"] or ErrorCode.LEADER_NOT_AVAILABLE
                text = f"{each.topic}-{each.partition} has no leader now"
            error = kafka_error(code, text)
            if error is not None:
                failed[each] = error
            elif one is not None:
                found.setdefault(one["leader_id"], []).append(each)
        return found, failed

    return await attempts.until_answered(ask)


def by_topic(
    partitions: Iterable[TopicPartition],
    array: str = "partition_indexes",
    one: Callable[[TopicPartition], object] = lambda each: each.partition,
    *,
    name: str = "name",
) -> list[Fields]:
    """Partitions in a request: a row for each topic, with ``one`` of each of its partitions in the field ``array``."""
    topics: dict[str, list[object]] = {}
    for each in partitions:
        topics.setdefault(each.topic, []).append(one(each))
    return [{name: topic, array: rows} for topic, rows in topics.items()]
