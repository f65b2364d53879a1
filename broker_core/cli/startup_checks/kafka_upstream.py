"""The Kafka cluster behind an admin gateway: it is asked for its nodes, as the gateway would ask."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING

from broker_core.counted import counted
from broker_core.plugin_api.check_findings import Check

if TYPE_CHECKING:
    from broker_core.client.kafka import Cluster
    from broker_core.settings import KafkaSettings, KafkaUpstreamSettings, Settings

__all__ = ["kafka_upstream_checks"]

_SERVERS = "kafka.upstream.bootstrap_servers"


def kafka_upstream_checks(settings: Settings) -> Iterator[Check]:
    """Whether a node answers the gateway's own credentials, and all nodes can have ports."""
    from broker_core.client import ClientError

    kafka = settings.kafka
    if kafka is None or kafka.upstream is None:
        return
    try:
        cluster = asyncio.run(_nodes_of(kafka.upstream))
    except ClientError as failed:
        yield Check.error(_SERVERS, str(failed))
        return
    nodes = counted(len(cluster.nodes), "node")
    yield Check.ok(_SERVERS, f"the Kafka cluster {cluster.cluster_id} answers, of {nodes}")
    yield _ports(kafka, kafka.upstream, len(cluster.nodes))


def _ports(kafka: KafkaSettings, upstream: KafkaUpstreamSettings, nodes: int) -> Check:
    listeners = 1 if kafka.tls is None else 2
    needed, room = nodes * listeners, len(upstream.ports)
    text = f"{counted(nodes, 'node')} at {counted(listeners, 'listener')} need {counted(needed, 'port')} of {room}"
    return (
        Check.ok("kafka.upstream.ports", text)
        if needed <= room
        else Check.error("kafka.upstream.ports", text)
    )


async def _nodes_of(upstream: KafkaUpstreamSettings) -> Cluster:
    from broker_core.kafka_gateway import cluster_options
    from broker_core.upstream.kafka import KafkaCluster

    cluster = KafkaCluster(cluster_options(upstream))
    try:
        return await cluster.refresh()
    finally:
        await cluster.stop()
