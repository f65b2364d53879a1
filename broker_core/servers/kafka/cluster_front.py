"""The Kafka cluster that clients of a gateway see: its nodes at ports of the gateway, asked for each client."""

from __future__ import annotations

from broker_core.access.asker import Asker
from broker_core.access.sessions import Sessions
from broker_core.client import CredentialsFailed
from broker_core.client.kafka import Cluster
from broker_core.names import NamespaceName
from broker_core.servers.kafka.node_ports import NodePorts
from broker_core.upstream.kafka import ClientIdentity, KafkaCluster, identity_of

__all__ = ["ClusterFront"]


class ClusterFront:
    """``namespace`` is the one whose topics are the cluster's. ``sessions`` has the credentials of clients if the
    cluster is asked with these, ``None``: with the gateway's own.
    """

    def __init__(
        self,
        cluster: KafkaCluster,
        namespace: NamespaceName,
        ports: NodePorts,
        sessions: Sessions | None = None,
    ) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.ports = ports
        self._sessions = sessions
        cluster.on_nodes.append(self._fit)

    @property
    def forwards(self) -> bool:
        """Whether the cluster is asked with the credentials of clients."""
        return self._sessions is not None

    @property
    def name(self) -> str:
        """What clients are told that the cluster is called."""
        nodes = self.cluster.nodes
        return (
            "a Kafka cluster"
            if nodes is None or not nodes.cluster_id
            else f"the Kafka cluster {nodes.cluster_id}"
        )

    @property
    def node_ids(self) -> list[int]:
        """The nodes that are known."""
        return [] if self.cluster.nodes is None else list(self.cluster.nodes.nodes)

    def identity(self, asker: Asker) -> ClientIdentity | None:
        """Whom the cluster is asked as; ``None``: the gateway.

        Raises :exc:`~broker_core.client.CredentialsFailed` if there is nothing of the client's to pass on.
        """
        if self._sessions is None:
            return None
        credentials = self._sessions.of(asker)
        if credentials is None:
            raise CredentialsFailed("there are no credentials of this client to ask the cluster with")
        return identity_of(credentials)

    async def _fit(self, cluster: Cluster) -> None:
        await self.ports.fit(cluster.nodes)
