from __future__ import annotations

import asyncio
import io
import sqlite3
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from broker_core.access.asker import Access, Refused
from broker_core.catalog import SqliteCatalog, import_topics
from broker_core.names import TopicName
from broker_core.servers.kafka.apis.create_topics import CREATE_TOPICS_ROW
from broker_core.settings import AuthenticationSettings, AuthorizationRule, AuthorizationSettings
from broker_core.wire.kafka import CREATE_TOPICS, METADATA, ZERO_ID, Fields
from tests.support.kafka_acls import acl, put_acls
from tests.support.kafka_calls import call_of
from tests.support.kafka_serving import ask_once, kafka_broker, raw_client
from tests.support.kafka_topics import NAMESPACE, create
from tests.support.plugins import PluginOf
from tests.support.served import Served


def _request(*names: str, **fields: Any) -> Fields:
    return {"topics": [_topic(name) for name in names], "timeout_ms": 10_000, **fields}


def _topic(name: str, partitions: int = 1, **configs: str) -> Fields:
    given = [{"name": key.replace("_", "."), "value": value} for key, value in configs.items()]
    return {"name": name, "num_partitions": partitions, "replication_factor": 1, "configs": given}


async def test_a_topic_is_listed_with_its_configs_by_the_next_request(catalog: SqliteCatalog) -> None:
    async with kafka_broker(catalog.path.parent) as broker:
        request = _request() | {"topics": [_topic("a", 3, retention_ms=" 07")]}
        (row,) = (await ask_once(broker, CREATE_TOPICS, 7, request))["topics"]
        listed = (await ask_once(broker, METADATA, 13, {"topics": None}))["topics"]
    assert [(each["name"], each["topic_id"], len(each["partitions"])) for each in listed] == [
        ("a", row["topic_id"], 3)
    ]
    record = catalog.topic(TopicName("persistent", NAMESPACE, "a"))
    assert record is not None
    assert (record.topic_id, record.partitions, record.configs, record.replication) == (
        row["topic_id"],
        3,
        {"retention.ms": " 07"},
        1,
    )


async def test_a_name_of_one_partition_is_that_of_a_partitioned_topic(catalog: SqliteCatalog) -> None:
    async with kafka_broker(catalog.path.parent) as broker:
        await ask_once(broker, CREATE_TOPICS, 2, _request("a"))
    record = catalog.topic(TopicName("persistent", NAMESPACE, "a"))
    assert record is not None
    assert list(record.names) == ["persistent://public/default/a-partition-0"]


