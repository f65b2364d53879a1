from __future__ import annotations

from broker_core.client.kafka import AdminClient
from tests.support.kafka_gateway import Cluster


async def test_what_is_hidden_is_in_no_answer(through: AdminClient, cluster: Cluster) -> None:
    described = await through.describe_topics(["orders", "secret.keys"])
    assert "secret.keys" in described.errors
    direct = (await cluster.describe_topics(["orders"]))["orders"]
    assert described["orders"].topic_id == direct.topic_id
    assert len(described["orders"].partitions) == 3
