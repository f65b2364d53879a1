from __future__ import annotations

import pytest

from broker_core.client.kafka import AdminClient, InvalidPartitionsException, NewPartitions
from broker_core.wire.kafka import CREATE_PARTITIONS
from tests.support.scripted_kafka import ScriptedKafka


async def test_partitions_in_all(client: AdminClient, node: ScriptedKafka) -> None:
    rows = [{"name": "a"}, {"name": "b", "error_code": 37, "error_message": "it has 3"}]
    node.handlers[CREATE_PARTITIONS] = lambda _: {"results": rows}
    result = await client.create_partitions({"a": 5, "b": NewPartitions(2, [[1], [2]])}, validate_only=True)
    assert result["a"] is None
    with pytest.raises(InvalidPartitionsException, match="it has 3"):
        result["b"]
    asked = node.of(CREATE_PARTITIONS)[0]
    assert asked["topics"] == [
        {"name": "a", "count": 5, "assignments": None},
        {"name": "b", "count": 2, "assignments": [{"broker_ids": [1]}, {"broker_ids": [2]}]},
    ]
    assert asked["validate_only"] is True


async def test_nothing_is_not_asked(client: AdminClient, node: ScriptedKafka) -> None:
    assert (await client.create_partitions({})).all() == {}
    assert node.asked == []
