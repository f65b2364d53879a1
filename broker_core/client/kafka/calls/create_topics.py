"""Creating topics (CreateTopics), at the controller."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from broker_core.client.client_errors import ClientError, InvalidQuestion
from broker_core.client.kafka.argument_checks import all_of
from broker_core.client.kafka.attempts import Attempts
from broker_core.client.kafka.calls.answers_by_item import answered_rows, row_error
from broker_core.client.kafka.calls.nodes import controller
from broker_core.client.kafka.configs import Config, ConfigEntry, ConfigSource
from broker_core.client.kafka.created_topics import CreatedTopic, CreateTopicsResult
from broker_core.client.kafka.kafka_errors import KafkaException, UnsupportedVersionException, kafka_error
from broker_core.client.kafka.topics import NewTopic
from broker_core.wire.kafka import CREATE_TOPICS, Fields

__all__ = ["create_topics"]

#: The number of partitions if the server does not give it.
_UNKNOWN = -1


async def create_topics(
    attempts: Attempts, topics: Iterable[NewTopic], *, validate_only: bool
) -> CreateTopicsResult:
    """Create each topic by itself; ``validate_only`` only checks whether that would succeed."""
    given: dict[str, NewTopic] = {}
    for topic in all_of(NewTopic, topics, "new topics"):
        if topic.name in given:
            raise InvalidQuestion(f"the topic {topic.name!r} is given twice")
        given[topic.name] = topic
    created: dict[str, CreatedTopic | KafkaException] = {}

    def request(names: list[str]) -> Fields:
        return {
            "topics": [_topic_row(given[name]) for name in names],
            "timeout_ms": attempts.timeout_ms,
            "validate_only": validate_only,
        }

    def read(answer: Fields, _: list[str]) -> dict[str, ClientError | None]:
        created.update((row["name"], _created(row)) for row in answer["topics"])
        return {row["name"]: row_error(row) for row in answer["topics"]}

    rows = await answered_rows(attempts, given, controller, CREATE_TOPICS, request, read)
    return CreateTopicsResult(rows, created)


def _topic_row(topic: NewTopic) -> dict[str, Any]:
    return {
        "name": topic.name,
        "num_partitions": -1 if topic.num_partitions is None else topic.num_partitions,
        "replication_factor": -1 if topic.replication_factor is None else topic.replication_factor,
        "assignments": [
            {"partition_index": partition, "broker_ids": list(nodes)}
            for partition, nodes in topic.replica_assignments.items()
        ],
        "configs": [{"name": name, "value": value} for name, value in topic.configs.items()],
    }


def _created(row: dict[str, Any]) -> CreatedTopic | KafkaException:
    denied = kafka_error(row["topic_config_error_code"])
    if denied is not None:
        return denied
    if row["num_partitions"] == _UNKNOWN:
        return UnsupportedVersionException("the server does not tell what it made of a new topic")
    configs = Config(
        ConfigEntry(
            each["name"],
            each["value"],
            ConfigSource(each["config_source"]),
            each["read_only"],
            each["is_sensitive"],
        )
        for each in row["configs"] or ()
    )
    return CreatedTopic(row["topic_id"], row["num_partitions"], row["replication_factor"], configs)
