from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from broker_core.broker import Broker
from broker_core.client.kafka import AdminClient, NewTopic
from broker_core.settings import AuthenticationSettings, AuthorizationRule, AuthorizationSettings
from broker_core.upstream.kafka import KafkaCluster
from broker_core.wire.kafka import (
    DESCRIBE_TOPIC_PARTITIONS,
    METADATA,
    ZERO_ID,
    Api,
    Fields,
    read_response,
)
from tests.support.kafka_gateway import NAMESPACE, Cluster, Secrets, gateway
from tests.support.kafka_serving import ask_once, raw_client

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
