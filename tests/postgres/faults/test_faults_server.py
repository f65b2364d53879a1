"""A server that is down, restarts, hangs or fails over: clients get an error or, if asked for, the last answer, and the
whole listing as soon as the server is back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import asyncpg
import pytest

from broker_core.client import ServerRefused
from broker_core_postgres.changes import TopicsListener
from broker_core_postgres.connect import parameters_of
from broker_core_postgres.settings import PostgresSettings
from tests.postgres.fault_setup import LONG, NAMESPACE, TOPICS, fill_topics, is_listed, refused, serving
from tests.support.eventually import eventually
from tests.support.narrowed import present
from tests.support.postgres_server import Database, PostgresServer


@pytest.fixture(scope="module")
def fragile() -> Iterator[Database]:
    """A database on a server that these tests stop, kill and fill."""
    with PostgresServer() as server:
        database = server.create_database()
        fill_topics(database)
        yield database


async def test_a_server_that_is_down_at_the_start_is_found_when_it_comes(fragile: Database) -> None:
    await asyncio.to_thread(fragile.server.stop)
    try:
        async with serving(fragile.dsn) as broker:
            await refused(broker, "PostgreSQL cannot be reached")
            assert broker.metric("pool_up", pool="primary") == 0
            assert broker.metric("listen_connected") == 0
            assert broker.metric("failures_total", reason="unreachable") == 1
            await asyncio.to_thread(fragile.server.start)
            await is_listed(broker)
            await eventually(lambda: broker.metric("listen_connected") == 1, LONG)
            assert broker.metric("pool_up", pool="primary") == 1
    finally:
        await asyncio.to_thread(fragile.server.start) if not fragile.server.running else None


async def test_a_server_that_goes_down_is_an_error_and_is_found_again(fragile: Database) -> None:
    async with serving(fragile.dsn) as broker:
        assert sorted(await broker.list()) == TOPICS
        await asyncio.to_thread(fragile.server.kill)
        await refused(broker, "PostgreSQL")
        await asyncio.to_thread(fragile.server.start)
        await is_listed(broker)


@pytest.mark.parametrize("how", ["stop", "kill"])
async def test_the_first_listing_after_the_pool_is_connected_again_is_answered(
    fragile: Database, how: str
) -> None:
    """The breaker closes at once, however many listings failed before."""
    async with serving(fragile.dsn) as broker:
        assert sorted(await broker.list()) == TOPICS
        pool = broker.service.server_pools.primary
        await asyncio.to_thread(getattr(fragile.server, how))
        try:
            for number in range(20):
                await refused(broker, "postgres", pattern=f"{NAMESPACE}/topic-{number:03}")
            await eventually(lambda: pool.down, LONG, what="the pool is down")
            assert broker.problems(), "it is shown at once"
            await refused(broker, "is not asked for now", pattern=f"{NAMESPACE}/topic-9.*")
            await eventually(
                lambda: "PostgreSQL cannot be reached" in "".join(broker.problems()), LONG, what="it is shown"
            )
            assert len(broker.problems()) == 1
        finally:
            await asyncio.to_thread(fragile.server.start)
        await eventually(lambda: not pool.down, LONG, what="the pool is connected")
        assert sorted(await broker.list()) == TOPICS
        assert broker.problems() == []


async def test_a_restart_under_load_gives_whole_listings_and_errors_only(fragile: Database) -> None:
    async with serving(fragile.dsn, pool_max=4) as broker:
        outcomes = {"listed": 0, "failed": 0}
        done = False

        async def ask() -> None:
            while not done:
                try:
                    listed = await broker.list()
                except ServerRefused:
                    outcomes["failed"] += 1
                else:
                    assert sorted(listed) == TOPICS
                    outcomes["listed"] += 1

        askers = [asyncio.create_task(ask()) for _ in range(8)]
        await eventually(lambda: outcomes["listed"] > 20, LONG)
        await asyncio.to_thread(fragile.server.restart)
        before = outcomes["listed"]
        await eventually(lambda: outcomes["listed"] > before + 20, LONG)
        done = True
        await asyncio.gather(*askers)
        assert broker.metric("pool_connections", pool="primary", state="in_use") == 0


async def test_a_server_that_hangs_is_an_error_at_the_deadline(fragile: Database) -> None:
    async with serving(fragile.dsn, deadline="300ms", connect_timeout="300ms") as broker:
        await is_listed(broker)
        fragile.server.pause()
        try:
            await refused(broker, "did not answer within 0.3 s|did not answer in time")
        finally:
            fragile.server.resume()
        await is_listed(broker)


async def test_a_server_without_a_free_connection_says_so(fragile: Database) -> None:
    server = fragile.server
    server.settings.update(
        {"max_connections": "5", "superuser_reserved_connections": "0", "max_wal_senders": "0"}
    )
    await asyncio.to_thread(server.restart)
    others = [await asyncpg.connect(server.dsn()) for _ in range(5)]
    try:
        async with serving(fragile.dsn) as broker:
            await refused(broker, "no free connection: raise its max_connections, or lower pool_max")
            await others.pop().close()
            await is_listed(broker)
    finally:
        for other in others:
            await other.close()
        for name in ("max_connections", "superuser_reserved_connections", "max_wal_senders"):
            del server.settings[name]
        server.settings["max_connections"] = "60"
        await asyncio.to_thread(server.restart)


async def test_a_listener_outlives_a_server_that_ends_in_the_midst_of_its_queries(fragile: Database) -> None:
    """The driver has errors of its own for a connection that breaks between two queries of a transaction."""
    parameters = parameters_of(PostgresSettings(dsn=fragile.dsn))
    listeners = [TopicsListener(parameters, lambda _: None) for _ in range(25)]
    try:
        for listener in listeners:
            listener.start()
        for pause in (0.03, 0.1, 0.1, 0.12, 0.14, 0.16):  # some are then at each of their queries
            await asyncio.sleep(pause)
            await asyncio.to_thread(fragile.server.restart)
        await eventually(lambda: all(listener.connected for listener in listeners), LONG)
    finally:
        for listener in listeners:
            await listener.close()


async def test_the_other_host_takes_over(fragile: Database) -> None:
    primary = fragile.server
    standby = await asyncio.to_thread(primary.start_replica)
    try:
        hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
        dsn = f"postgresql://postgres@{hosts}/{fragile.name}"
        async with serving(dsn) as broker:
            assert sorted(await broker.list()) == TOPICS
            await asyncio.to_thread(primary.stop)
            await refused(broker, "PostgreSQL")  # a standby may lack changes, and is not asked
            await asyncio.to_thread(standby.sql, "SELECT pg_promote()")
            await is_listed(broker)
            # Another timeline: kept answers are void. That LISTEN is connected may be what was so before.
            await eventually(lambda: broker.service.history.breaks == 1, LONG)
            await eventually(lambda: broker.metric("listen_connected") == 1, LONG)
            host = present(broker.service.server_pools.primary.host)
            assert host.port == standby.port
    finally:
        await asyncio.to_thread(standby.close)
        await asyncio.to_thread(primary.start)
