from __future__ import annotations

import pytest

from broker_core.access.asker import Asker
from broker_core.access.connection_credentials import ClientCredentials, Sessions
from broker_core.client import CredentialsFailed
from broker_core.client.kafka import Cluster, Node
from broker_core.names import NamespaceName
from broker_core.servers.kafka import ClusterFront, NodePorts
from broker_core.upstream.kafka import ClusterOptions, KafkaCluster, identity_of


class _Connection:
    """What an asker is known by."""


def front_of(sessions: Sessions | None = None) -> ClusterFront:
    cluster = KafkaCluster(ClusterOptions((("127.0.0.1", 1),)))
    return ClusterFront(cluster, NamespaceName.parse("acme/kafka"), NodePorts(1, 9), sessions)


async def test_its_name_is_that_of_the_cluster() -> None:
    front = front_of()
    assert (front.name, front.node_ids) == ("a Kafka cluster", [])
    front.cluster.nodes = Cluster("abc", 7, {7: Node(7, "h", 1)})
    assert (front.name, front.node_ids) == ("the Kafka cluster abc", [7])


async def test_the_cluster_is_asked_as_the_gateway_or_as_the_client() -> None:
    connection = _Connection()
    asker = Asker("alice", connection=connection)
    assert front_of().identity(asker) is None
    sessions, credentials = Sessions(), ClientCredentials("basic", b"alice:pencil")
    with pytest.raises(CredentialsFailed):
        front_of(sessions).identity(asker)
    sessions.put(asker, credentials)
    identity = front_of(sessions).identity(asker)
    assert identity is not None
    assert identity.key == identity_of(credentials).key
