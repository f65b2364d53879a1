from __future__ import annotations

from broker_core.broker import Broker
from broker_core.wire.kafka import (
    CREATE_PARTITIONS,
    DELETE_TOPICS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_TOPIC_PARTITIONS,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    Fields,
)
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


async def test_behind_masks_a_cluster_that_is_gone_has_the_codes_by_which_clients_try_again(
    front: Broker, cluster: Cluster
) -> None:
    assert front.kafka_address is not None
    await cluster.close()
    await cluster.broker.stop()
    of_group: Fields = {
        "group_id": "g",
        "topics": [{"name": "orders", "partitions": [{"partition_index": 0}]}],
    }
    async with raw_client(front.kafka_address) as client:
        (row,) = (await client.ask(OFFSET_COMMIT, 9, of_group))["topics"]
        assert [each["error_code"] for each in row["partitions"]] == [15]
        assert (await client.ask(OFFSET_DELETE, 0, of_group))["error_code"] == 15
        found = await client.ask(CREATE_PARTITIONS, 3, {"topics": [{"name": "orders", "count": 9}]})
        assert [each["error_code"] for each in found["results"]] == [41]
        found = await client.ask(DELETE_TOPICS, 5, {"topic_names": ["orders"]})
        assert [each["error_code"] for each in found["responses"]] == [41]
    for api, version, body in (
        (DESCRIBE_CONFIGS, 4, {"resources": [{"resource_type": 2, "resource_name": "orders"}]}),
        (DESCRIBE_TOPIC_PARTITIONS, 0, {"topics": [{"name": "orders"}]}),
    ):
        async with raw_client(front.kafka_address) as client:
            client.send(api, version, body)
            assert await client.message() == b""
