from __future__ import annotations

import asyncio
import random
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import kafka.admin
import pytest

from broker_core import TopicListingResult
from broker_core.catalog import SqliteCatalog, parse_topic_id, topic_id_text
from broker_core.servers.kafka.apis.metadata import METADATA_ROW
from broker_core.servers.kafka.large_requests import SLICE
from broker_core.wire.kafka import METADATA, NOT_REQUESTED, ZERO_ID, ErrorCode, Fields
from tests.support.api_serving import NAMESPACE, api_served
from tests.support.kafka_calls import call_of, services_of
from tests.support.kafka_page_rows import ClusterRows
from tests.support.kafka_page_server import page_server
from tests.support.kafka_serving import kafka_broker, raw_client
from tests.support.kafka_topics import create, kafka_topics
from tests.support.plugins import PluginOf


async def test_all_topics_in_every_version(catalog: SqliteCatalog) -> None:
    ids = {name: create(catalog, name, count).topic_id for name, count in (("orders", 3), ("plain", 0))}
    async with kafka_broker(catalog.path.parent) as broker:
        assert broker.kafka_address is not None
        host, port = broker.kafka_address
        async with raw_client(broker.kafka_address) as client:
            for version in range(14):
                asked: dict[str, Any] = {
                    "topics": [] if version == 0 else None,
                    "include_topic_authorized_operations": True,
                }
                answer = await client.ask(METADATA, version, asked)
                assert answer["brokers"] == [{"node_id": 1, "host": host, "port": port, "rack": None}]
                assert answer["controller_id"] == (1 if version >= 1 else -1)
                rows = {row["name"]: row for row in answer["topics"]}
                assert {name: len(row["partitions"]) for name, row in rows.items()} == {
                    "orders": 3,
                    "plain": 1,
                }
                for name, row in rows.items():
                    assert row["topic_id"] == (ids[name] if version >= 10 else ZERO_ID)
                    assert row["topic_authorized_operations"] == (3576 if version >= 8 else NOT_REQUESTED)


async def test_some_topics_by_name_and_none_created(catalog: SqliteCatalog) -> None:
    made = create(catalog, "orders", 2)
    async with kafka_broker(catalog.path.parent) as broker:
        assert broker.kafka_address is not None
        async with raw_client(broker.kafka_address) as client:
            for version in range(14):
                asked = {
                    "topics": [{"name": "orders"}, {"name": "none"}, {"name": "a b"}, {"name": "orders"}],
                    "allow_auto_topic_creation": True,
                }
                rows = (await client.ask(METADATA, version, asked))["topics"]
                assert [(row["name"], row["error_code"]) for row in rows] == [
                    ("orders", 0),
                    ("none", 3),
                    ("a b", 17),
                ]
                assert [each["partition_index"] for each in rows[0]["partitions"]] == [0, 1]
                assert rows[0]["topic_id"] == (made.topic_id if version >= 10 else ZERO_ID)
            nothing = await client.ask(METADATA, 13, {"topics": []})
            assert nothing["topics"] == []


async def test_topics_by_id_from_version_12_on(catalog: SqliteCatalog) -> None:
    made, unknown = create(catalog, "orders", 2), uuid.uuid4()
    async with kafka_broker(catalog.path.parent) as broker:
        assert broker.kafka_address is not None
        async with raw_client(broker.kafka_address) as client:
            # Of a request with an id, the names are not looked at.
            asked: dict[str, Any] = {
                "topics": [
                    {"topic_id": made.topic_id, "name": None},
                    {"topic_id": unknown, "name": None},
                    {"name": "orders"},
                ]
            }
            for version in (12, 13):
                rows = (await client.ask(METADATA, version, asked))["topics"]
                assert [(row["name"], row["topic_id"], row["error_code"]) for row in rows] == [
                    ("orders", made.topic_id, 0),
                    (None, unknown, 100),
                ]
            for version in (10, 11):
                answer = await client.ask(METADATA, version, asked)
                assert {row["error_code"] for row in answer["topics"]} == {ErrorCode.INVALID_REQUEST}
                assert answer["brokers"] == []


async def test_the_operations_of_the_cluster_are_told_from_8_to_10(catalog: SqliteCatalog) -> None:
    async with kafka_broker(catalog.path.parent) as broker:
        assert broker.kafka_address is not None
        async with raw_client(broker.kafka_address) as client:
            for version in (7, 8, 10, 11):
                asked = {"topics": [{"name": "a"}], "include_cluster_authorized_operations": True}
                told = (await client.ask(METADATA, version, asked))["cluster_authorized_operations"]
                assert told == (8096 if version in {8, 10} else NOT_REQUESTED)


@pytest.mark.parametrize("version", [0, 1, 13])
async def test_a_listing_that_fails_closes_the_connection(tmp_path: Path, version: int) -> None:
    def fails() -> TopicListingResult:
        raise RuntimeError("no")

    plugins = {"p": PluginOf(list_topics=fails)}
    async with kafka_broker(tmp_path, plugins=plugins) as broker:
        assert broker.kafka_address is not None
        async with raw_client(broker.kafka_address) as client:
            rows = (await client.ask(METADATA, version, {"topics": [{"name": "a"}]}))["topics"]
            assert [row["error_code"] for row in rows] == [-1]
            client.send(METADATA, version, {"topics": [] if version == 0 else None})
            assert await client.message() == b""


