from __future__ import annotations

from broker_core.broker import Broker
from broker_core.client.kafka import AdminClient
from broker_core.wire.kafka import METADATA, ZERO_ID
from tests.support.kafka_gateway import Cluster
from tests.support.kafka_serving import ask_once


async def test_the_nodes_of_the_cluster_are_at_ports_of_the_gateway(
    through: AdminClient, cluster: Cluster, front: Broker
) -> None:
    assert front._core is not None
    assert front._core.kafka is not None
    described, direct = await through.describe_cluster(), await cluster.describe_cluster()
    assert described.cluster_id == direct.cluster_id
    assert [node.id for node in described.nodes] == [7]
    assert described.nodes[0].port in front._core.kafka.upstream.ports
    assert described.controller is not None
    assert described.controller.address == described.nodes[0].address != direct.nodes[0].address


async def test_topics_by_name_are_those_of_the_cluster_but_the_hidden_ones(
    front: Broker, cluster: Cluster
) -> None:
    asked = {"topics": [{"name": name} for name in ("orders", "secret.keys", "none")]}
    rows = {row["name"]: row for row in (await ask_once(front, METADATA, 12, asked))["topics"]}
    direct = {row["name"]: row for row in (await ask_once(cluster.broker, METADATA, 12, asked))["topics"]}
    assert rows["orders"] == direct["orders"]
    assert rows["secret.keys"] | {"name": "none"} == rows["none"] == direct["none"]
    hidden = {"topics": [{"name": None, "topic_id": direct["secret.keys"]["topic_id"]}]}
    (row,) = (await ask_once(front, METADATA, 12, hidden))["topics"]
    assert (row["error_code"], row["name"]) == (100, None)
    assert row["topic_id"] != ZERO_ID
