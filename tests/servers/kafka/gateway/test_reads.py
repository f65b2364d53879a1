from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.broker import Broker
from broker_core.client.kafka import AdminClient, ConfigResource, UnknownTopicOrPartitionException
from broker_core.settings import AuthenticationSettings, AuthorizationSettings
from broker_core.wire.kafka import (
    CREATE_ACLS,
    DELETE_GROUPS,
    DESCRIBE_ACLS,
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    DESCRIBE_LOG_DIRS,
    FIND_COORDINATOR,
    LEAVE_GROUP,
    LIST_GROUPS,
    LIST_OFFSETS,
    LIST_PARTITION_REASSIGNMENTS,
    LIST_TRANSACTIONS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    Fields,
)
from tests.support.kafka_gateway import Cluster, gateway
from tests.support.kafka_serving import RawKafkaClient, ask_once, raw_client
from tests.support.scripted_kafka import Asked, ScriptedKafka, metadata_of
from tests.support.two_kafka_nodes import KEPT


async def test_configs_are_those_of_the_cluster(through: AdminClient, cluster: Cluster) -> None:
    orders, secret = ConfigResource.topic("orders"), ConfigResource.topic("secret.keys")
    found = await through.describe_configs([orders, secret])
    assert found[orders] == (await cluster.describe_configs([orders]))[orders]
    with pytest.raises(UnknownTopicOrPartitionException):
        found[secret]


async def test_groups_are_those_of_all_nodes(through: AdminClient, cluster: Cluster) -> None:
    assert list(await through.list_groups()) == list(await cluster.list_groups()) == []


#: A cursor of directories that cannot be.
_BEHIND: Fields = {"topic_name": "a", "partition_index": -1, "log_dir": ""}


async def test_what_nodes_answer_is_joined_in_the_order_asked(two_nodes: RawKafkaClient) -> None:
    names = ["d", "a", "b", "c", "a"]
    found = await two_nodes.ask(DESCRIBE_GROUPS, 5, {"groups": names})
    assert [(row["group_id"], row["group_state"]) for row in found["groups"]] == [
        (name, "Stable") for name in ("d", "a", "a", "b", "c")
    ]
    page = await two_nodes.ask(DESCRIBE_GROUPS, 5, {"groups": names, "response_pagination_limit": 2})
    assert [row["group_id"] for row in page["groups"]] == ["a", "a", "b"]
    assert page["next_cursor"]["group_id"] == "c"
    resources = [(4, "2"), (2, "b"), (4, "1"), (2, "a"), (4, "2")]
    rows = [{"resource_type": kind, "resource_name": name} for kind, name in resources]
    results = (await two_nodes.ask(DESCRIBE_CONFIGS, 4, {"resources": rows}))["results"]
    assert [(row["resource_type"], row["resource_name"]) for row in results] == resources
    assert [row["error_message"] for row in results if row["resource_type"] == 4] == ["2", "1", "2"]
    topics = [{"name": name, "partitions": [{"partition_index": 0, "timestamp": -1}]} for name in "abcd"]
    offsets = (await two_nodes.ask(LIST_OFFSETS, 8, {"topics": topics}))["topics"]
    assert {row["name"]: row["partitions"][0]["offset"] for row in offsets} == {
        name: KEPT[name] for name in "abcd"
    }
    # No node leads what names no partition.
    none = [{"name": "a", "partitions": []}]
    assert (await two_nodes.ask(LIST_OFFSETS, 8, {"topics": none}))["topics"][0]["name"] == "a"


@pytest.mark.parametrize("twice", [[], ["a"]])
async def test_a_group_that_two_nodes_tell_is_listed_once(
    two_nodes: RawKafkaClient, groups: dict[int, list[str]], twice: list[str]
) -> None:
    groups[2] += twice  # it has just gone from one to the other
    for page in ({}, {"response_pagination_limit": 10}):
        found = await two_nodes.ask(LIST_GROUPS, 5, page)
        assert sorted(row["group_id"] for row in found["groups"]) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("page", [{}, {"response_pagination_limit": 100}])
