"""The part of the trigram index for a large load: every visible row is in an index at every moment."""

from __future__ import annotations

import asyncio
import io
import re
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from broker_core.names import Mode, NamespaceName
from broker_core.patterns import compile_pattern
from broker_core_postgres.fill import merge
from broker_core_postgres.fill.load_file import load_topics
from broker_core_postgres.fill.trigram_part import begin_part, end_part
from broker_core_postgres.listing.listing_sql import RowSource, first_page_statement
from broker_core_postgres.listing.row_conditions import make_row_conditions
from broker_core_postgres.schema.run_migrations import migrate
from broker_core_postgres.schema.trigram_index import IndexParts, read_parts
from broker_core_postgres.service import SESSION
from tests.postgres.fault_setup import NAMESPACE, serving
from tests.support.eventually import eventually
from tests.support.postgres_server import Database

_MANY = 40_000
_ROW = """INSERT INTO broker_core.topics (namespace, local_name, trigram_part) VALUES ('{0}', '{1}', {2})"""
_INDEXES = """SELECT array_agg(c.relname::text ORDER BY c.relname)
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = 'broker_core.topics'::regclass AND c.relname LIKE 'topics_trigrams%' AND i.indisvalid"""


def _file(names: int = _MANY, prefix: str = "topic") -> io.BytesIO:
    return io.BytesIO("\n".join(f"{prefix}-{number}" for number in range(names)).encode())


async def _found(connection: Any, namespace: str, infix: str, parts: IndexParts | None = None) -> int:
    """The names with an infix, found by the trigram indexes alone, as listings find them."""
    row_conditions = make_row_conditions(
        NamespaceName.parse(namespace), Mode.ALL, compile_pattern(f".*{infix}.*"), trigrams=True
    )
    source = RowSource(parts=await read_parts(connection) if parts is None else parts)
    statement = first_page_statement(row_conditions, source, 1 << 24)
    explained = await connection.fetchval(f"EXPLAIN (FORMAT JSON) {statement.text}", *statement.arguments)
    used = set(re.findall(r'"Index Name": "(topics_\w+)"', explained))
    assert used, explained
    assert used <= set(await connection.fetchval(_INDEXES)), explained
    row = await connection.fetchrow(statement.text, *statement.arguments)
    return 0 if row is None else int(row["names"])


@pytest.fixture
async def looking(database: Database) -> AsyncIterator[Any]:
    connection = await database.connect(server_settings=dict(SESSION))
    yield connection
    await connection.close()


async def _ended(connection: Any) -> bool:
    ended: bool = connection.is_closed()
    return ended


async def _waiting(connection: Any, expected: int) -> bool:
    waiting: int = await connection.fetchval(
        "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database"
        " WHERE NOT l.granted AND d.datname = current_database()"
    )
    return waiting == expected


