from __future__ import annotations

from broker_core.broker import Broker
from broker_core.wire.kafka import CONSUMER_GROUP_HEARTBEAT, PRODUCE, ErrorCode
from tests.support.kafka_serving import ask_once


async def test_producers_are_told_which_cluster_it_is(front: Broker) -> None:
    batch = {"index": 0, "records": b""}
    asked = {"acks": 1, "topic_data": [{"name": "orders", "partition_data": [batch]}]}
    (topic,) = (await ask_once(front, PRODUCE, 12, asked))["responses"]
    (row,) = topic["partition_responses"]
    assert row["error_code"] == ErrorCode.POLICY_VIOLATION
    assert "admin gateway of the Kafka cluster" in row["error_message"]


async def test_consumers_are_refused_at_once(front: Broker) -> None:
    answer = await ask_once(front, CONSUMER_GROUP_HEARTBEAT, 0, {"group_id": "g", "member_id": "m"})
    assert answer["error_code"] == ErrorCode.GROUP_AUTHORIZATION_FAILED
