from __future__ import annotations

from broker_core.servers.kafka.topics.broker_configs import broker_configs
from broker_core.settings import KafkaSettings


def test_a_broker_shows_what_new_topics_get_and_what_their_configs_are_by_default() -> None:
    rows = broker_configs(KafkaSettings(num_partitions=6, configs={"retention.ms": "5"}))
    shown = {row["name"]: (row["value"], row["config_source"]) for row in rows}
    assert list(shown) == sorted(shown)
    assert shown["num.partitions"] == ("6", 4)
    assert shown["auto.create.topics.enable"] == ("false", 4)
    assert shown["log.retention.ms"] == ("5", 4)
    assert shown["log.segment.bytes"] == ("1073741824", 5)
    assert all(row["read_only"] and row["documentation"] for row in rows)


def test_all_brokers_have_the_one_default_that_a_cluster_is_made_with() -> None:
    (row,) = broker_configs(KafkaSettings(), of_all_brokers=True)
    assert (row["name"], row["value"], row["config_source"]) == ("min.insync.replicas", "1", 3)
    assert broker_configs(KafkaSettings(configs={"min.insync.replicas": "2"}), of_all_brokers=True) == []
