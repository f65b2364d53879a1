"""Describing the cluster: by DescribeCluster, or by Metadata of servers before it (before 2.8)."""

from __future__ import annotations

from dataclasses import dataclass

from broker_core.client.kafka.attempts import Attempts
from broker_core.client.kafka.authorized_operations import authorized_operations
from broker_core.client.kafka.cluster import Cluster, Node, nodes_of
from broker_core.client.kafka.kafka_errors import raise_for
from broker_core.kafka.acls import Operation
from broker_core.wire.kafka import DESCRIBE_CLUSTER, METADATA

__all__ = ["ClusterDescription", "describe_cluster"]


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """A cluster. ``controller`` is ``None`` if there is none now; ``authorized_operations`` are the asker's, ``None``
    if not asked for.
    """

    cluster_id: str | None
    controller: Node | None
    nodes: tuple[Node, ...]
    authorized_operations: frozenset[Operation] | None = None


async def describe_cluster(attempts: Attempts, *, include_authorized_operations: bool) -> ClusterDescription:
    """The cluster with its nodes in the order of their ids."""

    async def ask() -> ClusterDescription:
        connection = await attempts.cluster.any_node()
        flag = {"include_cluster_authorized_operations": include_authorized_operations}
        if connection.has(DESCRIBE_CLUSTER):
            value = await connection.ask(DESCRIBE_CLUSTER, flag)
            raise_for(value["error_code"], value["error_message"])
            nodes = nodes_of(value["brokers"], "broker_id")
            cluster = Cluster(value["cluster_id"], value["controller_id"], nodes)
        else:
            request = {"topics": [], "allow_auto_topic_creation": False, **flag}
            value = await connection.ask(METADATA, request, least=1)
            raise_for(value["error_code"])
            cluster = Cluster.of_metadata(value)
        return ClusterDescription(
            cluster.cluster_id,
            cluster.nodes.get(cluster.controller_id),
            tuple(cluster.nodes[each] for each in sorted(cluster.nodes)),
            authorized_operations(value["cluster_authorized_operations"])
            if include_authorized_operations
            else None,
        )

    return await attempts.until_answered(ask)
