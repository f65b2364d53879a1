from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from broker_core.broker import Broker
from broker_core.client.kafka import AdminClient, NewTopic
from broker_core.metrics import Metrics
from broker_core.settings import AuthenticationSettings, AuthorizationRule, AuthorizationSettings
from broker_core.upstream.kafka import KafkaCluster
from broker_core.wire.kafka import (
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    DESCRIBE_TOPIC_PARTITIONS,
    FIND_COORDINATOR,
    LIST_GROUPS,
    METADATA,
    ZERO_ID,
    Api,
    Fields,
    read_response,
)
from tests.support.kafka_gateway import NAMESPACE, Cluster, Secrets, gateway
from tests.support.kafka_serving import ask_once, raw_client
from tests.support.ports import ports_in_a_row
from tests.support.scripted_kafka import Asked, Handler, ScriptedKafka, metadata_of

RULES = {
    "authentication": AuthenticationSettings(anonymous_role="anyone"),
    "authorization": AuthorizationSettings(
        mode="rules",
        rules=(
            AuthorizationRule(roles=("anyone",), namespaces=(NAMESPACE,), actions=("list",)),
            AuthorizationRule(
                roles=("anyone",),
                namespaces=(NAMESPACE,),
                actions=("list",),
                effect="deny",
                topics=("secret*",),
            ),
        ),
    ),
}


async def test_the_nodes_of_the_cluster_are_at_ports_of_the_gateway(
    through: AdminClient, cluster: Cluster, front: Broker
) -> None:
    assert front._core is not None
    assert front._core.kafka is not None
    described, direct = await through.describe_cluster(), await cluster.describe_cluster()
    assert described.cluster_id == direct.cluster_id
    assert [node.id for node in described.nodes] == [7]
    assert described.nodes[0].port in front._core.kafka.upstream.ports
    assert described.controller is not None
    assert described.controller.address == described.nodes[0].address != direct.nodes[0].address


async def test_topics_by_name_are_those_of_the_cluster_but_the_hidden_ones(
    front: Broker, cluster: Cluster
) -> None:
    asked = {"topics": [{"name": name} for name in ("orders", "secret.keys", "none")]}
    rows = {row["name"]: row for row in (await ask_once(front, METADATA, 12, asked))["topics"]}
    direct = {row["name"]: row for row in (await ask_once(cluster.broker, METADATA, 12, asked))["topics"]}
    assert rows["orders"] == direct["orders"]
    assert rows["secret.keys"] | {"name": "none"} == rows["none"] == direct["none"]
    hidden = {"topics": [{"name": None, "topic_id": direct["secret.keys"]["topic_id"]}]}
    (row,) = (await ask_once(front, METADATA, 12, hidden))["topics"]
    assert (row["error_code"], row["name"]) == (100, None)
    assert row["topic_id"] != ZERO_ID


@pytest.mark.parametrize("version", [1, 9, 13])
async def test_many_topics_by_name_are_as_the_cluster_tells_them(
    tmp_path: Path, cluster: Cluster, version: int
) -> None:
    made = [NewTopic(f"t{number:03}", 1 + number % 3) for number in range(110)]
    (await cluster.create_topics(made)).all()
    names = [*(each.name for each in reversed(made)), "none", "a b", "orders", "t001", ""]
    asked: Fields = {"topics": [{"name": name} for name in names]}
    async with gateway(tmp_path, cluster.address) as broker:
        found = await ask_once(broker, METADATA, version, asked)
        direct = await ask_once(cluster.broker, METADATA, version, asked)
        assert found["topics"] == direct["topics"]
        # What the snapshot does not have yet is asked of a node.
        (await cluster.create_topics([NewTopic("later")])).all()
        asked["topics"].append({"name": "later"})
        found = await ask_once(broker, METADATA, version, asked)
        assert {row["name"]: row["error_code"] for row in found["topics"]}["later"] == 0


