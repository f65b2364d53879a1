from __future__ import annotations

import pytest

from broker_core.client.kafka import AdminClient, ClusterAuthorizationException, Node, Operation
from broker_core.wire.kafka import API_VERSIONS, DESCRIBE_CLUSTER, METADATA, Fields
from tests.support.clock import AGES
from tests.support.scripted_kafka import ScriptedKafka, metadata_of


def described(**fields: object) -> Fields:
    brokers = [
        {"broker_id": 2, "host": "b", "port": 2},
        {"broker_id": 1, "host": "a", "port": 1, "rack": "r"},
    ]
    return {"cluster_id": "c", "controller_id": 2, "brokers": brokers, **fields}


async def test_nodes_and_controller(client: AdminClient, node: ScriptedKafka) -> None:
    node.handlers[DESCRIBE_CLUSTER] = lambda _: described()
    cluster = await client.describe_cluster()
    assert (cluster.cluster_id, cluster.controller) == ("c", Node(2, "b", 2))
    assert cluster.nodes == (Node(1, "a", 1, "r"), Node(2, "b", 2))
    assert cluster.authorized_operations is None


async def test_no_controller_just_now(client: AdminClient, node: ScriptedKafka) -> None:
    node.handlers[DESCRIBE_CLUSTER] = lambda _: described(controller_id=-1)
    assert (await client.describe_cluster()).controller is None


async def test_authorized_operations(client: AdminClient, node: ScriptedKafka) -> None:
    node.handlers[DESCRIBE_CLUSTER] = lambda _: described(cluster_authorized_operations=1 << 8)
    cluster = await client.describe_cluster(include_authorized_operations=True)
    assert cluster.authorized_operations == frozenset({Operation.DESCRIBE})
    assert node.of(DESCRIBE_CLUSTER)[0]["include_cluster_authorized_operations"] is True


async def test_it_may_be_refused(client: AdminClient, node: ScriptedKafka) -> None:
    node.handlers[DESCRIBE_CLUSTER] = lambda _: {"error_code": 31, "error_message": "no"}
    with pytest.raises(ClusterAuthorizationException, match="no"):
        await client.describe_cluster()


async def test_of_an_older_server_it_is_metadata() -> None:
    async with ScriptedKafka(versions={API_VERSIONS: (0, 4), METADATA: (0, 8)}) as node:
        node.handlers[METADATA] = lambda _: metadata_of(node) | {"cluster_authorized_operations": 1 << 7}
        async with AdminClient(node.address, api_timeout=AGES) as client:
            cluster = await client.describe_cluster(include_authorized_operations=True)
            assert cluster.controller == Node(1, "127.0.0.1", node.port)
            assert cluster.authorized_operations == frozenset({Operation.ALTER})
            assert node.of(METADATA)[0]["topics"] == []
