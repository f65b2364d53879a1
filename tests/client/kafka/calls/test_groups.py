from __future__ import annotations

from broker_core.client.kafka import AdminClient, GroupMember, OffsetAndMetadata, TopicPartition
from broker_core.wire.kafka import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_GROUPS,
    DESCRIBE_TRANSACTIONS,
    LIST_TRANSACTIONS,
    OFFSET_FETCH,
    Fields,
)
from tests.support.scripted_kafka import ScriptedKafka


def member(name: str) -> Fields:
    return {"member_id": name, "client_id": "c", "client_host": "/h", "group_instance_id": None}


async def test_groups_are_told_with_their_members(client: AdminClient, node: ScriptedKafka) -> None:
    row: Fields = {"group_id": "g", "protocol_type": "consumer", "protocol_data": "range"}
    moved = {"groups": [{"group_id": "g", "error_code": 16}]}
    once = iter([moved])
    told = {"group_state": "Stable", "members": [member("m")]}
    node.handlers[DESCRIBE_GROUPS] = lambda _: next(once, {"groups": [row | told]})
    consumer = {"group_id": "g", "group_state": "Empty", "assignor_name": "uniform", "members": []}
    node.handlers[CONSUMER_GROUP_DESCRIBE] = lambda _: {"groups": [consumer]}
    found = (await client.describe_groups(["g", "g"]))["g"]
    assert (found.state, found.protocol, found.members) == ("Stable", "range", (GroupMember("m", "c", "/h"),))
    assert [asked["groups"] for asked in node.of(DESCRIBE_GROUPS)] == [
        ["g"],
        ["g"],
    ]  # its coordinator had moved
    assert (await client.describe_consumer_groups(["g"]))["g"].protocol == "uniform"


async def test_offsets_of_groups_are_asked_for_by_name(client: AdminClient, node: ScriptedKafka) -> None:
    one = {"partition_index": 1, "committed_offset": 7, "committed_leader_epoch": 2, "metadata": "m"}
    rows = [{"group_id": "g", "topics": [{"name": "a", "partitions": [one]}]}]
    node.handlers[OFFSET_FETCH] = lambda _: {"groups": rows}
    found = await client.list_group_offsets({"g": [TopicPartition("a", 1)]})
    assert found["g"] == (OffsetAndMetadata(TopicPartition("a", 1), 7, 2, "m"),)
    (asked,) = node.of(OFFSET_FETCH)
    assert asked["groups"][0]["topics"][0]["name"] == "a"  # no version that has ids instead


async def test_transactions(client: AdminClient, node: ScriptedKafka) -> None:
    listed = {"transactional_id": "t", "producer_id": 5, "transaction_state": "Ongoing"}
    node.handlers[LIST_TRANSACTIONS] = lambda _: {"transaction_states": [listed]}
    described = listed | {"topics": [{"topic": "a", "partitions": [0, 1]}]}
    node.handlers[DESCRIBE_TRANSACTIONS] = lambda _: {"transaction_states": [described]}
    assert list(await client.list_transactions(states=["Ongoing"])) == [("t", 5, "Ongoing")]
    found = (await client.describe_transactions(["t"]))["t"]
    assert found.partitions == (("a", 0), ("a", 1))