@pytest.mark.parametrize("by", ["mask", "rules"])
async def test_no_page_of_all_topics_names_what_is_hidden(tmp_path: Path, cluster: Cluster, by: str) -> None:
    made = [NewTopic("secret.large", 5), NewTopic("zebra", 4), NewTopic("secret.z")]
    (await cluster.create_topics(made)).all()
    plugins: Mapping[str, object] = {"secrets": Secrets()} if by == "mask" else {}
    tables: Mapping[str, Any] = RULES if by == "rules" else {}
    wanted = [("mail", 0), *(("orders", each) for each in range(3)), *(("zebra", each) for each in range(4))]
    async with gateway(tmp_path, cluster.address, plugins, tables) as broker:
        for limit in (1, 2, 3, 4, 2000):
            for api, version in ((DESCRIBE_TOPIC_PARTITIONS, 0), (METADATA, 13)):
                pages = await _pages(broker, api, version, None if api is METADATA else [], limit)
                assert _units(pages) == wanted
                assert max(len(_units([page])) for page in pages) == min(limit, len(wanted))
        every = {"topics": [], "response_partition_limit": 2, "cursor": _at("secret.large", 1)}
        page = await ask_once(broker, DESCRIBE_TOPIC_PARTITIONS, 0, every)
        assert _units([page]) == [("zebra", 0), ("zebra", 1)]


async def test_pages_of_named_topics_are_the_nodes_own(
    through: AdminClient, front: Broker, cluster: Cluster
) -> None:
    made = [NewTopic("a"), NewTopic("secret.large", 5), NewTopic("zebra", 4)]
    (await through.create_topics(made[::2])).all()
    (await cluster.create_topics(made[1:2])).all()
    names = ["zebra", "secret.large", "orders", "none", "secret.keys", "orders", "a"]
    asked = [{"name": name} for name in names]
    unknown = [{"name": name} for name in names if not name.startswith("secret")]
    direct = await _pages(cluster.broker, DESCRIBE_TOPIC_PARTITIONS, 0, unknown, 2000)
    whole = [part for row in direct[0]["topics"] for part in row["partitions"]]
    for limit in (1, 2, 3, 4, 7, 8, 2000):
        pages = await _pages(front, DESCRIBE_TOPIC_PARTITIONS, 0, asked, limit)
        rows = [row for page in pages for row in page["topics"]]
        assert _units(pages) == _units(direct)
        assert [row["name"] for row in rows if row["error_code"] == 3] == [
            "none",
            "secret.keys",
            "secret.large",
        ]
        assert [part for row in rows for part in row["partitions"]] == whole
    # A hidden topic is as one that there is not, where a page begins too.
    page = {"topics": asked, "response_partition_limit": 3, "cursor": _at("secret.large", 4)}
    rows = (await ask_once(front, DESCRIBE_TOPIC_PARTITIONS, 0, page))["topics"]
    assert [(row["name"], row["error_code"]) for row in rows] == [("secret.large", 3), ("zebra", 0)]
    wrong = await ask_once(front, DESCRIBE_TOPIC_PARTITIONS, 0, page | {"cursor": _at("mail", 0)})
    assert {row["error_code"] for row in wrong["topics"]} == {42}


