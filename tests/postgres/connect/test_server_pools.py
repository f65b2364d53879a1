"""Reading at real servers: read-only, from one snapshot, retried after a loss, through a pooler."""

from __future__ import annotations

import asyncio
from typing import Any

import asyncpg
import pytest

from broker_core.client import ServerRefused
from broker_core.errors import ListingFailed
from broker_core_postgres.connect.server_pools import ServerPools
from broker_core_postgres.settings import PostgresSettings
from tests.postgres.fault_setup import LONG, NAMESPACE, TOPICS, fill_topics, is_listed, serving
from tests.support.eventually import eventually
from tests.support.pgbouncer import pgbouncer_program, pooled
from tests.support.postgres_server import Database, PostgresServer

_NO_PGBOUNCER = pytest.mark.skipif(
    pgbouncer_program() is None, reason="pgbouncer is not installed (Debian: apt install pgbouncer)"
)


def connections_to(
    server: PostgresServer, session_settings: dict[str, str] | None = None, **settings: Any
) -> ServerPools:
    server_pools = ServerPools(
        PostgresSettings(dsn=server.dsn(), pool_max=2, **settings), session_settings=session_settings
    )
    server_pools.lock = None  # there is no table of topics
    return server_pools


async def test_the_settings_say_how_to_connect(database: Database) -> None:
    settings = PostgresSettings(
        dsn=database.dsn, pool_min=0, pool_max=3, pool_waiting=5, pool_idle=7, pool_lifetime=0, statement_timeout=4,
        connect_timeout=2, replicas=(database.dsn,), replica_max_lag=1, prepared_statements="off",
    )  # fmt: skip
    server_pools = ServerPools(settings, session_settings={"jit": "off"})
    assert {pool.settings for pool in server_pools.pools} == {settings}
    assert not server_pools.session.prepared
    assert "jit = E'off'" in server_pools.session.begin_sql(snapshot=False)
    assert [pool.name for pool in server_pools.pools] == ["primary", "replica_1"]


@pytest.mark.parametrize("prepared", [True, False], ids=["sessions", "transactions"])
async def test_what_is_read_with_can_only_read(postgres_server: PostgresServer, prepared: bool) -> None:
    server_pools = connections_to(
        postgres_server, prepared_statements="on" if prepared else "off", statement_timeout=1.5
    )
    assert await server_pools.start() is None
    for snapshot in (False, True):
        async with server_pools.acquire(snapshot=snapshot) as connection:
            assert await connection.fetchval("SELECT $1::int + 1", 6) == 7
            assert await connection.fetchval("SHOW transaction_read_only") == "on"
            assert await connection.fetchval("SHOW statement_timeout") == "1500ms"
            level = await connection.fetchval("SHOW transaction_isolation")
            assert level == ("repeatable read" if snapshot else "read committed")
        with pytest.raises(ListingFailed, match="read-only"):
            async with server_pools.acquire(snapshot=snapshot) as connection:
                await connection.execute("CREATE TABLE never (a int)")
    with pytest.raises(ListingFailed, match="statement_timeout") as slow:
        async with server_pools.acquire() as connection:
            await connection.execute(
                "SET statement_timeout = 1" if prepared else "SET LOCAL statement_timeout = 1"
            )
            await connection.fetchval("SELECT pg_sleep(1000)")
    assert slow.value.reason == "statement_timeout"
    await server_pools.close()


async def test_in_transactions_nothing_stays_in_the_session(postgres_server: PostgresServer) -> None:
    server_pools = connections_to(postgres_server, {"jit": "off"}, prepared_statements="off")
    await server_pools.start()
    for number in range(3):
        async with server_pools.acquire() as connection:
            assert await connection.fetchval("SELECT $1::text", f"{number}") == f"{number}"
    held = await server_pools.primary.acquire()
    assert await held.connection.fetchval("SELECT count(*) FROM pg_prepared_statements WHERE name <> ''") == 0
    assert await held.connection.fetchval("SELECT count(*) FROM pg_listening_channels()") == 0
    for name in ("statement_timeout", "default_transaction_read_only", "jit"):
        here = await held.connection.fetchrow(
            "SELECT setting, reset_val FROM pg_settings WHERE name = $1", name
        )
        assert here["setting"] == here["reset_val"], name
    server_pools.primary.release(held)
    await server_pools.close()


async def test_statements_are_prepared_once_for_a_session(postgres_server: PostgresServer) -> None:
    server_pools = connections_to(postgres_server)
    await server_pools.start()
    for number in range(3):
        async with server_pools.acquire() as connection:
            assert await connection.fetchval("SELECT $1::text", f"{number}") == f"{number}"
            kept = await connection.fetchval(
                "SELECT generic_plans + custom_plans FROM pg_prepared_statements WHERE statement = 'SELECT $1::text'"
            )
            assert kept == number + 1
    await server_pools.close()


