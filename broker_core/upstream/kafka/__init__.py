"""The Kafka cluster behind an admin gateway: its nodes and connections to them."""

from __future__ import annotations

from broker_core.upstream.kafka.kafka_cluster import (
    ANY,
    CONTROLLER,
    ClientIdentity,
    ClusterOptions,
    Coordinator,
    KafkaCluster,
    Target,
)

__all__ = [
    "ANY",
    "CONTROLLER",
    "ClientIdentity",
    "ClusterOptions",
    "Coordinator",
    "KafkaCluster",
    "Target",
]
