from __future__ import annotations

import struct
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from broker_core.broker import Broker
from broker_core.client.kafka import AdminClient, NewTopic
from broker_core.plugin_api.hookspecs import hookimpl
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.servers.kafka.gateway.hidden_topics import topics_of_member
from broker_core.servers.kafka.topics.named_topics import NamedTopics
from broker_core.wire.kafka import (
    DESCRIBE_PRODUCERS,
    DESCRIBE_TOPIC_PARTITIONS,
    LIST_OFFSETS,
    LIST_TOPICS,
    METADATA,
    NOT_REQUESTED,
    OFFSET_FETCH,
)
from tests.support.kafka_gateway import NAMESPACE, Cluster, Secrets, gateway
from tests.support.kafka_serving import ask_once, raw_client
from tests.support.ports import free_port


async def test_what_is_hidden_is_in_no_answer(through: AdminClient, cluster: Cluster) -> None:
    described = await through.describe_topics(["orders", "secret.keys"])
    assert "secret.keys" in described.errors
    direct = (await cluster.describe_topics(["orders"]))["orders"]
    assert described["orders"].topic_id == direct.topic_id
    assert len(described["orders"].partitions) == 3


async def test_names_alone_are_those_of_the_snapshot_without_the_hidden_ones(
    through: AdminClient, cluster: Cluster
) -> None:
    """By an API that the cluster's nodes do not have."""
    assert LIST_TOPICS.key in await through.api_versions()
    assert sorted((await cluster.list_topics()).names()) == ["mail", "orders", "secret.keys"]
    assert sorted((await through.list_topics()).names()) == ["mail", "orders"]
    (await cluster.create_topics([NewTopic("__consumer_offsets")])).all()
    (await through.create_topics([NewTopic("seen")])).all()
    assert sorted((await through.list_topics()).names()) == ["mail", "orders", "seen"]
    every = await through.list_topics(list_internal=True)
    assert [each.name for each in every if each.is_internal] == ["__consumer_offsets"]


@pytest.mark.parametrize("is_node", [False, True])
async def test_an_id_of_a_hidden_topic_is_one_of_no_topic(
    tmp_path: Path, cluster: Cluster, is_node: bool
) -> None:
    described = await cluster.describe_topics(["orders", "secret.keys"])
    ids = {name: described[name].topic_id for name in ("orders", "secret.keys")}
    unknown = [ids["secret.keys"], uuid.UUID(int=7)]
    topics = [{"topic_id": each, "partition_indexes": [0, 1]} for each in [*unknown, ids["orders"]]]
    port = free_port()
    async with gateway(tmp_path, cluster.address, {"secrets": Secrets()}, ports=str(port)) as front:
        address = ("127.0.0.1", port) if is_node else front.kafka_address or ("", 0)
        async with raw_client(address) as client:
            answer = await client.ask(
                OFFSET_FETCH, 10, {"groups": [{"group_id": "g", "member_epoch": -1, "topics": topics}]}
            )
    codes = {
        row["topic_id"]: [part["error_code"] for part in row["partitions"]]
        for row in answer["groups"][0]["topics"]
    }
    assert codes == {each: [100, 100] for each in unknown} | {ids["orders"]: [0, 0]}


@pytest.mark.parametrize("page", [{}, {"response_pagination_limit": 100}])
async def test_a_hidden_topic_has_the_place_of_an_unknown_id(
    tmp_path: Path, cluster: Cluster, page: dict[str, int]
) -> None:
    """Its name would put it behind the others, and say that it is there; each row that asks for it has it once."""
    described = await cluster.describe_topics(["orders", "secret.keys"])
    hidden, orders = (described[name].topic_id for name in ("secret.keys", "orders"))
    topics = [{"topic_id": each, "partition_indexes": [0]} for each in (orders, hidden)]
    groups = [{"group_id": "g", "topics": each} for each in (topics, topics[:1], topics[1:])]
    async with gateway(tmp_path, cluster.address, {"secrets": Secrets()}) as front:
        answer = await ask_once(front, OFFSET_FETCH, 10, {"groups": groups, **page})
    told = [[row["topic_id"] for row in group["topics"]] for group in answer["groups"]]
    assert told == (
        [[hidden, orders], [hidden], [orders]] if page else [[orders, hidden], [orders], [hidden]]
    )


