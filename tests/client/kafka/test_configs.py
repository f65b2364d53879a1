from __future__ import annotations

import pytest

from broker_core.client.kafka.configs import (
    Config,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    ConfigType,
)


def test_a_number_of_a_later_kafka_is_unknown() -> None:
    assert ConfigSource(5) is ConfigSource.DEFAULT_CONFIG
    assert (ConfigSource(99), ConfigType(-1)) == (ConfigSource.UNKNOWN, ConfigType.UNKNOWN)
    assert ConfigResourceType(77) is ConfigResourceType.UNKNOWN
    with pytest.raises(ValueError):
        ConfigSource("x")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("resource", "node_id"),
    [
        (ConfigResource.topic("7"), None),
        (ConfigResource.broker(7), 7),
        (ConfigResource(ConfigResourceType.BROKER_LOGGER, "7"), 7),
        (ConfigResource(ConfigResourceType.BROKER, ""), None),
        (ConfigResource(ConfigResourceType.BROKER, "²"), None),
    ],
)
def test_who_is_asked_for_a_resource(resource: ConfigResource, node_id: int | None) -> None:
    assert resource.node_id == node_id


def test_configs_by_name() -> None:
    entry = ConfigEntry("retention.ms", "1", ConfigSource.DYNAMIC_TOPIC_CONFIG)
    config = Config([entry, ConfigEntry("a", None, ConfigSource.DEFAULT_CONFIG)])
    assert config["retention.ms"] is entry
    assert list(config) == ["retention.ms", "a"]
    assert (entry.is_default, config["a"].is_default) == (False, True)
