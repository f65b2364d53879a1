from __future__ import annotations

import pytest

from broker_core.wire.kafka import DESCRIBE_PRODUCERS, LIST_OFFSETS, Fields
from tests.support.kafka_serving import RawKafkaClient


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