async def test_a_node_that_is_gone_makes_its_part_an_error(
    two_nodes: RawKafkaClient, nodes: list[ScriptedKafka], page: Fields
) -> None:
    await nodes[1].stop()
    found = await two_nodes.ask(DESCRIBE_GROUPS, 6, {"groups": ["a", "b"], **page})
    assert {row["group_id"]: row["error_code"] for row in found["groups"]} == {"a": 0, "b": 15}
    topics = [{"name": name, "partitions": [{"partition_index": 0, "timestamp": -1}]} for name in "ab"]
    found = await two_nodes.ask(LIST_OFFSETS, 8, {"topics": topics, **page})
    assert {row["name"]: row["partitions"][0]["error_code"] for row in found["topics"]} == {"a": 0, "b": 6}
    rows = [{"resource_type": 4, "resource_name": name} for name in "12"]
    found = await two_nodes.ask(DESCRIBE_CONFIGS, 4, {"resources": rows, **page})
    assert {row["resource_name"]: row["error_code"] for row in found["results"]} == {"1": 0, "2": 8}
    found = await two_nodes.ask(OFFSET_FETCH, 7, {"group_id": "b", "topics": None, **page})
    assert (found["error_code"], found["topics"]) == (15, [])
    found = await two_nodes.ask(DELETE_GROUPS, 2, {"groups_names": ["b"]})
    assert found["results"] == [{"group_id": "b", "error_code": 15}]
    asked: Fields = {"topics": [{"name": "a", "partition_indexes": [0, 3]}]}
    found = await two_nodes.ask(OFFSET_FETCH, 1, {"group_id": "b", **asked})
    codes = {each["partition_index"]: each["error_code"] for each in found["topics"][0]["partitions"]}
    assert (found["topics"][0]["name"], codes) == ("a", {0: 15, 3: 15})
    found = await two_nodes.ask(OFFSET_FETCH, 1, {"group_id": "a", **asked})
    assert found["topics"] == []  # as the node that is there answers
    offsets = [{"partition_index": index} for index in (0, 3)]
    change: Fields = {"group_id": "b", "topics": [{"name": "a", "partitions": offsets}]}
    found = await two_nodes.ask(OFFSET_COMMIT, 9, change)
    codes = {each["partition_index"]: each["error_code"] for each in found["topics"][0]["partitions"]}
    assert (found["topics"][0]["name"], codes) == ("a", {0: 15, 3: 15})
    found = await two_nodes.ask(OFFSET_DELETE, 0, change)
    assert (found["error_code"], found["topics"]) == (15, [])
    found = await two_nodes.ask(LEAVE_GROUP, 5, {"group_id": "b", "members": [{"member_id": "m"}]})
    assert (found["error_code"], found["members"]) == (15, [])
    assert (await two_nodes.ask(LIST_GROUPS, 5, page))["error_code"] == 15
    await nodes[0].stop()
    groups = {"groups": ["a", "b"], **page}
    assert _codes((await two_nodes.ask(DESCRIBE_GROUPS, 6, groups))["groups"]) == [15, 15]
    groups = {"groups": [{"group_id": name, "topics": None} for name in "ab"], **page}
    assert _codes((await two_nodes.ask(OFFSET_FETCH, 8, groups))["groups"]) == [15, 15]
    assert _codes((await two_nodes.ask(DELETE_GROUPS, 2, {"groups_names": ["b"]}))["results"]) == [15]
    found = await two_nodes.ask(OFFSET_FETCH, 7, {"group_id": "b", "topics": None, **page})
    assert (found["error_code"], found["topics"]) == (15, [])
    found = await two_nodes.ask(LIST_OFFSETS, 8, {"topics": topics, **page})
    assert [_codes(row["partitions"]) for row in found["topics"]] == [[6], [6]]
    assert (await two_nodes.ask(LIST_GROUPS, 5, page))["error_code"] == 15


