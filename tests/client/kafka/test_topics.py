from __future__ import annotations

from broker_core.client.kafka.topics import NewPartitions, NewTopic


def test_the_server_chooses_what_is_not_given() -> None:
    topic = NewTopic("orders")
    assert (topic.num_partitions, topic.replication_factor, dict(topic.configs)) == (None, None, {})
    assert NewPartitions(3).assignments is None
