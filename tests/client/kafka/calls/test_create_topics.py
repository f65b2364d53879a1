from __future__ import annotations

import uuid
from typing import Any

import pytest

from broker_core.client import InvalidQuestion, UnexpectedAnswer
from broker_core.client.kafka import (
    AdminClient,
    ConfigSource,
    InvalidTopicException,
    NewTopic,
    TopicAuthorizationException,
    UnsupportedVersionException,
)
from broker_core.wire.kafka import API_VERSIONS, CREATE_TOPICS, METADATA
from tests.support.clock import AGES
from tests.support.scripted_kafka import ScriptedKafka

ID = uuid.UUID("12345678-9abc-4def-8123-456789abcdef")
CONFIGS: list[dict[str, Any]] = [
    {"name": "cleanup.policy", "value": "delete", "config_source": 5},
    {"name": "retention.ms", "value": "1", "config_source": 1, "is_sensitive": True, "read_only": True},
]
MADE: dict[str, Any] = {
    "name": "orders",
    "topic_id": ID,
    "num_partitions": 3,
    "replication_factor": 1,
    "configs": CONFIGS,
}


async def test_what_was_made_is_told(client: AdminClient, node: ScriptedKafka) -> None:
    node.handlers[CREATE_TOPICS] = lambda _: {"topics": [MADE]}
    result = await client.create_topics([NewTopic("orders", 3, 1, configs={"retention.ms": "1"})])
    assert result.all() == {"orders": None}
    assert (result.topic_id("orders"), result.num_partitions("orders")) == (ID, 3)
    assert result.replication_factor("orders") == 1
    assert list(result.config("orders")) == ["cleanup.policy", "retention.ms"]
    entry = result.config("orders")["retention.ms"]
    assert (entry.value, entry.source) == ("1", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    assert (entry.is_sensitive, entry.is_read_only) == (True, True)


async def test_what_is_asked(client: AdminClient, node: ScriptedKafka) -> None:
    node.handlers[CREATE_TOPICS] = lambda asked: {
        "topics": [{"name": each["name"]} for each in asked.value["topics"]]
    }
    await client.create_topics(
        [NewTopic("a"), NewTopic("b", replica_assignments={0: [1, 2], 1: [2]}, configs={"x": None})],
        validate_only=True,
    )
    asked = node.of(CREATE_TOPICS)[0]
    assert asked["topics"] == [
        {"name": "a", "num_partitions": -1, "replication_factor": -1, "assignments": [], "configs": []},
        {
            "name": "b",
            "num_partitions": -1,
            "replication_factor": -1,
            "assignments": [
                {"partition_index": 0, "broker_ids": [1, 2]},
                {"partition_index": 1, "broker_ids": [2]},
            ],
            "configs": [{"name": "x", "value": None}],
        },
    ]
    assert asked["validate_only"] is True
    assert 0 < asked["timeout_ms"] <= 20_000


async def test_each_topic_fails_by_itself(client: AdminClient, node: ScriptedKafka) -> None:
    rows = [MADE, {"name": "a b", "error_code": 17, "error_message": "illegal"}]
    node.handlers[CREATE_TOPICS] = lambda _: {"topics": rows}
    result = await client.create_topics([NewTopic("a b"), NewTopic("orders"), NewTopic("forgotten")])
    assert list(result) == ["a b", "orders", "forgotten"]
    with pytest.raises(InvalidTopicException, match="illegal"):
        result.config("a b")
    assert result["orders"] is None
    assert isinstance(result.errors["forgotten"], UnexpectedAnswer)


async def test_configs_may_be_denied(client: AdminClient, node: ScriptedKafka) -> None:
    row = MADE | {
        "topic_config_error_code": 29,
        "num_partitions": -1,
        "replication_factor": -1,
        "configs": [],
    }
    node.handlers[CREATE_TOPICS] = lambda _: {"topics": [row]}
    result = await client.create_topics([NewTopic("orders")])
    assert result.all() == {"orders": None}
    with pytest.raises(TopicAuthorizationException):
        result.topic_id("orders")


async def test_an_older_server_does_not_tell() -> None:
    versions = {API_VERSIONS: (0, 4), METADATA: (0, 8), CREATE_TOPICS: (0, 4)}
    async with (
        ScriptedKafka(versions=versions) as node,
        AdminClient(node.address, api_timeout=AGES) as client,
    ):
        node.handlers[CREATE_TOPICS] = lambda _: {"topics": [{"name": "orders"}]}
        result = await client.create_topics([NewTopic("orders")])
        assert result["orders"] is None
        with pytest.raises(UnsupportedVersionException):
            result.num_partitions("orders")


async def test_a_topic_given_twice(client: AdminClient) -> None:
    with pytest.raises(InvalidQuestion, match="'a' is given twice"):
        await client.create_topics([NewTopic("a"), NewTopic("a")])


async def test_nothing_is_not_asked(client: AdminClient, node: ScriptedKafka) -> None:
    assert (await client.create_topics([])).all() == {}
    assert node.asked == []
