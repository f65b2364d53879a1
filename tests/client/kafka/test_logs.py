from __future__ import annotations

from broker_core.client.kafka import ReplicaLog, TopicPartition


def test_a_log_is_of_a_partition_in_a_directory_of_a_node() -> None:
    log = ReplicaLog(1, "/d", TopicPartition("a", 0), 5, 0, False, 100, 50)
    assert (log.node_id, log.log_dir, log.partition, log.size) == (1, "/d", ("a", 0), 5)