@pytest.mark.parametrize("is_node", [False, True])
@pytest.mark.parametrize("version", [12, 13])
async def test_a_hidden_topic_is_listed_by_id_where_an_unknown_one_would_be(
    tmp_path: Path, cluster: Cluster, version: int, is_node: bool
) -> None:
    described = await cluster.describe_topics(["orders", "mail", "secret.keys"])
    orders, mail, hidden = (described[name].topic_id for name in ("orders", "mail", "secret.keys"))
    unknown = [uuid.UUID(int=1), uuid.UUID(int=2**127)]
    port = free_port()
    async with gateway(tmp_path, cluster.address, {"secrets": Secrets()}, ports=str(port)) as front:
        address = ("127.0.0.1", port) if is_node else front.kafka_address or ("", 0)
        async with raw_client(address) as client:
            for turn in range(5):
                for it in (hidden, uuid.UUID(int=hidden.int ^ 1)):
                    asked = [unknown[0], mail, unknown[1], orders]
                    asked.insert(turn, it)
                    # A name beside ids is not looked at.
                    topics = [*({"name": None, "topic_id": each} for each in asked), {"name": "secret.keys"}]
                    rows = (await client.ask(METADATA, version, {"topics": topics}))["topics"]
                    missing = [each for each in asked if each not in (mail, orders)]
                    assert [(row["topic_id"], row["name"], row["error_code"]) for row in rows] == [
                        *((each, None, 100) for each in missing),
                        (mail, "mail", 0),
                        (orders, "orders", 0),
                    ]


@pytest.mark.parametrize("is_node", [False, True])
async def test_a_named_hidden_topic_is_as_one_that_is_not_there(
    tmp_path: Path, cluster: Cluster, is_node: bool
) -> None:
    port = free_port()
    async with gateway(tmp_path, cluster.address, {"secrets": Secrets()}, ports=str(port)) as front:
        address = ("127.0.0.1", port) if is_node else front.kafka_address or ("", 0)
        async with raw_client(address) as client:
            answers = []
            for name in ("secret.keys", "absent.keys"):
                named = {"topics": [{"name": each} for each in (name, "orders", "none")]}
                rows = (await client.ask(METADATA, 12, named))["topics"]
                parts = [{"partition_index": each, "timestamp": -1} for each in range(3)]
                topics: list[Any] = [{"name": name, "partitions": parts}]
                asked = {"topics": topics, "response_pagination_limit": 1}
                within = {"topic_name": name, "partition_index": 1, "topic_id": uuid.UUID(int=7)}
                pages = [await client.ask(LIST_OFFSETS, 8, {**asked, "cursor": at}) for at in (None, within)]
                answers.append(
                    (
                        [(row["name"].replace(name, "it"), row["error_code"]) for row in rows],
                        [
                            (page["topics"][0]["partitions"], {**page["next_cursor"], "topic_name": "it"})
                            for page in pages
                        ],
                    )
                )
    hidden, missing = answers
    assert hidden == missing
    assert hidden[0] == [("orders", 0), ("it", 3), ("none", 3)]
    assert [cursor["topic_id"].int for _, cursor in hidden[1]] == [0, 7]


@pytest.mark.parametrize("is_node", [False, True])
async def test_producers_are_in_the_order_asked_though_some_topics_are_hidden(
    tmp_path: Path, cluster: Cluster, is_node: bool
) -> None:
    names = ["secret.keys", "orders", "absent.keys", "mail", "secret.keys"]
    topics = [{"name": name, "partition_indexes": [0, 9]} for name in names]
    port = free_port()
    async with gateway(tmp_path, cluster.address, {"secrets": Secrets()}, ports=str(port)) as front:
        address = ("127.0.0.1", port) if is_node else front.kafka_address or ("", 0)
        async with raw_client(address) as client:
            rows = (await client.ask(DESCRIBE_PRODUCERS, 0, {"topics": topics}))["topics"]
    codes = [(row["name"], [each["error_code"] for each in row["partitions"]]) for row in rows]
    assert codes == [(name, [3, 3] if "." in name else [0, 3]) for name in names]


