from __future__ import annotations

import pytest

from broker_core.client.kafka import AdminClient, ConfigResource, UnknownTopicOrPartitionException
from tests.support.kafka_gateway import Cluster


async def test_configs_are_those_of_the_cluster(through: AdminClient, cluster: Cluster) -> None:
    orders, secret = ConfigResource.topic("orders"), ConfigResource.topic("secret.keys")
    found = await through.describe_configs([orders, secret])
    assert found[orders] == (await cluster.describe_configs([orders]))[orders]
    with pytest.raises(UnknownTopicOrPartitionException):
        found[secret]


async def test_groups_are_those_of_all_nodes(through: AdminClient, cluster: Cluster) -> None:
    assert list(await through.list_groups()) == list(await cluster.list_groups()) == []