async def test_what_kafka_python_sees(catalog: SqliteCatalog) -> None:
    made = create(catalog, "orders", 2)
    create(catalog, "plain")

    def see(host: str, port: int) -> list[Any]:
        admin = kafka.admin.KafkaAdminClient(bootstrap_servers=f"{host}:{port}")
        try:
            create(catalog, "new")
            return [
                admin.list_topics(),
                admin.describe_topics(["orders"]),
                admin.describe_topics([made.topic_id]),
            ]
        finally:
            admin.close()

    async with kafka_broker(catalog.path.parent) as broker:
        assert broker.kafka_address is not None
        listed, by_name, by_id = await asyncio.to_thread(see, *broker.kafka_address)
    assert sorted(listed) == ["new", "orders", "plain"]
    assert by_name == by_id
    assert (by_name[0]["topic_id"], len(by_name[0]["partitions"])) == (str(made.topic_id), 2)


async def test_a_name_that_is_made_anew_over_http_has_its_new_id_at_once(tmp_path: Path) -> None:
    path = f"{NAMESPACE}/topics/bills"
    async with api_served(tmp_path, kafka={"listen": "127.0.0.1:0"}) as served:
        assert served.broker.kafka_address is not None
        async with raw_client(served.broker.kafka_address) as client:

            async def ids() -> list[str]:
                """Of all topics, of the one by its name."""
                found = []
                for topics in (None, [{"name": "bills"}]):
                    rows = (await client.ask(METADATA, 13, {"topics": topics}))["topics"]
                    found += [topic_id_text(row["topic_id"]) for row in rows if row["name"] == "bills"]
                return found

            seen = [(await served.ask(path)).json["topic_id"]]
            assert await ids() == seen * 2
            for partitions in (0, 0, 2):
                former = seen[-1]
                assert (await served.ask(f"/v1/topics/by-id/{former}", "DELETE")).status == 204
                made = await served.ask(path, "PUT", json={"partitions": partitions})
                assert await ids() == [made.json["topic_id"]] * 2
                gone = {"topics": [{"name": None, "topic_id": parse_topic_id(former)}]}
                (row,) = (await client.ask(METADATA, 13, gone))["topics"]
                assert row["error_code"] == ErrorCode.UNKNOWN_TOPIC_ID
                seen.append(made.json["topic_id"])
            assert len(set(seen)) == 4


async def test_many_names_leave_turns_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core.concurrency.loop_turns.TURN_SECONDS", 0.0)  # each is over at once
    monkeypatch.setattr("broker_core.servers.kafka.topics.listed_topics._MANY", 10**9)
    names = [{"name": f"no name {number}", "topic_id": ZERO_ID} for number in range(10 * SLICE)]
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    beside = asyncio.create_task(others())
    rows = (await METADATA_ROW.answered(call_of(METADATA, 9, {"topics": names})))["topics"]
    beside.cancel()
    assert {row["error_code"] for row in rows} == {17}
    assert turns >= 10  # for the names, and for their rows


async def test_a_few_topics_are_answered_at_once_as_they_are_later(
    catalog: SqliteCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [create(catalog, name, count).topic_id for name, count in (("a", 3), ("b", 97), ("wide", 101))]
    asked: list[tuple[bool, list[dict[str, Any]]]] = [
        (True, [{"name": "b"}, {"name": "none"}, {"name": "a b"}, {"name": "a"}, {"name": "b"}]),
        (True, [{"name": None, "topic_id": ids[1]}, {"name": "x", "topic_id": uuid.uuid4()}, {"name": "a"}]),
        (True, [{"name": None}]),
        (False, [{"name": "wide"}]),
        (False, [{"name": f"t{number}"} for number in range(9)]),
    ]
    async with kafka_topics(catalog) as m:
        services = services_of(named=m.named)
        for version in range(14):
            for at_once, rows in asked:
                body = {
                    "topics": [{"topic_id": ZERO_ID, **row} for row in rows],
                    "include_topic_authorized_operations": version % 2 == 0,
                }
                call = call_of(METADATA, version, body, services=services)
                await asyncio.sleep(0)  # a turn of the loop that has time
                now, large = METADATA_ROW.answer(call), METADATA_ROW.answer(replace(call, size=3000))
                assert isinstance(now, dict) == (at_once or rows[0]["name"] is None)
                assert not isinstance(large, dict)  # a thread reads it
                with monkeypatch.context() as patched:
                    patched.setattr(m.named, "now", lambda *_: None)
                    later = await large
                    assert later == (now if isinstance(now, dict) else await now)


@pytest.mark.parametrize("version", [0, 1, 7, 9, 12, 13])
def test_many_names_are_answered_as_each_of_them(
    tmp_path: Path, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listed topics are encoded by columns; the others, and all of a page, one by one."""
    with page_server(tmp_path, ClusterRows(), 2000) as server:
        server.acls.enabled = version % 2 == 1
        for number in range(60):
            server.create(f"t{number:02}", 1 + number % 3)
            server.create(f"x{number:02}", 1)  # which nobody may describe
        server.create("__consumer_offsets", 5)
        names = [f"{first}{number:02}" for first in "txu" for number in range(0, 60, 2)]
        names += ["a b", "", "\uffee", "\U00010000", "a\0b", "__consumer_offsets", "zz", "t01-partition-0"]
        names += names[:20]
        random.Random(version).shuffle(names)
        body: Fields = {"topics": [{"name": name} for name in names]}
        if version >= 8:
            body["include_topic_authorized_operations"] = True
        quick = server.ask(METADATA, version, body)
        monkeypatch.setattr("broker_core.servers.kafka.topics.listed_topics._MANY", 10**9)
        assert server.ask(METADATA, version, body) == quick
        assert sum(not row["error_code"] for row in quick["topics"]) == (31 if server.acls.enabled else 61)