async def test_hundreds_beside_many_write_a_few_pages_of_the_index_of_ids(catalog: SqliteCatalog) -> None:
    others = "\n".join(f"persistent://{NAMESPACE}/n{number:05}" for number in range(20_000))
    import_topics(catalog, NAMESPACE, io.BytesIO(others.encode()))
    with closing(sqlite3.connect(catalog.path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        async with kafka_broker(catalog.path.parent) as broker:
            request = _request(*(f"m{number:03}" for number in range(300)))
            rows = (await ask_once(broker, CREATE_TOPICS, 7, request))["topics"]
            (_, written, _) = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    assert {row["error_code"] for row in rows} == {0}
    assert 0 < written < 60, "nearly each page of the index would have one of 300 ids"


async def test_trying_it_writes_nothing(catalog: SqliteCatalog) -> None:
    create(catalog, "there", 1)
    before = catalog.version(NAMESPACE)
    async with kafka_broker(catalog.path.parent) as broker:
        rows = {
            row["name"]: row
            for row in (await ask_once(broker, CREATE_TOPICS, 7, _request("a", "there", validate_only=True)))[
                "topics"
            ]
        }
    assert rows["a"]["error_code"] == 0
    assert len(rows["a"]["configs"]) == 33
    assert rows["a"]["topic_id"] != ZERO_ID
    assert (rows["there"]["error_code"], rows["there"]["configs"]) == (36, [])
    assert catalog.version(NAMESPACE) == before


async def test_a_hidden_topic_is_there_already(catalog: SqliteCatalog) -> None:
    create(catalog, "hidden.x", 1)

    def visible(topics: pa.LargeStringArray) -> pa.BooleanArray:
        return pc.not_equal(topics, topics)

    async with kafka_broker(catalog.path.parent, plugins={"mask": PluginOf(visible=visible)}) as broker:
        rows = (await ask_once(broker, CREATE_TOPICS, 7, _request("hidden.x", "hidden_x")))["topics"]
    told = {row["name"]: (row["error_code"], row["error_message"]) for row in rows}
    assert told == {
        "hidden.x": (36, "Topic 'hidden.x' already exists."),
        "hidden_x": (17, "Topic 'hidden_x' collides with an existing topic"),
    }


async def test_a_collision_with_a_topic_that_is_shown_names_it(catalog: SqliteCatalog) -> None:
    create(catalog, "shown.x", 1)
    async with kafka_broker(catalog.path.parent) as broker:
        (row,) = (await ask_once(broker, CREATE_TOPICS, 7, _request("shown_x")))["topics"]
    assert row["error_message"] == "Topic 'shown_x' collides with existing topic: shown.x"


@pytest.mark.parametrize("validate_only", [False, True])
async def test_names_collide_with_topics_that_are_there_and_not_within_a_request(
    catalog: SqliteCatalog, validate_only: bool
) -> None:
    create(catalog, "a.b", 1)
    request = _request("a_b", "c.d", "c_d", validate_only=validate_only)
    async with kafka_broker(catalog.path.parent) as broker:
        rows = (await ask_once(broker, CREATE_TOPICS, 7, request))["topics"]
    told = {row["name"]: (row["error_code"], row["error_message"]) for row in rows}
    assert told == {
        "a_b": (17, "Topic 'a_b' collides with existing topic: a.b"),
        "c.d": (0, None),
        "c_d": (0, None),
    }


async def test_of_names_that_collide_one_is_made_by_two_servers_at_once(tmp_path: Path) -> None:
    tables = {"catalog": {"path": str(tmp_path / "catalog.sqlite")}, "kafka": {"listen": "127.0.0.1:0"}}
    async with AsyncExitStack() as stack:
        servers = [Served(tmp_path / name, tables) for name in ("first", "second")]
        for served in servers:
            stack.callback(served.stop)
        await asyncio.gather(*(asyncio.to_thread(served.start) for served in servers))
        clients = []
        for served in servers:
            host, _, port = served.ready["kafka"].rpartition(":")
            clients.append(await stack.enter_async_context(raw_client((host, int(port)))))
        for count in range(20):
            names = (f"x.{count}", f"x_{count}")
            answers = await asyncio.gather(
                *(
                    client.ask(CREATE_TOPICS, 7, _request(name))
                    for client, name in zip(clients, names, strict=True)
                )
            )
            rows = {row["name"]: row for answer in answers for row in answer["topics"]}
            made, refused = sorted(rows, key=lambda name: rows[name]["error_code"])
            assert rows[made]["error_code"] == 0
            assert (rows[refused]["error_code"], rows[refused]["error_message"]) == (
                17,
                f"Topic '{refused}' collides with existing topic: {made}",
            )


async def test_topics_that_are_there_do_not_count_for_what_a_request_may_make(catalog: SqliteCatalog) -> None:
    create(catalog, "there", 1)
    new = [{"name": "new", "num_partitions": 6000, "replication_factor": 1, "configs": []}]
    there = [{"name": "there", "num_partitions": 4000, "replication_factor": 1, "configs": []}]
    async with kafka_broker(catalog.path.parent) as broker:
        rows = (await ask_once(broker, CREATE_TOPICS, 7, _request() | {"topics": new + there}))["topics"]
    assert {row["name"]: row["error_code"] for row in rows} == {"new": 0, "there": 36}


async def test_a_name_that_kafka_cannot_have_is_refused_though_it_is_there(catalog: SqliteCatalog) -> None:
    for name in ("z=1", "__change_events"):
        create(catalog, name)
    async with kafka_broker(catalog.path.parent) as broker:
        for dry_run in (False, True):
            request = _request("z=1", "__change_events", validate_only=dry_run)
            rows = (await ask_once(broker, CREATE_TOPICS, 7, request))["topics"]
            assert {row["name"]: row["error_code"] for row in rows} == {"z=1": 17, "__change_events": 17}


async def test_rules_gates_and_acls_decide_about_each(catalog: SqliteCatalog) -> None:
    def gate(access: Access) -> Refused | None:
        name = None if access.topic is None else access.topic.local
        return Refused("not this one") if (access.action, name) == ("admin", "b") else None

    put_acls(catalog, *(acl(name, "CREATE", "User:*") for name in ("a", "b")))
    async with kafka_broker(catalog.path.parent, plugins={"gate": PluginOf(authorize=gate)}) as broker:
        rows = (await ask_once(broker, CREATE_TOPICS, 7, _request("a", "b", "c")))["topics"]
    assert {row["name"]: (row["error_code"], row["error_message"]) for row in rows} == {
        "a": (0, None),
        "b": (29, "not this one"),
        "c": (29, "Authorization failed."),
    }
    made = next(row for row in rows if row["name"] == "a")
    assert (made["topic_config_error_code"], made["num_partitions"], made["configs"]) == (29, -1, [])


@pytest.mark.parametrize("validate_only", [False, True])
async def test_configs_are_for_those_that_may_list_the_topic(
    catalog: SqliteCatalog, validate_only: bool
) -> None:
    rule: dict[str, Any] = {"roles": ("anyone",), "namespaces": (str(NAMESPACE),)}
    rules = (
        AuthorizationRule(**rule, actions=("list", "admin")),
        AuthorizationRule(**rule, actions=("list",), topics=("hid-*",), effect="deny"),
    )
    tables = {
        "authentication": AuthenticationSettings(anonymous_role="anyone"),
        "authorization": AuthorizationSettings(mode="rules", rules=rules),
    }
    async with kafka_broker(catalog.path.parent, tables=tables) as broker:
        request = _request("hid-1", "shown", validate_only=validate_only)
        rows = {row["name"]: row for row in (await ask_once(broker, CREATE_TOPICS, 7, request))["topics"]}
    assert [row["error_code"] for row in rows.values()] == [0, 0]
    hidden, shown = rows["hid-1"], rows["shown"]
    assert (hidden["topic_config_error_code"], hidden["num_partitions"], hidden["configs"]) == (29, -1, [])
    assert (shown["topic_config_error_code"], shown["num_partitions"]) == (0, 1)
    assert shown["configs"]


@pytest.mark.parametrize("validate_only", [False, True])
async def test_nothing_is_created_before_a_cluster(validate_only: bool) -> None:
    call = call_of(CREATE_TOPICS, 7, _request("a", "a", validate_only=validate_only))
    rows = (await CREATE_TOPICS_ROW.answered(call))["topics"]
    assert (rows.count, rows.error) == (2, 44)
    assert b"".join(rows.pieces).count(b"changes none") == 2


@pytest.mark.parametrize("name", ["", "a/b", "\0", "persistent://x/y/z"])
async def test_rules_are_not_asked_about_what_is_no_name(catalog: SqliteCatalog, name: str) -> None:
    def gate(access: Access) -> Refused | None:
        return Refused("not here") if access.topic is not None and access.topic.local == "denied" else None

    async with kafka_broker(catalog.path.parent, plugins={"gate": PluginOf(authorize=gate)}) as broker:
        rows = (await ask_once(broker, CREATE_TOPICS, 7, _request(name, "denied")))["topics"]
    assert {row["name"]: row["error_code"] for row in rows} == {name: 17, "denied": 29}
