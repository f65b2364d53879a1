"""Descriptions of topics, from their rows."""

from __future__ import annotations

import random
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from broker_core import DescribeRequest
from broker_core.catalog import topic_id_text
from broker_core.errors import ListingFailed
from broker_core.names import NamespaceName
from broker_core_postgres.listing.describe_topics import PostgresDescriber
from broker_core_postgres.service import PostgresService
from tests.postgres.listing.lister_setup import fill
from tests.postgres.test_service import VIEW, started
from tests.support.narrowed import of_type, present
from tests.support.postgres_server import Database

NS = NamespaceName.parse("acme/orders")
ALL = frozenset({"partitions", "topic_id", "properties", "configs", "created"})


@asynccontextmanager
async def describer(database: Database, **table: Any) -> AsyncIterator[PostgresDescriber]:
    async with started(dsn=database.dsn, **table) as service:
        yield of_type(service, PostgresService).describer


def asked(*local: str, wants: frozenset[str] = ALL, **fields: Any) -> DescribeRequest:
    names = [name if "://" in name else f"persistent://acme/orders/{name}" for name in local]
    return DescribeRequest(NS, names=names, wants=wants, **fields)


async def test_names_of_every_kind(database: Database, connection: Any) -> None:
    await fill(
        database,
        "acme/orders",
        [
            ("persistent", "plain", {"k": "v", "é": "😀"}),
            *(("persistent", f"parted-partition-{n}", {"n": "all"}) for n in (0, 1, 10)),
            ("persistent", "both", {"own": "1"}),
            ("persistent", "both-partition-1", {"own": "2"}),
            ("persistent", "a-partition-3-partition-0", {}),
            ("non-persistent", "plain", {}),
            ("persistent", "not-asked", {}),
        ],
    )
    topics = ["plain", "parted", "both", "a-partition-3", "non-persistent://acme/orders/plain"]
    missing = ["never", "parted-partition-0", "persistent://acme/other/plain", "x\0y", "no-scheme"]
    async with describer(database) as describing:
        details = present(await describing.describe(asked(*topics, *missing)))
        rows = {row["topic"]: row for row in details.to_pylist()}
        ids = dict(
            await connection.fetch(
                "SELECT DISTINCT domain || '://acme/orders/' || matched, topic_id FROM broker_core.topics"
            )
        )
        assert {name: row["partitions"] for name, row in rows.items()} == {
            "persistent://acme/orders/plain": 0,
            "persistent://acme/orders/parted": 11,
            "persistent://acme/orders/both": 2,
            "persistent://acme/orders/a-partition-3": 1,
            "non-persistent://acme/orders/plain": 0,
        }
        assert all(row["topic_id"] == ids[name].bytes for name, row in rows.items())
        assert {
            name.rpartition("/")[2]: row["properties"] for name, row in rows.items() if name[0] == "p"
        } == {
            "plain": {"k": "v", "é": "😀"},
            "parted": {"n": "all"},
            "both": {"own": "1"},
            "a-partition-3": {},
        }
        assert set(details.columns) == ALL - {"created"}, "it is not known"
        assert {row["configs"] for row in rows.values()} == {None}, "of none of them are they known"
        few = present(await describing.describe(asked("plain", wants=frozenset({"partitions"}))))
        assert few.columns == ("partitions",)
        by_id = present(
            await describing.describe(
                DescribeRequest(NS, ids=[row["topic_id"] for row in rows.values()], wants=ALL)
            )
        )
        assert sorted(map(str, by_id.to_pylist())) == sorted(map(str, rows.values()))


async def test_configs_are_those_of_any_partition(database: Database, connection: Any) -> None:
    names: list[tuple[str, str, dict[str, str]]] = [
        ("persistent", name, {}) for name in ("plain", "x-partition-0", "x-partition-1", "none")
    ]
    await fill(database, "acme/orders", names)
    await connection.execute(
        'UPDATE broker_core.topics SET configs = \'{"retention.ms": "1"}\''
        " WHERE local_name IN ('plain', 'x-partition-1')"
    )
    async with describer(database) as describing:
        details = await describing.describe(asked("plain", "x", "none", wants=frozenset({"configs"})))
    assert {row["topic"].rpartition("/")[2]: row["configs"] for row in present(details).to_pylist()} == {
        "plain": {"retention.ms": "1"},
        "x": {"retention.ms": "1"},
        "none": None,
    }


async def test_what_was_never_loaded_is_left_to_others(database: Database, connection: Any) -> None:
    async with describer(database) as describing:
        assert await describing.describe(asked("plain")) is None
        await connection.execute("SELECT broker_core.declare_namespace('acme/orders')")
        empty = present(await describing.describe(asked("plain")))
        assert len(empty) == 0
        await connection.execute("SELECT broker_core.forget_namespace('acme/orders')")
        assert await describing.describe(asked("plain")) is None


