from __future__ import annotations

from broker_core.broker import Broker
from broker_core.wire.kafka import DESCRIBE_CLUSTER
from tests.support.kafka_gateway import Cluster
from tests.support.kafka_serving import raw_client


async def test_a_client_sees_what_it_sees_of_a_node_that_is_gone(front: Broker, cluster: Cluster) -> None:
    assert front.kafka_address is not None
    async with raw_client(front.kafka_address) as client:
        assert (await client.ask(DESCRIBE_CLUSTER, 1, {}))["error_code"] == 0
        await cluster.close()
        await cluster.broker.stop()
        client.send(DESCRIBE_CLUSTER, 1, {})
        assert await client.message() == b""
