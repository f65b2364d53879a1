from __future__ import annotations

import pytest

from broker_core.wire.kafka import DESCRIBE_PRODUCERS, LIST_OFFSETS, METADATA, Fields
from tests.support.kafka_serving import RawKafkaClient
from tests.support.scripted_kafka import ScriptedKafka, metadata_of


@pytest.mark.parametrize("page", [{}, {"response_pagination_limit": 100}])
async def test_a_topic_that_is_named_twice_has_the_rows_that_a_node_gives_it(
    two_nodes: RawKafkaClient, page: Fields
) -> None:
    """As 4.3.1: of offsets one row, and of producers as many as name it; a page has them by name."""
    names = ["b", "a", "b", "c"]
    rows = [{"name": name, "partition_indexes": [0, 1]} for name in names]
    producers = (await two_nodes.ask(DESCRIBE_PRODUCERS, 0, {"topics": rows, **page}))["topics"]
    assert [row["name"] for row in producers] == (sorted(names) if page else names)
    indexes = [sorted(each["partition_index"] for each in row["partitions"]) for row in producers]
    assert indexes == [[0, 1]] * 4
    one = [{"partition_index": 0, "timestamp": -1}]
    topics = [{"name": name, "partitions": one} for name in names]
    offsets = (await two_nodes.ask(LIST_OFFSETS, 8, {"topics": topics, **page}))["topics"]
    assert sorted(row["name"] for row in offsets) == ["a", "b", "c"]


async def test_producers_are_in_the_order_asked_though_two_nodes_lead_the_partitions(
    two_nodes: RawKafkaClient, nodes: list[ScriptedKafka]
) -> None:
    parts = [{"partition_index": each, "leader_id": 2 - each % 2} for each in range(4)]
    for node in nodes:
        node.handlers[METADATA] = lambda asked: metadata_of(
            *nodes, topics=[{"name": row["name"], "partitions": parts} for row in asked.value["topics"] or ()]
        )
    asked = [("b", [0, 1, 2, 3]), ("a", [3, 0, 1, 0]), ("b", [1])]
    topics = [{"name": name, "partition_indexes": indexes} for name, indexes in asked]
    rows = (await two_nodes.ask(DESCRIBE_PRODUCERS, 0, {"topics": topics}))["topics"]
    found = [(row["name"], [each["partition_index"] for each in row["partitions"]]) for row in rows]
    assert found == asked
