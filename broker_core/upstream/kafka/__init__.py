"""The Kafka cluster behind an admin gateway: its nodes and connections to them."""

from __future__ import annotations

from broker_core.upstream.kafka.client_identity import ClientIdentity, identity_of, principal_of
from broker_core.upstream.kafka.cluster_plugin import CLUSTER_PLUGIN, ClusterPlugin
from broker_core.upstream.kafka.cluster_store import KafkaTopicStore
from broker_core.upstream.kafka.cluster_topics import ClusterTopics
from broker_core.upstream.kafka.kafka_cluster import (
    ANY,
    CONTROLLER,
    AnswerLost,
    ClusterOptions,
    Coordinator,
    KafkaCluster,
    Target,
)

__all__ = [
    "ANY",
    "CLUSTER_PLUGIN",
    "CONTROLLER",
    "AnswerLost",
    "ClientIdentity",
    "ClusterOptions",
    "ClusterPlugin",
    "ClusterTopics",
    "Coordinator",
    "KafkaCluster",
    "KafkaTopicStore",
    "Target",
    "identity_of",
    "principal_of",
]
