from __future__ import annotations

from typing import Any

import pytest

from broker_core.servers.kafka.row_error import ChangeRefused, RowError
from broker_core.servers.kafka.topics.new_topic import TopicToCreate, check_partitions, new_topic
from broker_core.settings import KafkaSettings
from broker_core.wire.kafka import Fields
from tests.support.kafka_topics import NAMESPACE


def _row(name: str = "a", partitions: int = 1, replicas: int = 1, **fields: Any) -> Fields:
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": replicas,
        "assignments": [],
        "configs": [],
        **fields,
    }


def _of(row: Fields, **kafka: Any) -> TopicToCreate | RowError:
    return new_topic(row, NAMESPACE, KafkaSettings(**kafka), 1)


def _topic(row: Fields, **kafka: Any) -> TopicToCreate:
    topic = _of(row, **kafka)
    assert isinstance(topic, TopicToCreate)
    return topic


def _error(row: Fields, **kafka: Any) -> RowError:
    error = _of(row, **kafka)
    assert isinstance(error, RowError)
    return error


def test_what_is_left_open_is_that_of_the_settings() -> None:
    topic = _topic(_row(partitions=-1, replicas=-1), num_partitions=6)
    assert (topic.partitions, topic.replicas, topic.replication) == (6, 1, None)
    assert _topic(_row(partitions=2)).replication == 1


def test_more_replicas_than_nodes_are_refused_or_recorded() -> None:
    assert _error(_row(replicas=3)).code == 38
    assert _error(_row(replicas=-1), replication_factor=3).code == 38
    topic = _topic(_row(replicas=3), replication="record")
    assert (topic.replicas, topic.replication) == (3, 3)


@pytest.mark.parametrize("name", ["a-partition-0", "__change_events", "a b"])
def test_a_name_of_a_partition_or_of_a_system_topic_is_none(name: str) -> None:
    error = _error(_row(name, partitions=0))
    assert error.code == 17
    assert (error.message or "").startswith(f"Topic name is invalid: '{name}' ")


def test_the_first_thing_that_is_wrong_is_told() -> None:
    wrong = [{"name": "no.such", "value": "1"}]
    assert _error(_row("a b", configs=wrong)).code == 17
    assert _error(_row(configs=wrong, replicas=0, partitions=0)).code == 40
    assert _error(_row(replicas=0, partitions=0)).code == 38
    assert _error(_row(replicas=2, partitions=0)).code == 37


@pytest.mark.parametrize(
    ("brokers", "message"),
    [
        ([[1], []], "an empty replica list"),
        ([[1, 1]], "the broker 1 more than once"),
        ([[9, 9]], "broker 9, but no such broker"),
        ([[1, 2], [1]], "broker 2, but no such broker"),
    ],
)
def test_partitions_can_be_assigned_to_the_one_node(brokers: list[list[int]], message: str) -> None:
    rows = [{"partition_index": index, "broker_ids": each} for index, each in enumerate(brokers)]
    error = _error(_row(partitions=-1, replicas=-1, assignments=rows))
    assert error.code == 39
    assert message in (error.message or "")


def test_assigned_partitions_are_counted_from_nought() -> None:
    def assigned(*indices: int, **fields: Any) -> Fields:
        rows = [{"partition_index": index, "broker_ids": [1]} for index in indices]
        return _row(partitions=-1, replicas=-1, assignments=rows) | fields

    assert _topic(assigned(1, 0)).partitions == 2
    assert "consecutive" in (_error(assigned(0, 2)).message or "")
    assert "multiple manual" in (_error(assigned(0, 0)).message or "")
    assert "replication factor" in (_error(assigned(0, replication_factor=1, num_partitions=1)).message or "")
    assert "numPartitions" in (_error(assigned(0, num_partitions=1)).message or "")


def test_the_last_value_of_a_config_counts_and_none_may_be_null() -> None:
    def configs(*pairs: tuple[str, str | None]) -> Fields:
        return _row(configs=[{"name": name, "value": value} for name, value in pairs])

    assert _topic(configs(("retention.ms", "x"), ("retention.ms", "1"))).configs == {"retention.ms": "1"}
    error = _error(configs(("segment.ms", None), ("no.such", "1"), ("retention.ms", None)))
    assert error.message == "Null value not supported for topic configs: segment.ms,retention.ms"


def test_all_partitions_of_a_request_are_bounded() -> None:
    kafka = KafkaSettings(num_partitions=100)
    check_partitions([_row(partitions=9_900), _row(partitions=-1)], kafka)
    assigned = [{"partition_index": index, "broker_ids": [1]} for index in range(10_001)]
    for rows in ([_row(partitions=9_901), _row(partitions=-1)], [_row(assignments=assigned)]):
        with pytest.raises(ChangeRefused) as refused:
            check_partitions(rows, kafka)
        assert refused.value.error.code == 44


def test_a_topic_takes_a_record_for_itself_and_for_each_partition_and_config() -> None:
    assert _topic(_row(partitions=3, configs=[{"name": "retention.ms", "value": "1"}])).records == 5
