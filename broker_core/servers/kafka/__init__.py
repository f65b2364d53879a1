"""The server of Kafka's protocol: topics listed, created, described and deleted by Kafka clients."""

from __future__ import annotations

from broker_core.servers.kafka.cluster.cluster_front import ClusterFront
from broker_core.servers.kafka.cluster.node_ports import NodePorts
from broker_core.servers.kafka.sasl.mechanisms import MechanismUnusable, check_mechanisms
from broker_core.servers.kafka.server import KafkaServer
from broker_core.servers.kafka.server_from_settings import kafka_server
from broker_core.servers.kafka.services import ConnectionTimes, KafkaOptions, KafkaServices
from broker_core.servers.kafka.topics.shown_topics import explain_kafka as explain_kafka

__all__ = [
    "ClusterFront",
    "ConnectionTimes",
    "KafkaOptions",
    "KafkaServer",
    "KafkaServices",
    "MechanismUnusable",
    "NodePorts",
    "check_mechanisms",
    "kafka_server",
]