@pytest.mark.parametrize("more", [(), ("none",), ("t001",)], ids=["there", "unknown", "twice"])
async def test_pages_of_many_named_topics_are_the_clusters(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    """Pages come from the snapshot if all named topics are in it: then no node is asked for one of them."""
    made = [NewTopic(f"t{number:03}", 1 + number % 3) for number in range(350)]
    (await cluster.create_topics(made)).all()
    asked = [{"name": name} for name in (*(each.name for each in reversed(made)), *more)]
    topics_asked: list[int] = []
    request = KafkaCluster.request

    async def noting(
        self: KafkaCluster, target: Any, api: Api, version: Any, body: Fields, *rest: Any, **named: Any
    ) -> Fields:
        if api is METADATA and body["topics"] is not None:
            topics_asked.append(len(body["topics"]))
        return await request(self, target, api, version, body, *rest, **named)

    monkeypatch.setattr(KafkaCluster, "request", noting)
    async with gateway(tmp_path, cluster.address, max_age=60) as broker:
        for version in (9, 12, 13):
            direct = await ask_once(cluster.broker, METADATA, version, {"topics": asked})
            for limit in (50, 2000):
                pages = await _pages(broker, METADATA, version, asked, limit)
                assert len(pages) == -(
                    -sum(max(len(row["partitions"]), 1) for row in direct["topics"]) // limit
                )
                rows = [row for page in pages for row in page["topics"]]
                assert _units(pages) == sorted(_units([direct]))
                assert {row["name"]: row["topic_id"] for row in rows} == {
                    row["name"]: row["topic_id"] for row in direct["topics"]
                }
                assert {row["name"] for row in rows if row["error_code"] == 3} == {*more} - {"t001"}
        assert (max(topics_asked, default=0) == 0) is not bool(more)
        page = {"topics": asked, "response_pagination_limit": 7, "cursor": _at("mail", 0)}
        wrong = await ask_once(broker, METADATA, 13, page)
        assert wrong["error_code"] == 42


async def test_a_node_without_a_port_is_as_one_that_is_down_and_the_others_are_served(
    tmp_path: Path,
) -> None:
    nodes: list[ScriptedKafka] = []
    led = {"a": 1, "b": 2, "c": 3}

    def metadata(asked: Asked) -> Fields:
        rows = asked.value["topics"]
        names = led if rows is None else [row["name"] for row in rows]
        topics = [_scripted(name, led[name]) for name in names if name in led]
        return metadata_of(*nodes, controller=nodes[-1].node_id, topics=topics)

    def cluster(_: Asked) -> Fields:
        return _cluster_of(nodes, nodes[-1].node_id)

    def coordinators(asked: Asked) -> Fields:
        keys = asked.value["coordinator_keys"]
        return {"coordinators": [{"key": key, "node_id": led[key]} for key in keys]}

    def described(asked: Asked) -> Fields:
        rows = [_scripted(row["name"], led[row["name"]]) for row in asked.value["topics"]]
        return {"topics": rows}

    handlers: dict[Api, Handler] = {
        METADATA: metadata,
        DESCRIBE_CLUSTER: cluster,
        FIND_COORDINATOR: coordinators,
        DESCRIBE_TOPIC_PARTITIONS: described,
        LIST_GROUPS: lambda _: {"groups": []},
    }
    first, last = ports_in_a_row(2)
    async with (
        ScriptedKafka(handlers, node_id=1) as one,
        ScriptedKafka(handlers, node_id=2) as two,
        ScriptedKafka(handlers, node_id=3) as late,
    ):
        nodes += [one, two]
        async with gateway(tmp_path, one.address, ports=f"{first}-{last}") as front:
            assert front._core is not None
            metrics = front._core.metrics
            assert _without_port(metrics) == 0
            nodes.append(late)
            for body in ({"topics": None}, {"topics": [{"name": name} for name in led]}):
                for version in (1, 12):
                    found = await ask_once(front, METADATA, version, body)
                    assert {row["node_id"]: row["port"] in (first, last) for row in found["brokers"]} == {
                        1: True,
                        2: True,
                    }
                    assert found["controller_id"] == 1
                    assert _partitions(found) == {"a": (0, 1, 2), "b": (0, 2, 2), "c": (5, -1, 2)}
                    offline = [0, 0, int(version >= 5)]
                    parts = [part for row in found["topics"] for part in row["partitions"]]
                    assert [len(part["offline_replicas"]) for part in parts] == offline
            for topics in ([], [{"name": name} for name in led]):
                found = await ask_once(front, DESCRIBE_TOPIC_PARTITIONS, 0, {"topics": topics})
                assert _partitions(found) == {"a": (0, 1, 2), "b": (0, 2, 2), "c": (5, -1, 2)}
            found = await ask_once(front, DESCRIBE_CLUSTER, 1, {})
            assert ([row["broker_id"] for row in found["brokers"]], found["controller_id"]) == ([1, 2], 1)
            asked = {"key_type": 0, "coordinator_keys": ["a", "c"]}
            rows = (await ask_once(front, FIND_COORDINATOR, 4, asked))["coordinators"]
            assert [(row["error_code"], row["node_id"]) for row in rows] == [(0, 1), (15, -1)]
            assert (await ask_once(front, LIST_GROUPS, 5, {}))["error_code"] == 0
            assert _without_port(metrics) == 1


@pytest.mark.parametrize("asked_first", ["cluster", "configs"])
async def test_a_node_that_comes_is_there_at_once(tmp_path: Path, asked_first: str) -> None:
    nodes: list[ScriptedKafka] = []

    def cluster(_: Asked) -> Fields:
        return _cluster_of(nodes, 1)

    def metadata(_: Asked) -> Fields:
        return metadata_of(*nodes)

    def configs(own: str) -> Handler:
        def answer(asked: Asked) -> Fields:
            names = [row["resource_name"] for row in asked.value["resources"]]
            rows = [
                {"resource_type": 4, "resource_name": name, "error_code": 0 if name == own else 42}
                for name in names
            ]
            return {"results": rows}

        return answer

    handlers: dict[Api, Handler] = {METADATA: metadata, DESCRIBE_CLUSTER: cluster}
    first, last = ports_in_a_row(2)
    async with (
        ScriptedKafka({**handlers, DESCRIBE_CONFIGS: configs("1")}, node_id=1) as one,
        ScriptedKafka({**handlers, DESCRIBE_CONFIGS: configs("2")}, node_id=2) as two,
    ):
        nodes.append(one)
        async with gateway(tmp_path, one.address, ports=f"{first}-{last}") as front:
            nodes.append(two)
            if asked_first == "configs":
                rows = [{"resource_type": 4, "resource_name": name} for name in "12"]
                results = (await ask_once(front, DESCRIBE_CONFIGS, 4, {"resources": rows}))["results"]
                assert [(row["resource_name"], row["error_code"]) for row in results] == [("1", 0), ("2", 0)]
            found = await ask_once(front, DESCRIBE_CLUSTER, 1, {})
            assert [row["broker_id"] for row in found["brokers"]] == [1, 2]
            for row in found["brokers"]:
                async with raw_client((row["host"], row["port"])) as client:
                    await client.ask(DESCRIBE_CLUSTER, 1, {})


def _without_port(metrics: Metrics) -> float | None:
    return metrics.registry.get_sample_value("broker_core_kafka_upstream_nodes_without_port")


def _cluster_of(nodes: list[ScriptedKafka], controller: int) -> Fields:
    rows = [{"broker_id": node.node_id, "host": "127.0.0.1", "port": node.port} for node in nodes]
    return {"brokers": rows, "controller_id": controller}


def _scripted(name: str, leader: int) -> Fields:
    """A topic of one partition, with a replica on node 2 besides."""
    part = {"partition_index": 0, "leader_id": leader, "leader_epoch": 1, "isr_nodes": [leader]}
    return {
        "name": name,
        "topic_id": uuid.UUID(int=leader),
        "partitions": [part | {"replica_nodes": [leader, 2] if leader != 2 else [1, 2]}],
    }


def _partitions(found: Fields) -> dict[str, tuple[int, int, int]]:
    """By topic the error, the leader and the number of replicas of its partition."""
    return {
        row["name"]: (part["error_code"], part["leader_id"], len(part["replica_nodes"]))
        for row in found["topics"]
        for part in row["partitions"]
    }


def _at(name: str, index: int) -> Fields:
    return {"topic_name": name, "partition_index": index}


def _units(pages: list[Fields]) -> list[tuple[str, int]]:
    return [
        (row["name"], part["partition_index"])
        for page in pages
        for row in page["topics"]
        for part in row["partitions"]
    ]


async def _pages(broker: Broker, api: Api, version: int, topics: object, limit: int) -> list[Fields]:
    """All pages, none of which has the word ``secret`` in what it tells, but for topics that were named."""
    assert broker.kafka_address is not None
    is_named = bool(topics)
    pages: list[Fields] = []
    cursor = None
    async with raw_client(broker.kafka_address) as client:
        for _ in range(50):
            size = (
                "response_partition_limit"
                if api is DESCRIBE_TOPIC_PARTITIONS
                else "response_pagination_limit"
            )
            client.send(api, version, {"topics": topics, size: limit, "cursor": cursor})
            message = await client.message()
            assert is_named or b"secret" not in message
            pages.append(read_response(api, version, message)[1])
            cursor = pages[-1]["next_cursor"]
            if cursor is None:
                return pages
    raise AssertionError("the pages do not end")
