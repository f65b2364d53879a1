"""A Kafka cluster by the answers of its nodes: their ids and addresses, and the controller."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from broker_core.service_addresses import Address

__all__ = ["Cluster", "Node", "nodes_of"]


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a cluster. A node that the cluster does not have has no host, and port -1."""

    id: int
    host: str = ""
    port: int = -1
    rack: str | None = None

    @property
    def address(self) -> Address:
        return self.host, self.port


@dataclass(frozen=True, slots=True)
class Cluster:
    """The cluster in an answer of Metadata."""

    cluster_id: str | None = None
    controller_id: int = -1
    nodes: dict[int, Node] = field(default_factory=dict)

    @classmethod
    def of_metadata(cls, value: dict[str, Any]) -> Cluster:
        return cls(value["cluster_id"], value["controller_id"], nodes_of(value["brokers"]))

    def node(self, node_id: int) -> Node:
        """The node; without host and port if the cluster does not have it."""
        return self.nodes.get(node_id) or Node(node_id)


def nodes_of(brokers: list[dict[str, Any]], name: str = "node_id") -> dict[int, Node]:
    """The nodes in an answer by their id, which is in the field ``name``; nodes without an address are left out."""
    return {
        row[name]: Node(row[name], row["host"], row["port"], row["rack"])
        for row in brokers
        if row["host"] and 0 < row["port"] < 65_536
    }
