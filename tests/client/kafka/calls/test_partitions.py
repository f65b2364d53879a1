from __future__ import annotations

import pytest

from broker_core.client.kafka import AdminClient, KafkaException, TopicPartition
from broker_core.wire.kafka import (
    DESCRIBE_LOG_DIRS,
    DESCRIBE_PRODUCERS,
    LIST_PARTITION_REASSIGNMENTS,
    METADATA,
    Fields,
)
from tests.support.scripted_kafka import ScriptedKafka, metadata_of

A0 = TopicPartition("a", 0)


async def test_reassignments_are_those_of_the_controller(client: AdminClient, node: ScriptedKafka) -> None:
    row = {"partition_index": 0, "replicas": [1, 2], "adding_replicas": [2], "removing_replicas": []}
    node.handlers[LIST_PARTITION_REASSIGNMENTS] = lambda _: {"topics": [{"name": "a", "partitions": [row]}]}
    assert list(await client.list_partition_reassignments([A0])) == [(A0, (1, 2), (2,), ())]
    (asked,) = node.of(LIST_PARTITION_REASSIGNMENTS)
    assert asked["topics"] == [{"name": "a", "partition_indexes": [0]}]


async def test_logs_of_directories(client: AdminClient, node: ScriptedKafka) -> None:
    log = {"partition_index": 0, "partition_size": 9, "offset_lag": 0, "is_future_key": False}
    results: list[Fields] = [
        {"log_dir": "/x", "topics": [{"name": "a", "partitions": [log]}], "total_bytes": 5},
        {"log_dir": "/y", "topics": []},
    ]
    node.handlers[DESCRIBE_LOG_DIRS] = lambda _: {"results": results}
    logs = await client.describe_log_dirs([1])
    assert [(each.log_dir, each.partition, each.size, each.total_bytes) for each in logs] == [
        ("/x", A0, 9, 5),
        ("/y", None, 0, -1),
    ]
    results[0]["error_code"] = 56
    with pytest.raises(KafkaException, match="KAFKA_STORAGE_ERROR: Disk error"):
        await client.describe_log_dirs([1])


async def test_producers_of_a_partition(client: AdminClient, node: ScriptedKafka) -> None:
    led = [{"partition_index": 0, "leader_id": 1}]
    node.handlers[METADATA] = lambda asked: metadata_of(
        node, topics=[{"name": "a", "partitions": led}] if asked.value["topics"] else []
    )
    states = [{"producer_id": 7, "producer_epoch": 1}]
    rows = [{"partition_index": 0, "active_producers": states}]
    node.handlers[DESCRIBE_PRODUCERS] = lambda _: {"topics": [{"name": "a", "partitions": rows}]}
    found = (await client.describe_producers([A0]))[A0]
    assert [(each.producer_id, each.last_timestamp) for each in found] == [(7, -1)]
