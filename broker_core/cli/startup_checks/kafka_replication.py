"""The replication factor of topics that Kafka clients make without one: whether such topics can be made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from broker_core.plugin_api import Check

if TYPE_CHECKING:
    from broker_core.settings import Settings

__all__ = ["kafka_replication_checks"]


def kafka_replication_checks(settings: Settings) -> Iterator[Check]:
    """A finding about ``kafka.replication_factor`` beside ``kafka.replication``."""
    kafka = settings.kafka
    if kafka is not None and kafka.replication == "strict" and kafka.replication_factor > 1:
        yield Check.warning(
            "kafka.replication_factor",
            f"topics that clients make without a replication factor are refused (38): {kafka.replication_factor} "
            'replicas need as many nodes, and there is one; write 1, or kafka.replication = "record"',
        )