@pytest.mark.parametrize("wants", [ALL, frozenset({"partitions"})], ids=["all", "partitions"])
async def test_many_in_parts(database: Database, connection: Any, wants: frozenset[str]) -> None:
    await connection.execute(
        "INSERT INTO broker_core.topics (namespace, local_name, properties) SELECT 'acme/orders', "
        "'t' || n || CASE WHEN n % 7 > 0 THEN '-partition-' || n % 7 - 1 ELSE '' END, "
        "jsonb_build_object('n', n::text) FROM generate_series(0, 4999) n"
    )
    numbers = random.Random(7).sample(range(6000), 3000)
    async with describer(database) as describing:
        details = await describing.describe(asked(*(f"t{n}" for n in numbers), wants=wants))
    found = {int(row["topic"].rpartition("/t")[2]): row for row in present(details).to_pylist()}
    assert set(found) == {n for n in numbers if n < 5000}
    for number, row in found.items():
        assert row["partitions"] == number % 7
        assert row.get("properties", {"n": str(number)}) == {"n": str(number)}


async def test_a_relation_of_the_operators_own(empty_database: Database) -> None:
    empty_database.sql(VIEW)
    async with describer(empty_database, relation="own.Topics of ours", property_keys=["k"]) as describing:
        details = present(await describing.describe(asked("a", "b", "z")))
        rows = {row["topic"].rpartition("/")[2]: row for row in details.to_pylist()}
        assert {name: row["partitions"] for name, row in rows.items()} == {"a": 0, "b": 2}
        assert rows["b"]["properties"] == {"k": "v"}
        ids = [row["topic_id"] for row in rows.values()]
        assert len(set(ids)) == 2
        assert {uuid.UUID(bytes=each).version for each in ids} == {8}
        by_id = present(await describing.describe(DescribeRequest(NS, ids=[*ids, b"0" * 16], wants=ALL)))
        assert sorted(map(str, by_id.to_pylist())) == sorted(map(str, rows.values()))
        async with describer(empty_database, relation="own.Topics of ours") as another:
            same = present(await another.describe(asked("a", "b")))
            assert {row["topic_id"] for row in same.to_pylist()} == set(ids)
        other = NamespaceName.parse("acme/other")
        assert await describing.describe(DescribeRequest(other, names=["x"], wants=ALL)) is None


async def test_nobody_describes_by_properties(database: Database) -> None:
    await fill(database, "acme/orders", [("persistent", "a", {"k": "v"})])
    async with describer(database, only_with_properties=True, property_keys=["k"]) as describing:
        assert await describing.describe(asked("a")) is None


async def test_an_index_that_no_client_can_count(database: Database) -> None:
    await fill(database, "acme/orders", [("persistent", "x-partition-2147483647", {})])
    async with describer(database) as describing:
        with pytest.raises(ListingFailed, match="index 2147483647") as failed:
            await describing.describe(asked("x"))
        assert failed.value.reason == "bad_topics"


async def test_a_failure_is_an_error(database: Database) -> None:
    await fill(database, "acme/orders", [("persistent", "a", {})])
    async with describer(database) as describing:
        database.sql("ALTER TABLE broker_core.topics RENAME COLUMN matched TO lost")
        with pytest.raises(ListingFailed) as failed:
            await describing.describe(asked("a"))
        assert failed.value.reason == "schema"


async def test_ids_of_the_operators_own(empty_database: Database) -> None:
    own = uuid.UUID(int=7 << 64)
    empty_database.sql(
        'CREATE TABLE mine (namespace text COLLATE "C", domain text COLLATE "C", local_name text COLLATE "C",'
        ' matched text COLLATE "C", topic_id uuid);'
        f"INSERT INTO mine VALUES ('acme/orders', 'persistent', 'a-partition-0', 'a', '{own}'),"
        f" ('acme/orders', 'persistent', 'a-partition-1', 'a', '{own}'),"
        " ('acme/orders', 'persistent', 'none', 'none', NULL)"
    )
    async with describer(empty_database, relation="mine") as describing:
        details = present(await describing.describe(asked("a", "none", wants=frozenset({"topic_id"}))))
        found = {row["topic"].rpartition("/")[2]: row["topic_id"] for row in details.to_pylist()}
        assert found["a"] == own.bytes
        assert not topic_id_text(uuid.UUID(bytes=found["none"])).startswith("-")
        by_id = present(
            await describing.describe(DescribeRequest(NS, ids=[own.bytes], wants=frozenset({"partitions"})))
        )
        assert [row["partitions"] for row in by_id.to_pylist()] == [2]
