from __future__ import annotations

from broker_core.servers.kafka.named_topic import NamedTopic
from broker_core.wire.kafka import ZERO_ID, ErrorCode


def test_a_topic_without_more_is_one_that_nobody_knows() -> None:
    topic = NamedTopic("a", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert (topic.topic_id, topic.partitions, topic.record) == (ZERO_ID, 0, None)
