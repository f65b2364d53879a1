"""The table ``[kafka.configs]``: whether Kafka accepts its names and values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from broker_core.counted import counted
from broker_core.plugin_api import Check

if TYPE_CHECKING:
    from broker_core.settings import Settings

__all__ = ["kafka_configs_checks"]


def kafka_configs_checks(settings: Settings) -> Iterator[Check]:
    """A finding about the defaults of topic configs."""
    if settings.kafka is None or not settings.kafka.configs:
        return
    from broker_core.kafka.configs import broker_config_faults

    faults = broker_config_faults(settings.kafka.configs)
    yield from (Check.error("kafka.configs", fault) for fault in faults)
    if not faults:
        yield Check.ok("kafka.configs", f"{counted(len(settings.kafka.configs), 'default')} of topic configs")
