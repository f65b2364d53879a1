"""Many writers at once: versions have no gaps and no repetitions, come in order, and the log gives the table."""

from __future__ import annotations

import asyncio
import io
import json
import random
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any

import asyncpg

from broker_core.names import NamespaceName
from broker_core.plugin_cli import Deletions
from broker_core_postgres.fill.load_file import load_topics
from tests.postgres.schema.log_replay import check_everything
from tests.support.eventually import eventually
from tests.support.postgres_server import Database

_WRITERS = 8
_TURNS = 15
_NAMESPACES = ("t/a", "t/b", "t/c")
_NAMES = [f"topic-{number}{ending}" for number in range(6) for ending in ("", "-partition-0", "-partition-1")]

#: What each snapshot has to show: the newest version, the number of versions in the log, and the listed names.
_SNAPSHOT = """SELECT v.version, (SELECT count(DISTINCT c.version) FROM broker_core.changes c
            WHERE c.namespace = v.namespace AND c.version <= v.version),
        (SELECT coalesce(max(c.version), 0) FROM broker_core.changes c WHERE c.namespace = v.namespace),
        v.topics, (SELECT count(*) FROM broker_core.topics t WHERE t.namespace = v.namespace)
    FROM broker_core.namespaces v"""


async def _one_statement(connection: Any, rng: random.Random) -> None:
    """A statement as feeders write it, for several namespaces in random order."""
    namespaces = rng.sample(_NAMESPACES, rng.randint(1, 3))
    name = rng.choice(_NAMES)
    properties = json.dumps({"k": str(rng.randint(0, 3))})
    kind = rng.random()
    if kind < 0.5:
        # Rows are locked in the order of their insertion, which has to be the same for all writers.
        await connection.execute(
            "INSERT INTO broker_core.topics (namespace, local_name, properties)"
            ' SELECT n, l, $3 FROM unnest($1::text[]) n, unnest($2::text[]) l ORDER BY n COLLATE "C", l COLLATE "C"'
            " ON CONFLICT (namespace, domain, local_name) DO UPDATE SET properties = excluded.properties",
            namespaces,
            rng.sample(_NAMES, 3),
            properties,
        )
    elif kind < 0.75:
        await connection.execute(
            "UPDATE broker_core.topics SET properties = $3 WHERE namespace = $1 AND local_name = $2",
            namespaces[0],
            name,
            properties,
        )
    else:
        await connection.execute(
            "DELETE FROM broker_core.topics WHERE namespace = $1 AND local_name = $2", namespaces[0], name
        )


async def _locked_first(connection: Any, rng: random.Random) -> None:
    """A transaction of several statements, as the commands make it."""
    namespace = rng.choice(_NAMESPACES)
    async with connection.transaction():
        await connection.execute("SELECT broker_core.begin_change($1)", namespace)
        for name in rng.sample(_NAMES, 3):
            await connection.execute(
                "DELETE FROM broker_core.topics WHERE namespace = $1 AND local_name = $2", namespace, name
            )
            await connection.execute(
                "INSERT INTO broker_core.topics (namespace, local_name) VALUES ($1, $2)", namespace, name
            )


async def _hammer(
    database: Database, works: list[Callable[[Any, random.Random], Any]], *, retry: bool
) -> None:
    heard: dict[str, list[int]] = defaultdict(list)
    running = True

    async def write(number: int) -> None:
        rng = random.Random(f"writer {number}")
        async with database.connected() as connection:
            for _ in range(_TURNS):
                work = rng.choice(works)
                while True:
                    try:
                        await work(connection, rng)
                    except asyncpg.DeadlockDetectedError:
                        if not retry:
                            raise
                    else:
                        break

    async def look() -> None:
        async with database.connected() as connection:
            while running:
                for version, logged, newest, said, there in await connection.fetch(_SNAPSHOT):
                    assert version == logged == newest
                    assert said == there

    def hear(*said: Any) -> None:
        hint = json.loads(said[3])
        heard[hint["namespace"]].append(hint["version"])

    async with database.connected() as listener:
        await listener.add_listener("broker_core_topics", hear)
        looking = asyncio.create_task(look())
        try:
            await asyncio.gather(*(write(number) for number in range(_WRITERS)))
        finally:
            running = False
            await looking
        versions = await check_everything(listener)
        assert sum(versions.values()) > _WRITERS * _TURNS / 2
        # Notifications come in the order of the commits: each version once.
        await eventually(lambda: {name: said[-1] for name, said in heard.items()} == versions, 120)
        assert heard == {name: list(range(1, version + 1)) for name, version in versions.items()}


