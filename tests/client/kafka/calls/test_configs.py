from __future__ import annotations

from typing import Any

import pytest

from broker_core.client.kafka import (
    AdminClient,
    AlterConfigOp,
    ConfigOperation,
    ConfigResource,
    ConfigSource,
    ConfigSynonym,
    ConfigType,
    InvalidConfigurationException,
    UnknownTopicOrPartitionException,
)
from broker_core.wire.kafka import DESCRIBE_CONFIGS, INCREMENTAL_ALTER_CONFIGS, METADATA, Fields
from tests.support.clock import AGES
from tests.support.scripted_kafka import Asked, ScriptedKafka, metadata_of

TOPIC = ConfigResource.topic("orders")
RETENTION: dict[str, Any] = {
    "name": "retention.ms",
    "value": "1",
    "config_source": 1,
    "synonyms": [{"name": "log.retention.ms", "value": "2", "source": 4}],
    "config_type": 5,
    "documentation": "how long",
}


def described(asked: Asked) -> Fields:
    rows = [
        {key: each[key] for key in ("resource_type", "resource_name")} | {"configs": [RETENTION]}
        for each in asked.value["resources"]
    ]
    return {"results": rows}


async def test_the_configs_of_a_topic(client: AdminClient, node: ScriptedKafka) -> None:
    node.handlers[DESCRIBE_CONFIGS] = described
    found = await client.describe_configs([TOPIC, TOPIC], include_synonyms=True, include_documentation=True)
    entry = found[TOPIC]["retention.ms"]
    assert (entry.value, entry.source, entry.type) == (
        "1",
        ConfigSource.DYNAMIC_TOPIC_CONFIG,
        ConfigType.LONG,
    )
    assert entry.synonyms == (ConfigSynonym("log.retention.ms", "2", ConfigSource.STATIC_BROKER_CONFIG),)
    assert entry.documentation == "how long"
    assert node.of(DESCRIBE_CONFIGS) == [
        {
            "resources": [{"resource_type": 2, "resource_name": "orders", "configuration_keys": None}],
            "include_synonyms": True,
            "include_documentation": True,
            "response_pagination_limit": 2000,
            "cursor": None,
        }
    ]


async def test_some_configs(client: AdminClient, node: ScriptedKafka) -> None:
    node.handlers[DESCRIBE_CONFIGS] = described
    await client.describe_configs([TOPIC], names=["a", "b"])
    assert node.of(DESCRIBE_CONFIGS)[0]["resources"][0]["configuration_keys"] == ["a", "b"]


async def test_a_resource_that_is_not_there(client: AdminClient, node: ScriptedKafka) -> None:
    row = {"resource_type": 2, "resource_name": "orders", "error_code": 3, "error_message": "none"}
    node.handlers[DESCRIBE_CONFIGS] = lambda _: {"results": [row]}
    with pytest.raises(UnknownTopicOrPartitionException, match="none"):
        (await client.describe_configs([TOPIC]))[TOPIC]


async def test_the_configs_of_a_node_are_asked_of_that_node() -> None:
    async with ScriptedKafka() as first, ScriptedKafka(node_id=2) as second:
        for node in (first, second):
            node.handlers[METADATA] = lambda _: metadata_of(first, second)
            node.handlers[DESCRIBE_CONFIGS] = described
            node.handlers[INCREMENTAL_ALTER_CONFIGS] = lambda _: {
                "responses": [{"resource_type": 4, "resource_name": "2"}]
            }
        async with AdminClient(first.address, api_timeout=AGES) as client:
            broker = ConfigResource.broker(2)
            found = await client.describe_configs([TOPIC, broker])
            assert list(found) == [TOPIC, broker]
            assert [each["resources"][0]["resource_name"] for each in second.of(DESCRIBE_CONFIGS)] == ["2"]
            changed = await client.incremental_alter_configs({broker: [AlterConfigOp("x", "1")]})
            assert changed.all() == {broker: None}
            assert len(second.of(INCREMENTAL_ALTER_CONFIGS)) == 1


async def test_changes(client: AdminClient, node: ScriptedKafka) -> None:
    rows = [
        {"resource_type": 2, "resource_name": "orders"},
        {"resource_type": 2, "resource_name": "b", "error_code": 40, "error_message": "unknown"},
    ]
    node.handlers[INCREMENTAL_ALTER_CONFIGS] = lambda _: {"responses": rows}
    other = ConfigResource.topic("b")
    result = await client.incremental_alter_configs(
        {
            TOPIC: [
                AlterConfigOp("a", "1"),
                AlterConfigOp("b", operation=ConfigOperation.DELETE),
                AlterConfigOp("c", "x", ConfigOperation.APPEND),
            ],
            other: [AlterConfigOp("nope", "1")],
        },
        validate_only=True,
    )
    assert result[TOPIC] is None
    with pytest.raises(InvalidConfigurationException, match="unknown"):
        result[other]
    asked = node.of(INCREMENTAL_ALTER_CONFIGS)[0]
    assert asked["resources"][0]["configs"] == [
        {"name": "a", "config_operation": 0, "value": "1"},
        {"name": "b", "config_operation": 1, "value": None},
        {"name": "c", "config_operation": 2, "value": "x"},
    ]
    assert asked["validate_only"] is True


async def test_nothing_is_not_asked(client: AdminClient, node: ScriptedKafka) -> None:
    assert (await client.describe_configs([])).all() == {}
    assert (await client.incremental_alter_configs({})).all() == {}
    assert node.asked == []
