from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker_core.broker import Broker
from broker_core.client.kafka import AdminClient
from tests.support.kafka_gateway import Cluster, Secrets, address_of, gateway, small_cluster


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