async def test_writers_of_one_statement_each_never_deadlock(database: Database) -> None:
    await _hammer(database, [_one_statement], retry=False)


async def test_the_first_topics_of_a_namespace_lock_it_in_the_order_of_the_names(database: Database) -> None:
    put = "INSERT INTO broker_core.topics (namespace, local_name) VALUES "
    change = ' ON CONFLICT (namespace, domain, local_name) DO UPDATE SET properties = \'{"k": "1"}\''
    database.sql(put + "('t/b', 'there')")
    # An update and an insertion of one statement lock the versions one after the other: stop in between.
    database.sql(
        "CREATE FUNCTION wait_a_while() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN PERFORM pg_advisory_xact_lock_shared(7); RETURN NULL; END $$"
    )
    database.sql(
        "CREATE TRIGGER wait_a_while AFTER UPDATE ON broker_core.topics"
        " FOR EACH STATEMENT EXECUTE FUNCTION wait_a_while()"
    )
    holder, *writers = [await database.connect() for _ in range(4)]
    written: list[asyncio.Task[Any]] = []

    async def stands(number: int) -> bool:
        pid = writers[number].get_server_pid()
        blocked = "SELECT cardinality(pg_blocking_pids($1)) > 0"
        return written[number].done() or bool(await holder.fetchval(blocked, pid))

    try:
        await holder.execute("SELECT pg_advisory_lock(7)")
        rows = (
            "('t/a', 'one'), ('t/b', 'there')" + change,
            "('t/a', 'two')",
            "('t/a', 'three'), ('t/b', 'three')",
        )
        for number, some in enumerate(rows):
            written.append(asyncio.create_task(writers[number].execute(put + some)))
            await eventually(partial(stands, number))
        await holder.execute("SELECT pg_advisory_unlock(7)")
        await asyncio.gather(*written)
        assert await check_everything(holder) == {"t/a": 3, "t/b": 3}
    finally:
        for connection in (holder, *writers):
            await connection.close()


async def test_writers_of_all_kinds(database: Database) -> None:
    # Two writers wait for each other, one for a row and one for the version: PostgreSQL ends one of them.
    database.sql(f"ALTER DATABASE {database.name} SET deadlock_timeout = '20ms'")
    await _hammer(database, [_one_statement, _locked_first], retry=True)


async def test_readers_see_one_file_or_the_other(database: Database) -> None:
    files = [
        [f"{word}-{number}" for number in range(200 + 100 * size)] for size, word in enumerate(("one", "two"))
    ]
    namespace = NamespaceName("t", "a")
    running = True

    async def load(names: list[str]) -> None:
        async with database.connected() as connection:
            for _ in range(4):
                file = io.BytesIO("\n".join(names).encode())
                await load_topics(connection, namespace, file, deletions=Deletions(mass=True))

    async def look() -> set[tuple[str, ...]]:
        connection = await database.connect()
        seen = set()
        try:
            while running:
                rows = await connection.fetch("SELECT local_name FROM broker_core.topics ORDER BY 1")
                seen.add(tuple(row[0] for row in rows))
        finally:
            await connection.close()
        return seen

    looking = asyncio.create_task(look())
    try:
        await asyncio.gather(*map(load, files))
    finally:
        running = False
        seen = await looking
    assert seen <= {(), *(tuple(sorted(names)) for names in files)}
    async with database.connected() as check:
        assert (await check_everything(check))["t/a"] >= 2