async def test_a_connection_that_broke_is_asked_once_more(postgres_server: PostgresServer) -> None:
    server_pools = connections_to(postgres_server)
    await server_pools.start()
    attempts = 0

    async def end_itself_once(connection: Any) -> int:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            await connection.fetchval("SELECT pg_terminate_backend(pg_backend_pid())")
        return int(await connection.fetchval("SELECT 7"))

    async def end_itself(connection: Any) -> None:
        await connection.fetchval("SELECT pg_terminate_backend(pg_backend_pid())")

    assert await server_pools.read(end_itself_once) == 7
    assert (attempts, server_pools.retries) == (2, 1)
    with pytest.raises(ListingFailed) as lost:
        await server_pools.read(end_itself)
    assert lost.value.reason in {"shutdown", "lost"}

    async def wrong(connection: Any) -> None:
        nonlocal attempts
        attempts += 1
        await connection.fetch("SELECT nothing_of_the_kind")

    with pytest.raises(ListingFailed, match="a column of the topics is missing"):
        await server_pools.read(wrong)
    assert attempts == 3  # an error of the statement is not retried
    await server_pools.close()


async def test_an_error_of_who_reads_leaves_a_clean_connection(postgres_server: PostgresServer) -> None:
    server_pools = connections_to(postgres_server)
    await server_pools.start()
    for snapshot in (False, True):
        with pytest.raises(KeyError):
            async with server_pools.acquire(snapshot=snapshot):
                raise KeyError("mine")
        async with server_pools.acquire() as connection:
            assert not connection.is_in_transaction()
    assert server_pools.primary.dropped == 0
    await server_pools.close()


@_NO_PGBOUNCER
async def test_listings_through_a_pooler_of_transactions(database: Database) -> None:
    """More listings at once than the pooler has sessions: each statement may run in another session."""
    fill_topics(database)
    with pooled(database.server, database.name) as dsn:
        direct = {"listen_dsn": database.dsn, "prepared_statements": "off"}
        async with serving(dsn, pool_max=8, **direct) as broker:
            for _ in range(3):
                for listed in await asyncio.gather(*(broker.list() for _ in range(12))):
                    assert sorted(listed) == TOPICS
                for listed in await asyncio.gather(
                    *(broker.list(f"{NAMESPACE}/topic-0{n}.") for n in range(10))
                ):
                    assert len(listed) == 10
            await eventually(lambda: broker.metric("listen_connected") == 1, LONG)
            admin = await database.connect()
            sessions = await admin.fetchval(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'broker-core' AND datname = $1",
                database.name,
            )
            assert 1 <= sessions <= 2
            answer = await broker.server.list(NAMESPACE)
            await admin.execute(
                "INSERT INTO broker_core.topics (namespace, local_name) VALUES ($1, 'new')", NAMESPACE
            )
            again = await broker.server.list(NAMESPACE, topics_hash=answer.topics_hash)
            assert (again.changed, len(again.topics)) == (True, len(TOPICS) + 1)
            await eventually(lambda: broker.metric("listen_hints_total") == 1, LONG)
            await admin.close()
        async with serving(dsn, prepared_statements="off") as broker:
            assert broker.service.listener is None  # no LISTEN through a pooler: the version row is read


@_NO_PGBOUNCER
async def test_a_listing_through_a_pooler_stops_at_the_server(database: Database) -> None:
    fill_topics(database)
    admin, watcher = await database.connect(), await database.connect()
    with pooled(database.server, database.name) as dsn:
        async with serving(dsn, prepared_statements="off", deadline="200ms") as broker:
            await is_listed(broker)
            async with admin.transaction():
                await admin.execute("LOCK TABLE broker_core.topics IN ACCESS EXCLUSIVE MODE")
                with pytest.raises(ServerRefused, match="did not answer within"):
                    await broker.list()

                async def stopped() -> bool:
                    return not await watcher.fetchval(
                        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = $1",
                        database.name,
                    )

                await eventually(stopped, LONG)
            await is_listed(broker)
    await admin.close()
    await watcher.close()


async def test_asyncpg_names_statements_where_it_may(postgres_server: PostgresServer) -> None:
    """Why statements have no names behind a pooler; fails if a driver's version changes that."""
    connection = await asyncpg.connect(postgres_server.dsn(), statement_cache_size=0)
    await connection.fetchval("SELECT $1::int", 1)
    assert await connection.fetchval("SELECT count(*) FROM pg_prepared_statements WHERE name <> ''") == 0
    await connection.close()
