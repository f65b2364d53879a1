"""The first load of a database, which makes the index of trigrams after its rows, and one that fails."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from broker_core.names import NamespaceName
from broker_core_postgres.dsn import connect
from broker_core_postgres.load import load_topics
from broker_core_postgres.migrate import migrate
from broker_core_postgres.postponed import PostponedIndexes
from broker_core_postgres.trigrams import read_trigrams
from broker_core_postgres.upkeep import refresh_statistics
from tests.support.eventually import eventually
from tests.support.postgres_server import Database

NAMESPACE = NamespaceName("a", "b")
_MANY = 40_000
_INDEX = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('broker_core.topics_trigrams')"
_NOTED = "SELECT count(*) FROM broker_core.postponed_indexes"
_FOUND = (
    "SELECT count(*) FROM broker_core.topics"
    """ WHERE namespace = $1 COLLATE "POSIX" AND matched LIKE '%topic%123%' COLLATE "POSIX\""""
)


def _file(names: int = _MANY) -> io.BytesIO:
    return io.BytesIO("\n".join(f"topic-{number}" for number in range(names)).encode())


@pytest.fixture
async def looking(database: Database) -> AsyncIterator[Any]:
    connection = await database.connect()
    yield connection
    await connection.close()


async def _ended(connection: Any) -> bool:
    ended: bool = connection.is_closed()
    return ended


class _Seen:
    """What another connection sees while the rows are written but not committed."""

    def __init__(self, looking: Any) -> None:
        self.looking = looking
        self.index: list[bool | None] = []
        self.trigrams: list[str | None] = []
        self.topics: list[int] = []

    async def look(self) -> None:
        self.index.append(await self.looking.fetchval(_INDEX))
        self.trigrams.append(await read_trigrams(self.looking))
        self.topics.append(await self.looking.fetchval(_FOUND, "a/b"))


