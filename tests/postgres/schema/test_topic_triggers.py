"""The triggers of ``broker_core.topics``: versions, log and ids are right after any statement of any user."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any

import asyncpg
import pytest

from tests.support.eventually import eventually
from tests.support.postgres_server import Database

INSERT = "INSERT INTO broker_core.topics (namespace, local_name) VALUES "


async def versions(connection: Any) -> dict[str, int]:
    return dict(await connection.fetch("SELECT namespace, version FROM broker_core.namespaces"))


async def rows(connection: Any) -> dict[str, tuple[int, int]]:
    found = await connection.fetch(
        "SELECT local_name, created_version, changed_version FROM broker_core.topics"
    )
    return {name: (created, changed) for name, created, changed in found}


async def log(connection: Any) -> list[tuple[Any, ...]]:
    found = await connection.fetch(
        "SELECT version, operation, local_name, properties_before::text, properties_after::text"
        " FROM broker_core.changes ORDER BY namespace, version, seq"
    )
    return [tuple(row) for row in found]


async def ids(connection: Any) -> dict[str, str]:
    return {
        name: str(topic_id)
        for name, topic_id in await connection.fetch("SELECT local_name, topic_id FROM broker_core.topics")
    }


async def test_a_transaction_is_one_version_of_each_namespace_it_changes(connection: Any) -> None:
    await connection.execute(INSERT + "('a/b', 'x'), ('a/b', 'y'), ('a/c', 'z')")
    assert await versions(connection) == {"a/b": 1, "a/c": 1}
    async with connection.transaction():
        await connection.execute(INSERT + "('a/b', 'w')")
        await connection.execute(
            "UPDATE broker_core.topics SET properties = '{\"k\": \"v\"}' WHERE local_name = 'x'"
        )
        await connection.execute("DELETE FROM broker_core.topics WHERE local_name = 'y'")
    assert await versions(connection) == {"a/b": 2, "a/c": 1}
    assert await rows(connection) == {"w": (2, 2), "x": (1, 2), "z": (1, 1)}
    assert (await log(connection))[2:5] == [
        (2, "create", "w", None, "{}"),
        (2, "update", "x", "{}", '{"k": "v"}'),
        (2, "delete", "y", "{}", None),
    ]
    tombstones = "SELECT local_name, created_version, deleted_version FROM broker_core.tombstones"
    assert [tuple(row) for row in await connection.fetch(tombstones)] == [("y", 1, 2)]


async def test_what_is_rolled_back_is_no_version(connection: Any) -> None:
    await connection.execute(INSERT + "('a/b', 'x')")
    with pytest.raises(asyncpg.UniqueViolationError):
        await connection.execute(INSERT + "('a/b', 'y'), ('a/b', 'x')")
    async with connection.transaction():
        await connection.execute("SAVEPOINT s; " + INSERT + "('a/b', 'lost'); ROLLBACK TO s")
        await connection.execute(INSERT + "('a/b', 'kept')")
    assert await versions(connection) == {"a/b": 2}
    assert await rows(connection) == {"x": (1, 1), "kept": (2, 2)}
    assert len(await log(connection)) == 2


async def test_statements_without_effect_raise_nothing(connection: Any) -> None:
    await connection.execute(INSERT + "('a/b', 'x')")
    await connection.execute("UPDATE broker_core.topics SET properties = '{}', changed_version = 70")
    await connection.execute(
        "UPDATE broker_core.topics SET created_version = 70, topic_id = gen_random_uuid()"
    )
    await connection.execute("DELETE FROM broker_core.topics WHERE local_name = 'none'")
    await connection.execute(
        "INSERT INTO broker_core.topics (namespace, local_name) SELECT 'c/d', 'x' WHERE false"
    )
    await connection.execute(INSERT + "('a/b', 'x') ON CONFLICT DO NOTHING")
    assert await versions(connection) == {"a/b": 1}
    assert await rows(connection) == {"x": (1, 1)}


async def test_versions_that_a_feeder_gives_are_put_right(connection: Any) -> None:
    await connection.execute(INSERT + "('a/b', 'x')")
    await connection.execute(
        "INSERT INTO broker_core.topics (namespace, local_name, created_version, changed_version, topic_id)"
        " VALUES ('a/b', 'liar', 99, -5, gen_random_uuid()), ('a/b', 'half', 99, NULL, NULL)"
    )
    assert await rows(connection) == {"x": (1, 1), "liar": (2, 2), "half": (2, 2)}
    await connection.execute("SELECT set_config('broker_core.proposed_for', 'a/b', false)")
    await connection.execute("SELECT set_config('broker_core.proposed', '77', false)")
    await connection.execute(INSERT + "('a/b', 'forger')")
    await connection.execute(
        "UPDATE broker_core.topics SET properties = '{\"k\": \"v\"}' WHERE local_name = 'x'"
    )
    found = await rows(connection)
    assert (found["forger"], found["x"]) == ((3, 3), (1, 4))
    assert await versions(connection) == {"a/b": 4}


async def test_a_row_that_moves_is_deleted_and_created(connection: Any) -> None:
    await connection.execute(INSERT + "('a/b', 'x')")
    before = await ids(connection)
    await connection.execute("UPDATE broker_core.topics SET namespace = 'c/d'")
    assert await versions(connection) == {"a/b": 2, "c/d": 1}
    assert await rows(connection) == {"x": (1, 1)}
    assert [entry[:3] for entry in await log(connection)] == [
        (1, "create", "x"),
        (2, "delete", "x"),
        (1, "create", "x"),
    ]
    assert await ids(connection) != before
    await connection.execute("UPDATE broker_core.topics SET local_name = 'y'")
    assert await rows(connection) == {"y": (2, 2)}
    assert (await log(connection))[-2:] == [(2, "delete", "x", "{}", None), (2, "create", "y", None, "{}")]


async def test_the_names_of_a_topic_have_one_id_which_never_comes_again(connection: Any) -> None:
    await connection.execute(INSERT + "('a/b', 'p-partition-0'), ('a/b', 'p-partition-1'), ('a/b', 'q')")
    first = await ids(connection)
    assert first["p-partition-0"] == first["p-partition-1"] != first["q"]
    await connection.execute(INSERT + "('a/b', 'p-partition-2'), ('a/b', 'q-partition-0')")
    await connection.execute(
        "INSERT INTO broker_core.topics (namespace, local_name, topic_id) VALUES ('a/b', 'p', gen_random_uuid())"
    )
    grown = await ids(connection)
    assert len({grown[name] for name in grown if name.startswith("p")}) == 1
    assert grown["q-partition-0"] == grown["q"] == first["q"]
    assert grown["p"] == first["p-partition-0"]
    await connection.execute("DELETE FROM broker_core.topics WHERE matched = 'p'")
    await connection.execute(INSERT + "('a/b', 'p-partition-0')")
    assert (await ids(connection))["p-partition-0"] != first["p-partition-0"]
    async with connection.transaction():
        await connection.execute("TRUNCATE broker_core.topics")
        await connection.execute(INSERT + "('a/b', 'q'), ('a/b', 'q-partition-7')")
    again = await ids(connection)
    assert again["q"] == again["q-partition-7"] != first["q"]


async def test_a_given_id_is_kept(connection: Any) -> None:
    given = "11111111-2222-4333-8444-555555555555"
    await connection.execute(
        "INSERT INTO broker_core.topics (namespace, local_name, topic_id)"
        f" VALUES ('a/b', 'x-partition-0', '{given}'), ('a/b', 'x-partition-1', '{given}')"
    )
    await connection.execute(INSERT + "('a/b', 'x-partition-2')")
    assert set((await ids(connection)).values()) == {given}
    await connection.execute("UPDATE broker_core.topics SET topic_id = gen_random_uuid()")
    assert set((await ids(connection)).values()) == {given}


@pytest.mark.parametrize("level", ["repeatable_read", "serializable"])
async def test_truncate_removes_nothing_that_it_cannot_see(database: Database, level: str) -> None:
    old, new = await database.connect(), await database.connect()
    state = "SELECT namespace, version, topics FROM broker_core.namespaces ORDER BY namespace"
    await old.execute("INSERT INTO broker_core.topics (namespace, local_name) VALUES ('a/old', 'x')")
    with pytest.raises(
        asyncpg.ObjectNotInPrerequisiteStateError, match="needs a transaction at READ COMMITTED"
    ):
        async with old.transaction(isolation=level):
            await old.fetch("SELECT FROM broker_core.catalog")
            await new.execute("INSERT INTO broker_core.topics (namespace, local_name) VALUES ('a/new', 'y')")
            await old.execute("TRUNCATE broker_core.topics")
    assert [tuple(row) for row in await old.fetch(state)] == [("a/new", 1, 1), ("a/old", 1, 1)]
    async with old.transaction(isolation="read_committed"):
        await old.fetch("SELECT FROM broker_core.catalog")
        await new.execute("INSERT INTO broker_core.topics (namespace, local_name) VALUES ('a/new', 'z')")
        await old.execute("TRUNCATE broker_core.topics")
    assert [tuple(row) for row in await old.fetch(state)] == [("a/new", 3, 0), ("a/old", 2, 0)]
    await old.close()
    await new.close()


async def test_copy_upsert_and_truncate(connection: Any) -> None:
    await connection.copy_to_table(
        "topics",
        schema_name="broker_core",
        columns=["namespace", "domain", "local_name", "properties"],
        source=io.BytesIO(b'a/b\tpersistent\tx\t{"k": "v"}\na/b\tnon-persistent\tx\t{}\n'),
    )
    await connection.execute(
        INSERT + "('a/b', 'x'), ('a/b', 'y')"
        " ON CONFLICT (namespace, domain, local_name) DO UPDATE SET properties = excluded.properties"
    )
    assert await versions(connection) == {"a/b": 2}
    logged = {entry[:3] for entry in await log(connection)}
    assert logged >= {(2, "update", "x"), (2, "create", "y")}
    assert len(await log(connection)) == 4
    await connection.execute("TRUNCATE broker_core.topics")
    state = await connection.fetchrow("SELECT version, topics FROM broker_core.namespaces")
    assert tuple(state) == (3, 0)
    assert [entry[1] for entry in await log(connection)][-3:] == ["delete"] * 3
    assert await connection.fetchval("SELECT count(*) FROM broker_core.tombstones") == 3


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("local_name", "''"),
        ("local_name", "'a/b'"),
        ("local_name", "'persistent://a/b/c'"),
        ("local_name", "repeat('x', 1300)"),
        ("domain", "'elsewhere'"),
        ("namespace", "'no-tenant'"),
        ("namespace", "'a/b/c'"),
        ("namespace", "'a/b c'"),
        ("namespace", "E'a/b\\n'"),
        ("properties", "'[]'"),
        ("properties", "'\"text\"'"),
        ("properties", "'{\"k\": 1}'"),
        ("properties", '\'{"k": ["v"]}\''),
        ("properties", "'{\"k\": null}'"),
        ("properties", "jsonb_build_object('k', repeat('x', 70000))"),
    ],
)
async def test_what_can_be_no_topic_is_refused(connection: Any, column: str, value: str) -> None:
    given = {
        "namespace": "'a/b'",
        "domain": "'persistent'",
        "local_name": "'x'",
        "properties": "'{}'",
        column: value,
    }
    with pytest.raises(asyncpg.CheckViolationError):
        await connection.execute(
            f"INSERT INTO broker_core.topics ({', '.join(given)}) VALUES ({', '.join(given.values())})"
        )
    assert await versions(connection) == {}


async def test_the_longest_names_fit(connection: Any) -> None:
    for name in ("x" * 1298, "é" * 649):
        await connection.execute(
            "INSERT INTO broker_core.topics (namespace, local_name) VALUES ('a/b', $1)", name
        )
    long = "t/" + "n" * 1000
    await connection.execute(
        "INSERT INTO broker_core.topics (namespace, local_name) VALUES ($1, $2)", long, "x" * 799
    )


async def test_writers_of_a_namespace_come_one_after_the_other(connection: Any, database: Database) -> None:
    async with database.connected() as other:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(INSERT + "('a/b', 'first')")
        await other.execute(INSERT + "('c/d', 'not waiting')")
        second = asyncio.create_task(other.execute(INSERT + "('a/b', 'second')"))
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND pid = $1"
        await eventually(lambda: connection.fetchval(waiting, other.get_server_pid()), 60)
        await transaction.commit()
        await second
        assert await versions(connection) == {"a/b": 2, "c/d": 1}
        assert await rows(connection) == {"first": (1, 1), "second": (2, 2), "not waiting": (1, 1)}


async def test_statements_about_many_namespaces_do_not_block_each_other(database: Database) -> None:
    async def write(number: int) -> None:
        async with database.connected() as connection:
            names = [f"t/n{i}" for i in range(20)]
            for turn in range(5):
                await connection.execute(
                    "INSERT INTO broker_core.topics (namespace, local_name) SELECT n, $2 FROM unnest($1::text[]) n",
                    names if number % 2 else names[::-1],
                    f"{number}-{turn}",
                )

    await asyncio.gather(*(write(number) for number in range(4)))
    async with database.connected() as check:
        assert set((await versions(check)).values()) == {20}
        wrong = (
            "SELECT count(*) FROM (SELECT namespace, created_version FROM broker_core.topics GROUP BY 1, 2) x"
        )
        assert await check.fetchval(wrong) == 20 * 20


async def test_notified_once_for_each_namespace_and_transaction(connection: Any, database: Database) -> None:
    heard: list[Any] = []
    async with database.connected() as listener:
        await listener.add_listener("broker_core_topics", lambda *said: heard.append(json.loads(said[3])))
        async with connection.transaction():
            await connection.execute(INSERT + "('a/b', 'x')")
            await connection.execute(INSERT + "('a/b', 'y'), ('c/d', 'x')")
        await connection.execute("UPDATE broker_core.topics SET properties = '{}'")
        await connection.execute("DELETE FROM broker_core.topics WHERE namespace = 'c/d'")
        await eventually(lambda: len(heard) >= 3, 60)
        assert sorted((each["namespace"], each["version"]) for each in heard) == [
            ("a/b", 1),
            ("c/d", 1),
            ("c/d", 2),
        ]


async def test_declared_and_forgotten_namespaces(connection: Any) -> None:
    assert await connection.fetchval("SELECT broker_core.declare_namespace('a/b')") == 1
    assert await connection.fetchval("SELECT broker_core.declare_namespace('a/b')") == 1
    await connection.execute(INSERT + "('a/b', 'x')")
    assert await versions(connection) == {"a/b": 2}
    assert await connection.fetchval("SELECT broker_core.forget_namespace('a/b')") == 1
    assert await versions(connection) == {}
    assert await connection.fetchval("SELECT broker_core.forget_namespace('a/b')") == 0
    await connection.execute(INSERT + "('a/b', 'x')")
    assert await versions(connection) == {"a/b": 4}
    assert await rows(connection) == {"x": (4, 4)}


async def test_a_load_begins_by_locking_and_knows_its_version(connection: Any) -> None:
    async with connection.transaction():
        assert await connection.fetchval("SELECT broker_core.begin_change('a/b')") == 1
    async with connection.transaction():
        assert await connection.fetchval("SELECT broker_core.begin_change('a/b')") == 2
        await connection.execute(
            "INSERT INTO broker_core.topics (namespace, local_name, topic_id, created_version, changed_version)"
            " VALUES ('a/b', 'x', gen_random_uuid(), 2, 2)"
        )
    assert await versions(connection) == {"a/b": 2}


async def test_the_log_keeps_what_the_retention_says(connection: Any) -> None:
    await connection.execute("SELECT broker_core.set_retention(rows => 8)")
    for number in range(10):
        await connection.execute(INSERT + f"('a/b', 'x{number}')")
    state = "SELECT version, log_floor, log_rows FROM broker_core.namespaces"
    assert tuple(await connection.fetchrow(state)) == (10, 2, 8)
    assert [entry[0] for entry in await log(connection)] == list(range(3, 11))
    await connection.execute("DELETE FROM broker_core.topics; ")
    assert tuple(await connection.fetchrow(state)) == (11, 11, 0), "more than the log may hold is a gap"
    assert await log(connection) == []
    await connection.execute(INSERT + "('a/b', 'y')")
    assert len(await log(connection)) == 1
    assert await connection.fetchval("SELECT broker_core.prune_changes()") == 0, "nothing is a week old"
    assert await connection.fetchval("SELECT broker_core.prune_changes('0 s')") == 11
    assert (await connection.fetchrow(state))["log_floor"] == 12
    await connection.execute("SELECT broker_core.set_retention(age => '0')")
    assert await connection.fetchval("SELECT age FROM broker_core.retention") is None
    assert await connection.fetchval("SELECT broker_core.prune_changes()") == 0


async def test_a_restored_copy_gets_another_id(connection: Any) -> None:
    before = await connection.fetchval("SELECT id FROM broker_core.catalog")
    assert await connection.fetchval("SELECT broker_core.renew_catalog_id()") != before


async def test_a_large_statement_is_logged_as_a_gap_and_all_its_rows_are_right(connection: Any) -> None:
    await connection.execute("SELECT broker_core.set_retention(rows => 1000)")
    await connection.execute(
        "INSERT INTO broker_core.topics (namespace, local_name, properties) SELECT 'a/b', 'x' || i / 4 ||"
        " CASE WHEN i % 2 = 0 THEN '-partition-' || i % 4 ELSE '-' || i % 4 END, '{\"k\": \"v\"}'"
        " FROM generate_series(1, 20000) i"
    )
    state = "SELECT version, topics, log_floor FROM broker_core.namespaces"
    assert tuple(await connection.fetchrow(state)) == (1, 20000, 1)
    assert (
        await connection.fetchval("SELECT count(*) FROM broker_core.topics WHERE created_version <> 1") == 0
    )
    shared = "SELECT 1 FROM broker_core.topics GROUP BY matched HAVING count(DISTINCT topic_id) > 1"
    assert await connection.fetchval(shared) is None
    assert await log(connection) == []
