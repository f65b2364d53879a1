from __future__ import annotations

from broker_core.client.kafka.cluster import Cluster, Node, nodes_of


def test_a_cluster_of_metadata() -> None:
    cluster = Cluster.of_metadata(
        {
            "cluster_id": "c",
            "controller_id": 2,
            "brokers": [
                {"node_id": 1, "host": "a", "port": 9092, "rack": None},
                {"node_id": 2, "host": "b", "port": 9093, "rack": "r"},
            ],
        }
    )
    assert cluster == Cluster("c", 2, {1: Node(1, "a", 9092), 2: Node(2, "b", 9093, "r")})
    assert cluster.node(2).address == ("b", 9093)


def test_a_node_that_the_cluster_does_not_have_has_no_address() -> None:
    assert Cluster().node(7) == Node(7, "", -1)


def test_what_has_no_address_is_no_node() -> None:
    rows = [
        {"broker_id": 1, "host": "", "port": 9092, "rack": None},
        {"broker_id": 2, "host": "a", "port": -1, "rack": None},
        {"broker_id": 3, "host": "a", "port": 70_000, "rack": None},
    ]
    assert nodes_of(rows, "broker_id") == {}
