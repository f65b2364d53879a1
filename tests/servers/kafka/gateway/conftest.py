from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker_core.broker import Broker
from broker_core.client.kafka import AdminClient
from tests.support.kafka_gateway import Cluster, Secrets, address_of, gateway, small_cluster
from tests.support.kafka_serving import RawKafkaClient, raw_client
from tests.support.ports import ports_in_a_row
from tests.support.scripted_kafka import ScriptedKafka
from tests.support.two_kafka_nodes import handlers_of_node


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    async with small_cluster(tmp_path) as cluster:
        yield cluster


@pytest.fixture
async def front(tmp_path: Path, cluster: Cluster) -> AsyncIterator[Broker]:
    """A gateway before the cluster, with a mask that hides secret.keys."""
    async with gateway(tmp_path, cluster.address, {"secrets": Secrets()}) as broker:
        yield broker


@pytest.fixture
async def through(front: Broker) -> AsyncIterator[AdminClient]:
    """A client of the gateway."""
    async with AdminClient(address_of(front), api_timeout=10) as client:
        yield client


@pytest.fixture
async def groups() -> dict[int, list[str]]:
    """The groups that each node lists."""
    return {1: ["a", "c"], 2: ["b", "d"]}


@pytest.fixture
async def nodes() -> list[ScriptedKafka]:
    """The nodes of the cluster."""
    return []


@pytest.fixture
async def two_nodes(
    tmp_path: Path, groups: dict[int, list[str]], nodes: list[ScriptedKafka]
) -> AsyncIterator[RawKafkaClient]:
    """A client of the port that is no node's, before a cluster of two nodes."""
    for number in (1, 2):
        node = ScriptedKafka(node_id=number)
        nodes.append(node)
        node.handlers |= handlers_of_node(nodes, groups)
    first, *_, last = ports_in_a_row(4)
    async with (
        nodes[0],
        nodes[1],
        gateway(tmp_path, nodes[0].address, ports=f"{first}-{last}") as front,
    ):
        host, _, port = address_of(front).rpartition(":")
        async with raw_client((host, int(port))) as client:
            yield client
