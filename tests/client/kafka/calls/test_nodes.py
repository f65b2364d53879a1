from __future__ import annotations

from typing import Any

import pytest

from broker_core.client.kafka import (
    AdminClient,
    GroupAuthorizationException,
    KafkaException,
    TopicPartition,
)
from broker_core.client.kafka.calls.nodes import GROUP, check_coordinator, coordinators, every_node, leaders
from broker_core.client.kafka.kafka_errors import may_pass
from broker_core.wire.kafka import FIND_COORDINATOR, METADATA, Fields
from tests.support.scripted_kafka import Asked, ScriptedKafka, metadata_of


def two_nodes(node: ScriptedKafka) -> Fields:
    value = metadata_of(node)
    return value | {"brokers": [*value["brokers"], value["brokers"][0] | {"node_id": 2}]}


async def test_of_one_node_no_coordinator_is_looked_for(client: AdminClient, node: ScriptedKafka) -> None:
    assert await coordinators(client._attempts(None), GROUP, ["a", "b"]) == ({1: ["a", "b"]}, {})
    assert await every_node(client._attempts(None)) == [1]
    assert node.of(FIND_COORDINATOR) == []


async def test_coordinators_of_several_nodes(client: AdminClient, node: ScriptedKafka) -> None:
    asked: list[Any] = []

    def find(request: Asked) -> Fields:
        asked.append(request.value["coordinator_keys"])
        moved = 15 if len(asked) == 1 else 0
        rows = [{"key": "a", "node_id": 2, "error_code": moved}, {"key": "b", "node_id": 1}]
        return {"coordinators": [*rows, {"key": "c", "error_code": 30}]}

    node.handlers |= {METADATA: lambda _: two_nodes(node), FIND_COORDINATOR: find}
    found, failed = await coordinators(client._attempts(None), GROUP, ["a", "b", "c"])
    assert found == {2: ["a"], 1: ["b"]}
    assert isinstance(failed["c"], GroupAuthorizationException)
    assert len(asked) == 2  # the first answer may pass


async def test_leaders_of_partitions(client: AdminClient, node: ScriptedKafka) -> None:
    def metadata(request: Asked) -> Fields:
        rows = [
            {"partition_index": 0, "leader_id": 2},
            {"partition_index": 1, "leader_id": -1},
            {"partition_index": 2, "leader_id": -1, "error_code": 72},
        ]
        topics = [{"name": "a", "partitions": rows}, {"name": "b", "error_code": 29}]
        return two_nodes(node) | {"topics": topics if request.value["topics"] else []}

    node.handlers[METADATA] = metadata
    wanted = [TopicPartition(*each) for each in (("a", 0), ("a", 1), ("a", 2), ("a", 9), ("b", 0), ("c", 0))]
    found, failed = await leaders(client._attempts(None), wanted)
    assert found == {2: wanted[:1]}
    assert [str(failed[each]) for each in wanted[1:4]] == [
        "LEADER_NOT_AVAILABLE: a-1 has no leader now",
        "LISTENER_NOT_FOUND: a-2 has no leader now",
        "UNKNOWN_TOPIC_OR_PARTITION: a has no partition 9",
    ]
    assert [getattr(failed[each], "code", None) for each in wanted[4:]] == [29, 3]


@pytest.mark.parametrize("code", [14, 15, 16])
def test_a_coordinator_that_has_moved_is_asked_for_again(code: int) -> None:
    with pytest.raises(KafkaException) as moved:
        check_coordinator([{"error_code": 0}, {"error_code": code}])
    assert moved.value.code == code
    assert may_pass(moved.value)