async def test_large_loads_make_indexes_of_their_own_rows(
    database: Database, connection: Any, looking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    oid = "SELECT to_regclass('broker_core.topics_trigrams')::oid"
    before = await looking.fetchval(oid)
    seen: list[tuple[int, int]] = []
    ended = end_part

    async def look_then_end(connection: Any, part: int) -> None:
        seen.append((await _found(looking, "a/b", "c-123"), await _found(looking, "a/c", "c-123")))
        await ended(connection, part)

    monkeypatch.setattr(merge, "end_part", look_then_end)
    expected = sum(str(number).startswith("123") for number in range(_MANY))
    for name in ("a/b", "a/c"):
        report = await load_topics(connection, NamespaceName.parse(name), _file())
        assert (report.added, report.version) == (_MANY, 1)
    # During the load, every reader has an index for the rows that it sees.
    assert seen == [(0, 0), (expected, 0)]
    assert await read_parts(looking) == ((0, 0), (1, 1), (2, 2))
    assert await looking.fetchval(_INDEXES) == ["topics_trigrams", "topics_trigrams_1", "topics_trigrams_2"]
    assert await looking.fetchval(oid) == before
    await looking.execute(_ROW.format("a/c", "topic-123-more", 0))
    assert [await _found(looking, name, "c-123") for name in ("a/b", "a/c")] == [expected, expected + 1]


async def test_what_is_small_or_there_already_gets_none(connection: Any, looking: Any) -> None:
    await load_topics(connection, NamespaceName("a", "b"), _file(_MANY - 1))
    assert await read_parts(looking) == ((0, 0),)
    await load_topics(connection, NamespaceName("a", "b"), _file(_MANY))
    await load_topics(connection, NamespaceName("a", "c"), _file(3), add=True)
    assert await read_parts(looking) == ((0, 0),)
    # Fewer names than a sixteenth of all get no part.
    async with connection.transaction():
        await connection.execute("UPDATE broker_core.namespace_versions SET topics = 1000000")
        assert await begin_part(connection, _MANY) == 0
        assert await begin_part(connection, 200_000) == 1


async def test_a_feeder_may(database: Database, looking: Any) -> None:
    database.sql(f"CREATE ROLE feeder_of_{database.name} LOGIN IN ROLE broker_core_feeder")
    async with database.connected(f"feeder_of_{database.name}") as feeder:
        await load_topics(feeder, NamespaceName("a", "b"), _file())
        for statement in (
            "INSERT INTO broker_core.trigram_parts VALUES (5, 5)",
            "SELECT broker_core.merge_trigram_parts()",
            "SELECT broker_core.make_trigram_index('x', 0, 1)",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await feeder.execute(statement)
    assert await read_parts(looking) == ((0, 0), (1, 1))


@pytest.mark.parametrize("how", ["fails", "is killed"])
async def test_a_load_that_comes_to_no_end_leaves_nothing(
    connection: Any, looking: Any, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    async def refused(connection: Any, part: int) -> None:
        assert part == 1
        if how == "fails":
            raise asyncpg.DiskFullError("no space")
        await looking.execute("SELECT pg_terminate_backend($1)", connection.get_server_pid())
        await eventually(lambda: _ended(connection))
        raise ConnectionResetError("the server has ended the connection")

    monkeypatch.setattr(merge, "end_part", refused)
    with pytest.raises((asyncpg.DiskFullError, asyncpg.InterfaceError)):
        await load_topics(connection, NamespaceName("a", "b"), _file())
    assert await looking.fetchval("SELECT count(*) FROM broker_core.topics") == 0
    assert await read_parts(looking) == ((0, 0),)
    assert await looking.fetchval(_INDEXES) == ["topics_trigrams"]


async def test_a_writer_that_takes_long_is_not_waited_for(connection: Any, looking: Any) -> None:
    async with looking.transaction():
        await looking.execute(_ROW.format("x/y", "z", 0))
        report = await load_topics(connection, NamespaceName("a", "b"), _file())
        assert report.added == _MANY
    assert await read_parts(looking) == ((0, 0),)
    assert await _found(looking, "a/b", "c-12345") == 1


async def test_other_writers_wait_and_then_go_on(
    database: Database, connection: Any, looking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await database.connect()
    writing: list[asyncio.Task[Any]] = []
    ended = end_part

    async def write_then_end(connection: Any, part: int) -> None:
        writing.append(asyncio.create_task(other.execute(_ROW.format("x/y", "z", 0))))
        await eventually(lambda: _waiting(looking, 1))
        await ended(connection, part)

    monkeypatch.setattr(merge, "end_part", write_then_end)
    try:
        await load_topics(connection, NamespaceName("a", "b"), _file())
        assert await writing[0] == "INSERT 0 1"
    finally:
        await other.close()


async def _part_of_one(connection: Any, number: int) -> None:
    async with connection.transaction():
        part = await begin_part(connection, _MANY)
        assert part == number
        await connection.execute(_ROW.format("a/b", f"topic-{part:03}", part))
        await end_part(connection, part)


async def test_many_parts_become_one(connection: Any, looking: Any) -> None:
    for number in range(1, 8):
        await _part_of_one(connection, number)
    parts = await read_parts(looking)
    assert parts == tuple((number, number) for number in range(8))
    async with looking.transaction(isolation="repeatable_read", readonly=True):
        before = await read_parts(looking)
        await _part_of_one(connection, 8)
        # A reader that knows the old parts finds their rows by the merged index.
        assert await read_parts(looking) == before == parts
        assert await _found(looking, "a/b", "topic-0") == 7
    assert await read_parts(looking) == ((0, 8),)
    assert await looking.fetchval(_INDEXES) == ["topics_trigrams"]
    assert await _found(looking, "a/b", "topic-0") == 8
    await _part_of_one(connection, 9)
    assert await read_parts(looking) == ((0, 8), (9, 9))
    assert await _found(looking, "a/b", "topic-0") == 9


async def test_parts_that_somebody_reads_stay(connection: Any, looking: Any) -> None:
    for number in range(1, 8):
        await _part_of_one(connection, number)
    async with looking.transaction(isolation="repeatable_read", readonly=True):
        assert await _found(looking, "a/b", "topic-0") == 7
        await _part_of_one(connection, 8)
    assert len(await read_parts(looking)) == 9
    assert await _found(looking, "a/b", "topic-0") == 8
    await _part_of_one(connection, 9)
    assert await read_parts(looking) == ((0, 9),)


@pytest.mark.parametrize("part", [-1, 1, 7])
async def test_a_part_that_nobody_knows_of_is_refused(connection: Any, part: int) -> None:
    """Listings would not read it."""
    with pytest.raises(asyncpg.CheckViolationError):
        await connection.execute(_ROW.format("a/b", "x", part))
    await connection.execute(_ROW.format("a/b", "x", 0))
    with pytest.raises(asyncpg.CheckViolationError):
        await connection.execute(f"UPDATE broker_core.topics SET trigram_part = {part}")


async def test_without_the_index_there_are_no_parts(connection: Any) -> None:
    await connection.execute("DROP EXTENSION pg_trgm CASCADE")
    async with connection.transaction():
        assert await begin_part(connection, _MANY) == 0
    await migrate(connection)
    await _part_of_one(connection, 1)
    await connection.execute("DROP EXTENSION pg_trgm CASCADE")
    await migrate(connection)
    assert await connection.fetchval(_INDEXES) == ["topics_trigrams"]
    assert await read_parts(connection) == ((0, 1),)


async def test_listings_look_into_all_parts(database: Database, connection: Any) -> None:
    async with serving(database.dsn) as broker:
        await connection.execute(_ROW.format(NAMESPACE, "one-0123-by-hand", 0))
        await load_topics(connection, NamespaceName.parse(NAMESPACE), _file(), add=True)
        assert await read_parts(connection) == ((0, 0), (1, 1))
        expected = {f"topic-{number}" for number in range(_MANY) if "0123" in str(number)} | {
            "one-0123-by-hand"
        }
        assert len(expected) == 4
        listed = await broker.list(f"{NAMESPACE}/.*0123.*")
        assert {name.rpartition("/")[2] for name in listed} == expected