@pytest.mark.parametrize("page", [{}, {"response_pagination_limit": 100}])
async def test_of_what_no_node_keeps_an_answer_is_an_error_and_never_a_part(
    two_nodes: RawKafkaClient, nodes: list[ScriptedKafka], page: Fields
) -> None:
    """A node is gone, and the cluster has given it up: the others list no error, and nothing of it."""
    lost = {"__transaction_state": [0, 1]}

    def metadata(asked: Asked) -> Fields:
        rows = [
            {"name": name, "partitions": [{"partition_index": 0, "leader_id": each} for each in leaders]}
            for name, leaders in lost.items()
            if name in {row["name"] for row in asked.value["topics"] or ()}
        ]
        return metadata_of(nodes[0], topics=rows)

    def coordinators(asked: Asked) -> Fields:
        rows = [{"key": key, "node_id": KEPT[key]} for key in asked.value["coordinator_keys"]]
        return {"coordinators": [row if row["node_id"] == 1 else {**row, "error_code": 15} for row in rows]}

    transactions = {"transaction_states": [{"transactional_id": "a"}]}
    nodes[0].handlers |= {METADATA: metadata, FIND_COORDINATOR: coordinators}
    nodes[0].handlers[LIST_TRANSACTIONS] = lambda _: transactions
    await nodes[1].stop()

    async def outcomes() -> list[tuple[int, int]]:
        groups = await two_nodes.ask(LIST_GROUPS, 5, page)
        found = await two_nodes.ask(LIST_TRANSACTIONS, 1, page)
        return [
            (groups["error_code"], len(groups["groups"])),
            (found["error_code"], len(found["transaction_states"])),
        ]

    assert await outcomes() == [(0, 2), (0, 1)]
    lost["__consumer_offsets"] = [1, -1]
    assert await outcomes() == [(15, 0), (0, 1)]
    lost["__transaction_state"] = [-1]
    assert await outcomes() == [(15, 0), (15, 0)]
    found = await two_nodes.ask(DESCRIBE_GROUPS, 6, {"groups": ["a", "b"], **page})
    assert _codes(found["groups"]) == [0, 15]
    groups = {"groups": [{"group_id": name, "topics": None} for name in "b"], **page}
    assert _codes((await two_nodes.ask(OFFSET_FETCH, 8, groups))["groups"]) == [15]
    found = await two_nodes.ask(OFFSET_FETCH, 7, {"group_id": "b", "topics": None, **page})
    assert (found["error_code"], found["topics"]) == (15, [])


def _codes(rows: list[Fields]) -> list[int]:
    return [row["error_code"] for row in rows]


async def test_old_versions_have_the_denial_of_a_group_in_each_partition(
    tmp_path: Path, cluster: Cluster
) -> None:
    tables = {
        "authentication": AuthenticationSettings(anonymous_role="anyone"),
        "authorization": AuthorizationSettings(mode="rules"),
    }
    asked = {"group_id": "g", "topics": [{"name": "orders", "partition_indexes": [0, 3]}]}
    async with gateway(tmp_path, cluster.address, tables=tables) as front:
        (topic,) = (await ask_once(front, OFFSET_FETCH, 1, asked))["topics"]
    rows = [(each["partition_index"], each["error_code"]) for each in topic["partitions"]]
    assert (topic["name"], rows) == ("orders", [(0, 30), (3, 30)])


async def test_many_ids_of_no_node_cost_one_look_for_nodes(
    two_nodes: RawKafkaClient, nodes: list[ScriptedKafka]
) -> None:
    for node in nodes:
        node.asked.clear()
    rows = [{"resource_type": 4, "resource_name": f"{number}"} for number in range(100, 400)]
    found = await two_nodes.ask(DESCRIBE_CONFIGS, 4, {"resources": rows})
    assert {row["error_code"] for row in found["results"]} == {42}
    assert sum(len(node.of(METADATA)) for node in nodes) < 6


@pytest.mark.parametrize("name", ["99", "9" * 30, "²", "x"])
async def test_a_node_has_an_error_for_what_is_no_node(two_nodes: RawKafkaClient, name: str) -> None:
    rows = [{"resource_type": 4, "resource_name": each} for each in ("+1", name, "2")]
    found = await two_nodes.ask(DESCRIBE_CONFIGS, 4, {"resources": rows})
    told = [(row["resource_name"], row["error_code"]) for row in found["results"]]
    assert told == [("+1", 0), (name, 42), ("2", 0)]


@pytest.mark.parametrize("before_a_cluster", [True, False])
async def test_pages_of_configs_of_an_unknown_type_are_the_whole_answer(
    cluster: Cluster, through: AdminClient, front: Broker, before_a_cluster: bool
) -> None:
    broker = front if before_a_cluster else cluster.broker
    resources = [(2, "orders"), (77, "x"), (2, "mail"), (4, "7")]
    rows = [{"resource_type": kind, "resource_name": name} for kind, name in resources]
    whole = await ask_once(broker, DESCRIBE_CONFIGS, 4, {"resources": rows})
    assert sorted(_codes(whole["results"])) == [42] * 4
    page = await ask_once(broker, DESCRIBE_CONFIGS, 4, {"resources": rows, "response_pagination_limit": 1})
    assert page == whole