async def test_the_first_load_makes_the_index_of_its_rows(
    database: Database, connection: Any, looking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = _Seen(looking)
    made = PostponedIndexes.make

    async def look_then_make(self: PostponedIndexes, connection: Any) -> None:
        await seen.look()
        await made(self, connection)

    monkeypatch.setattr(PostponedIndexes, "make", look_then_make)
    report = await load_topics(connection, NAMESPACE, _file(), second=database.connect)
    assert (report.added, report.version) == (_MANY, 1)
    # Readers were never kept out: without the index, which is said to be there since it will be when the rows are.
    assert (seen.index, seen.trigrams, seen.topics) == ([None], ["namespace"], [0])
    assert await looking.fetchval(_INDEX) is True
    assert await looking.fetchval(_NOTED) == 0
    assert await looking.fetchval(_FOUND, "a/b") == sum("123" in str(number) for number in range(_MANY))


async def test_a_later_or_a_small_load_leaves_the_index_alone(
    database: Database, connection: Any, looking: Any
) -> None:
    before = await looking.fetchval("SELECT to_regclass('broker_core.topics_trigrams')::oid")
    await load_topics(connection, NAMESPACE, _file(1), second=database.connect)
    await load_topics(connection, NamespaceName("a", "c"), _file(), second=database.connect)
    assert await looking.fetchval("SELECT to_regclass('broker_core.topics_trigrams')::oid") == before


async def test_a_load_that_fails_makes_it_again(
    database: Database, connection: Any, looking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused(_self: PostponedIndexes, _connection: Any) -> None:
        assert await looking.fetchval(_INDEX) is None
        raise asyncpg.DiskFullError("no space")

    monkeypatch.setattr(PostponedIndexes, "make", refused)
    with pytest.raises(asyncpg.DiskFullError):
        await load_topics(connection, NAMESPACE, _file(), second=database.connect)
    assert await looking.fetchval(_INDEX) is True
    assert await looking.fetchval("SELECT count(*) FROM broker_core.topics") == 0


@pytest.mark.parametrize("mended_by", ["the next load", "statistics", "migrate"])
async def test_of_a_load_that_was_killed_the_next_one_makes_it(
    database: Database, connection: Any, looking: Any, monkeypatch: pytest.MonkeyPatch, mended_by: str
) -> None:
    async def killed(self: PostponedIndexes, connection: Any) -> None:
        self._second.terminate()
        await looking.execute("SELECT pg_terminate_backend($1)", connection.get_server_pid())
        await eventually(lambda: _ended(connection))
        raise ConnectionResetError("the server has ended the connection")

    with monkeypatch.context() as patched:
        patched.setattr(PostponedIndexes, "make", killed)
        with pytest.raises(ConnectionResetError):
            await load_topics(connection, NAMESPACE, _file(), second=database.connect)
    assert (await looking.fetchval(_INDEX), await looking.fetchval(_NOTED)) == (None, 1)
    assert await read_trigrams(looking) == "namespace", "a server that demands it starts"
    if mended_by == "the next load":
        await load_topics(looking, NAMESPACE, _file(), second=database.connect)
    elif mended_by == "statistics":
        await refresh_statistics(looking, 1)
    else:
        await migrate(looking)
    assert (await looking.fetchval(_INDEX), await looking.fetchval(_NOTED)) == (True, 0)


@pytest.mark.parametrize(
    ("meanwhile", "made"),
    [
        ("CREATE INDEX topics_trigrams ON broker_core.topics (namespace)", True),
        ("DROP EXTENSION pg_trgm CASCADE", None),
    ],
    ids=["somebody made it", "its extension is gone"],
)
async def test_what_cannot_be_made_any_more_is_no_failure(
    database: Database, connection: Any, looking: Any, meanwhile: str, made: bool | None
) -> None:
    assert await connection.fetchval("SELECT broker_core.postpone_indexes(1000000)")
    await connection.execute(meanwhile)
    report = await load_topics(connection, NAMESPACE, _file(), second=database.connect)
    assert report.added == _MANY
    await refresh_statistics(connection, report.added)
    assert await looking.fetchval("SELECT reltuples FROM pg_class WHERE relname = 'topics'") == _MANY
    assert (await looking.fetchval(_INDEX), await looking.fetchval(_NOTED)) == (made, 0)
    await migrate(connection)
    assert await looking.fetchval(_INDEX) is True


async def test_topics_that_the_lock_has_waited_for_keep_their_index(
    database: Database, connection: Any, looking: Any
) -> None:
    async def waits() -> bool:
        waiting: int = await connection.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return waiting == 1

    async with looking.transaction():
        await looking.execute("INSERT INTO broker_core.topics (namespace, local_name) VALUES ('x/y', 'z')")
        other = await database.connect()
        postponing = asyncio.create_task(other.fetchval("SELECT broker_core.postpone_indexes(1000000)"))
        await eventually(waits)
    assert await postponing is False
    assert await looking.fetchval(_INDEX) is True
    await other.close()


async def test_a_writer_that_takes_long_is_not_waited_for(
    database: Database, connection: Any, looking: Any
) -> None:
    async with looking.transaction():
        await looking.execute("INSERT INTO broker_core.topics (namespace, local_name) VALUES ('x/y', 'z')")
        before = await looking.fetchval("SELECT to_regclass('broker_core.topics_trigrams')::oid")
        report = await load_topics(connection, NAMESPACE, _file(), second=database.connect)
        assert report.added == _MANY
        assert await looking.fetchval("SELECT to_regclass('broker_core.topics_trigrams')::oid") == before


async def test_other_writers_wait_and_then_go_on(
    database: Database, connection: Any, looking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = await database.connect()
    writing: list[asyncio.Task[Any]] = []
    made = PostponedIndexes.make

    async def waits() -> bool:
        waiting: int = await looking.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return waiting == 1

    async def write_then_make(self: PostponedIndexes, connection: Any) -> None:
        insert = "INSERT INTO broker_core.topics (namespace, local_name) VALUES ('x/y', 'z')"
        writing.append(asyncio.create_task(other.execute(insert)))
        await eventually(waits)
        await made(self, connection)

    monkeypatch.setattr(PostponedIndexes, "make", write_then_make)
    try:
        await load_topics(connection, NAMESPACE, _file(), second=database.connect)
        assert await writing[0] == "INSERT 0 1"
    finally:
        await other.close()


async def test_upkeep_waits_for_no_writer(database: Database, connection: Any, looking: Any) -> None:
    assert await connection.fetchval("SELECT broker_core.postpone_indexes(1000000)")
    async with looking.transaction():
        await looking.execute("INSERT INTO broker_core.topics (namespace, local_name) VALUES ('x/y', 'z')")
        report = await load_topics(connection, NAMESPACE, _file(2), second=database.connect)
        await refresh_statistics(connection, report.added)
        assert await connection.fetchval("SELECT reltuples FROM pg_class WHERE relname = 'topics'") == 2
        assert await connection.fetchval(_NOTED) == 1
    await refresh_statistics(connection, 1)
    assert (await looking.fetchval(_INDEX), await looking.fetchval(_NOTED)) == (True, 0)


async def test_without_a_second_connection_nothing_is_postponed(
    database: Database, connection: Any, looking: Any
) -> None:
    await looking.execute("DROP ROLE IF EXISTS only_one")
    await looking.execute("CREATE ROLE only_one LOGIN CONNECTION LIMIT 0")

    async def refused() -> Any:
        return await connect(database.dsn_of("only_one"))

    before = await looking.fetchval("SELECT to_regclass('broker_core.topics_trigrams')::oid")
    assert (await load_topics(connection, NAMESPACE, _file(), second=refused)).added == _MANY
    assert await looking.fetchval("SELECT to_regclass('broker_core.topics_trigrams')::oid") == before
