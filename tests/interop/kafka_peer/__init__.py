"""A real Apache Kafka broker for tests, started from Maven Central's jars."""

from __future__ import annotations

from tests.interop.kafka_peer.broker import KafkaBroker

__all__ = ["KafkaBroker"]