async def test_a_node_that_lags_takes_no_port_from_another(
    two_nodes: RawKafkaClient, nodes: list[ScriptedKafka]
) -> None:
    row = (await two_nodes.ask(FIND_COORDINATOR, 4, {"key_type": 0, "coordinator_keys": ["b"]}))[
        "coordinators"
    ][0]
    async with raw_client((row["host"], row["port"])) as there:
        before = nodes[0].handlers[METADATA]
        for node in nodes:
            node.handlers[METADATA] = lambda asked: (
                metadata_of(nodes[0]) if asked.value["topics"] else before(asked)
            )
        found = await two_nodes.ask(METADATA, 12, {"topics": [{"name": "a"}]})
        assert [broker["node_id"] for broker in found["brokers"]] == [1]
        async with raw_client((row["host"], row["port"])) as again:
            for client in (there, again):
                groups = (await client.ask(LIST_GROUPS, 5, {}))["groups"]
                assert [group["group_id"] for group in groups] == ["b", "d"]


async def test_a_page_that_cannot_be_is_an_error_in_each_directory_of_the_node(
    two_nodes: RawKafkaClient, nodes: list[ScriptedKafka]
) -> None:
    row = (await two_nodes.ask(FIND_COORDINATOR, 4, {"key_type": 0, "coordinator_keys": ["b"]}))[
        "coordinators"
    ][0]
    nodes[1].handlers[DESCRIBE_LOG_DIRS] = lambda _: {"results": [{"log_dir": "/d1"}, {"log_dir": "/d2"}]}
    async with raw_client((row["host"], row["port"])) as there:
        for page in ({"response_pagination_limit": -1}, {"cursor": _BEHIND}):
            found = await there.ask(DESCRIBE_LOG_DIRS, 2, {"topics": None, **page})
            assert [(each["log_dir"], each["error_code"]) for each in found["results"]] == [
                ("/d1", 42),
                ("/d2", 42),
            ]
            assert (await there.ask(DESCRIBE_LOG_DIRS, 3, {"topics": None, **page}))["error_code"] == 42
    for page in ({"cursor": _BEHIND}, {"cursor": {**_BEHIND, "partition_index": 0}}):
        # At the listener's own port, which has no directories, a cursor that can be read has the error too.
        for limit in ({}, {"response_pagination_limit": 1}):
            assert (await two_nodes.ask(DESCRIBE_LOG_DIRS, 5, {"topics": None, **limit}))["error_code"] == 42
        found = await two_nodes.ask(DESCRIBE_LOG_DIRS, 2, {"topics": None, **page})
        assert [each["error_code"] for each in found["results"]] == [42]


async def test_no_text_of_an_error_names_the_address_of_a_node(
    two_nodes: RawKafkaClient, nodes: list[ScriptedKafka]
) -> None:
    quoted = (
        "Request Request(processor=0, connectionId=127.0.0.1:9092-127.0.0.1:5, session=x) is not authorized."
    )
    failed = {"error_code": 31, "error_message": quoted}
    own = "Cluster authorization failed."
    for node in nodes:
        node.handlers[LIST_PARTITION_REASSIGNMENTS] = node.handlers[DESCRIBE_ACLS] = lambda _: failed
        node.handlers[CREATE_ACLS] = lambda _: {"results": [failed]}
        node.handlers[DESCRIBE_CONFIGS] = lambda asked: {
            "results": [
                {"resource_type": 2, "resource_name": row["resource_name"], "configs": [{"name": quoted}]}
                | (failed if row["resource_name"] == "b" else {"error_message": "fine"})
                for row in asked.value["resources"]
            ]
        }
    acls = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    for api, version, body in (
        (LIST_PARTITION_REASSIGNMENTS, 0, {"topics": None}),
        (DESCRIBE_ACLS, 3, acls),
    ):
        for page in ({}, {"response_pagination_limit": 2}):
            found = await two_nodes.ask(api, version, body | page)
            assert (found["error_code"], found["error_message"]) == (31, own)
    acl = {"resource_type": 2, "resource_name": "a", "resource_pattern_type": 3, "principal": "User:a"}
    acl |= {"host": "*", "operation": 3, "permission_type": 3}
    found = await two_nodes.ask(CREATE_ACLS, 3, {"creations": [acl]})
    assert [row["error_message"] for row in found["results"]] == [own]
    rows = [{"resource_type": 2, "resource_name": name} for name in "abc"]
    found = await two_nodes.ask(DESCRIBE_CONFIGS, 4, {"resources": rows})
    assert [row["error_message"] for row in found["results"]] == ["fine", own, "fine"]
    assert [row["configs"][0]["name"] for row in found["results"]] == [quoted] * 3
