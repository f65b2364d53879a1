"""DescribeTopicPartitions: topics with their partitions, all of them or some by name (KIP-966).

No topics in a request are all topics. Names are answered each once.
"""

from __future__ import annotations

from typing import Final

from broker_core.servers.kafka.large_requests import in_slices
from broker_core.servers.kafka.requests.call import HandlerRow, KafkaCall, or_close
from broker_core.servers.kafka.topics.named_topics import NamedTopic
from broker_core.wire.kafka import DESCRIBE_TOPIC_PARTITIONS, ErrorCode, Fields
from broker_core.wire.kafka.topic_fragments import described_family, described_partitions

__all__ = ["DESCRIBE_TOPIC_PARTITIONS_ROW"]


async def _describe(call: KafkaCall) -> Fields:
    names = list(dict.fromkeys(row["name"] for row in call.body["topics"]))
    if names:
        found = await call.services.named.by_name(call, names)
        return {"topics": await in_slices(lambda topic: _row(call, topic), found)}
    family = described_family(call.node.node_id)
    with or_close():
        return {"topics": await call.services.topics.all_encoded(call, family, operations=True)}


def _row(call: KafkaCall, topic: NamedTopic) -> Fields:
    row: Fields = {"error_code": topic.error, "name": topic.name or ""}
    if topic.error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return row
    return row | {
        "topic_id": topic.topic_id,
        "is_internal": topic.internal,
        "partitions": described_partitions(call.node.node_id, topic.partitions),
        "topic_authorized_operations": call.services.authorizer.topic_operations(call, topic.name or ""),
    }


DESCRIBE_TOPIC_PARTITIONS_ROW: Final = HandlerRow(DESCRIBE_TOPIC_PARTITIONS, _describe)