async def test_of_a_missing_or_hidden_topic_clients_are_told_the_operations_that_kafka_tells(
    front: Broker, cluster: Cluster
) -> None:
    names = [{"name": name} for name in ("orders", "absent.keys", "bad name", "secret.keys")]
    for wanted in (True, False):
        asked = {"topics": names, "include_topic_authorized_operations": wanted}
        for api, version, body in (
            (METADATA, 12, asked),
            (METADATA, 8, asked),
            (DESCRIBE_TOPIC_PARTITIONS, 0, {"topics": names}),
        ):
            found = []
            for server in (cluster.broker, front):
                rows = (await ask_once(server, api, version, body))["topics"]
                found.append({row["name"]: row["topic_authorized_operations"] for row in rows})
            assert found[0] == found[1], (api.name, version)
            always = api is DESCRIBE_TOPIC_PARTITIONS
            assert set(found[1].values()) == {3576 if wanted or always else NOT_REQUESTED}


async def test_of_many_named_topics_the_listed_ones_are_not_asked_about_one_by_one(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = [f"t{number}" for number in range(150)]
    (await cluster.create_topics([NewTopic(name) for name in listed])).all()
    looked_up: list[str] = []
    by_name = NamedTopics.by_name

    async def noting(self: NamedTopics, caller: Any, names: Any, **more: Any) -> Any:
        if str(caller.namespace) == NAMESPACE:  # the cluster is a server of ours, too
            looked_up.extend(names)
        return await by_name(self, caller, names, **more)

    names = ["secret.keys", *listed, "absent.keys"]
    rows: list[Any] = [{"name": name, "partitions": [{"partition_index": 0}]} for name in names]
    others = ["secret.keys", "absent.keys"]
    async with gateway(tmp_path, cluster.address, {"secrets": Secrets()}) as front:
        monkeypatch.setattr(NamedTopics, "by_name", noting)
        for api, version, asked, known in (
            (METADATA, 12, [{"name": name} for name in names], others),
            (LIST_OFFSETS, 8, rows, others),
            # The few are asked about once, though the answer has them again.
            (LIST_OFFSETS, 8, [rows[0], rows[1]], ["secret.keys", "t0"]),
        ):
            looked_up.clear()
            topics = (await ask_once(front, api, version, {"topics": asked}))["topics"]
            codes = {
                row["name"]: row["error_code"] or (row["partitions"] or [row])[0]["error_code"]
                for row in (topics if api is METADATA else [{"error_code": 0, **row} for row in topics])
            }
            assert codes == {row["name"]: 3 if row["name"] in others else 0 for row in asked}
            assert looked_up == known, api.name


class _Broken(Secrets):
    """A mask that fails."""

    @hookimpl
    def broker_core_visible(self, request: ListingRequest, topics: pa.LargeStringArray) -> Any:
        raise RuntimeError("no directory of departments")


async def test_what_no_mask_can_tell_is_no_answer_that_is_too_short(tmp_path: Path, cluster: Cluster) -> None:
    topics = [{"name": "orders", "partition_indexes": [0]}]
    orders = (await cluster.describe_topics(["orders"]))["orders"]
    ids = [{"topic_id": orders.topic_id, "partition_indexes": [0]}]
    groups = [{"group_id": "g", "member_epoch": -1}]
    async with gateway(tmp_path, cluster.address, {"broken": _Broken()}) as front:
        for api, version, body in (
            (OFFSET_FETCH, 7, {"group_id": "g", "topics": topics}),
            (OFFSET_FETCH, 10, {"groups": [{**groups[0], "topics": ids}]}),
            (LIST_OFFSETS, 7, {"topics": [{"name": "orders", "partitions": [{"partition_index": 0}]}]}),
        ):
            async with raw_client(front.kafka_address or ("", 0)) as client:
                client.send(api, version, body)
                assert await client.message() == b""
        rows = (await ask_once(front, METADATA, 12, {"topics": [{"name": "orders"}]}))["topics"]
        assert [row["error_code"] for row in rows] == [-1]


def test_the_topics_of_a_member_are_read_from_its_bytes() -> None:
    subscription = struct.pack(">hih6sh5s", 3, 2, 6, b"orders", 5, b"audit") + b"user data"
    assert topics_of_member(subscription, with_partitions=False) == ["orders", "audit"]
    assignment = struct.pack(">hih6siiih5si", 3, 2, 6, b"orders", 2, 0, 1, 5, b"audit", 0)
    assert topics_of_member(assignment, with_partitions=True) == ["orders", "audit"]
    assert topics_of_member(b"", with_partitions=True) == []
    for broken in (
        b"\0",
        assignment[:9],
        struct.pack(">hi", 3, 2**31 - 1),
        b"\0\3\0\0\0\1\0\1a\x7f\xff\xff\xff",
    ):
        assert topics_of_member(broken, with_partitions=True) is None
