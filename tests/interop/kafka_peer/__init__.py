"""A real Apache Kafka broker for tests and benchmarks, started from Maven Central's jars."""

from __future__ import annotations

from tests.interop.kafka_peer.broker import KafkaBroker, unsigned_token
from tests.interop.kafka_peer.cluster import Contents, KafkaCluster, fill
from tests.interop.kafka_peer.jars import kafka_jars

__all__ = ["Contents", "KafkaBroker", "KafkaCluster", "fill", "kafka_jars", "unsigned_token"]
