"""A server that answers with faults: locks, slow statements, another schema, restored data, a full disk, cut
connections.

Each fault has an error of its own. None gives a part of a listing.
"""

from __future__ import annotations

import asyncio
import itertools
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeAlias

import pytest

from broker_core.client import LookupSession, ServerRefused
from broker_core.errors import ServerError
from tests.postgres.fault_setup import (
    LONG,
    NAMESPACE,
    TOPICS,
    fill_topics,
    is_listed,
    refused,
    serving,
)
from tests.postgres.faults.cutting_proxy import CuttingProxy
from tests.support.eventually import eventually
from tests.support.postgres_server import Database, PostgresServer, migrate_dsn

Lock: TypeAlias = Callable[[], AbstractAsyncContextManager[None]]

_MANY = 40_000  # names, which is more than a page


@pytest.fixture
def filled(database: Database) -> Database:
    fill_topics(database)
    return database


@pytest.fixture
async def admin(filled: Database) -> AsyncIterator[Any]:
    """A connection of an administrator."""
    connection = await filled.connect()
    yield connection
    if not connection.is_closed():
        await connection.close()


@pytest.fixture
async def locked(filled: Database) -> AsyncIterator[Lock]:
    """Lock the table for the time of the block, as a migration does."""
    connection = await filled.connect()

    @asynccontextmanager
    async def lock() -> AsyncIterator[None]:
        async with connection.transaction():
            await connection.execute("LOCK TABLE broker_core.topics IN ACCESS EXCLUSIVE MODE")
            yield

    yield lock
    await connection.close()


@pytest.fixture(scope="module")
def large(postgres_server: PostgresServer) -> Iterator[Database]:
    """A namespace of several pages."""
    database = postgres_server.create_database()
    database.sql(
        "INSERT INTO broker_core.topics (namespace, local_name) "
        f"SELECT '{NAMESPACE}', 'a-topic-with-a-name-of-the-usual-length-' || n FROM generate_series(1, {_MANY}) n"
    )
    yield database
    postgres_server.drop_database(database.name)


async def running(admin: Any) -> int:
    """The number of the plugin's statements that run at the server."""
    return int(
        await admin.fetchval(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE application_name = 'broker-core' AND datname = current_database() AND state = 'active'"
        )
    )


# -- slow and locked


@pytest.mark.parametrize("prepared", ["on", "off"])
async def test_a_table_that_a_migration_locks_is_an_error_when_the_time_is_up(
    filled: Database, locked: Lock, prepared: str
) -> None:
    async with serving(filled.dsn, statement_timeout="2s", prepared_statements=prepared) as broker:
        assert sorted(await broker.list()) == TOPICS
        async with locked():
            refusal = await refused(broker, "the topics are locked, as by a migration")
        assert refusal.code == ServerError.ServiceNotReady
        assert sorted(await broker.list()) == TOPICS
        assert broker.metric("failures_total", reason="locked") == 1


async def test_a_listing_that_nobody_waits_for_stops_at_the_server(
    filled: Database, admin: Any, locked: Lock
) -> None:
    async with serving(filled.dsn) as broker, serving(filled.dsn, deadline="200ms") as hasty:
        for each in (broker, hasty):
            await is_listed(each)
        async with locked():
            host, port = broker.server.broker.pulsar_address
            async with LookupSession(f"pulsar://{host}:{port}") as client:
                asked = asyncio.create_task(client.get_topics(NAMESPACE))
                await eventually(lambda: _is(running(admin), 1), LONG)
            await asyncio.gather(asked, return_exceptions=True)  # the client is gone
            await eventually(lambda: _is(running(admin), 0), LONG, what="the statement has stopped")
            await refused(hasty, "did not answer within")  # the deadline has passed
            await eventually(lambda: _is(running(admin), 0), LONG, what="the statement has stopped")
        for each in (broker, hasty):
            await is_listed(each)
            assert each.metric("pool_dropped_total", pool="primary") == 0


async def test_neither_load_nor_hard_questions_switch_listings_off(filled: Database, locked: Lock) -> None:
    async with serving(filled.dsn, statement_timeout="2s", pool_max=2, pool_waiting=1) as broker:
        assert sorted(await broker.list()) == TOPICS
        async with locked():
            asked = [broker.list(f"{NAMESPACE}/topic-{number}.*") for number in range(20)]
            refusals = await asyncio.gather(*asked, return_exceptions=True)
        assert all(isinstance(refusal, ServerRefused) for refusal in refusals)
        assert broker.metric("failures_total", reason="pool_full") >= 5
        assert sorted(await broker.list()) == TOPICS


# -- another schema


async def test_a_column_that_is_gone_is_an_error_until_it_is_back(filled: Database, admin: Any) -> None:
    async with serving(filled.dsn) as broker:
        assert sorted(await broker.list()) == TOPICS
        await admin.execute("ALTER TABLE broker_core.topics RENAME COLUMN local_name TO elsewhere")
        # New questions: the kept answer of an asked one is right as long as its version is.
        missing = "a column of the topics is missing: run `broker-core postgres migrate`"
        await refused(broker, missing, pattern=f"{NAMESPACE}/topic-1.*")
        await admin.execute("ALTER TABLE broker_core.topics RENAME COLUMN elsewhere TO local_name")
        assert sorted(await broker.list()) == TOPICS
        await admin.execute("ALTER TABLE broker_core.topics RENAME TO moved")
        await refused(broker, "a table of the topics is missing", pattern=f"{NAMESPACE}/topic-2.*")
        await admin.execute("ALTER TABLE broker_core.moved RENAME TO topics")
        assert sorted(await broker.list()) == TOPICS


async def test_a_schema_that_is_newer_is_refused_by_new_connections(filled: Database, admin: Any) -> None:
    async with serving(filled.dsn) as broker:
        assert sorted(await broker.list()) == TOPICS
        await admin.execute(
            "INSERT INTO broker_core.migrations (number, name, checksum) VALUES (9999, 'next', 'x')"
        )
        await _end_connections(admin)
        pool = broker.service.server_pools.primary
        # A connection that was being made may be ended too, which is another failure.
        await eventually(lambda: pool.down and "upgrade broker-core-postgres" in str(pool.failure), LONG)
        await refused(broker, "upgrade broker-core-postgres")
        await admin.execute("DELETE FROM broker_core.migrations WHERE number = 9999")
        await is_listed(broker)


async def test_a_schema_that_is_gone_is_refused_until_it_is_migrated(filled: Database, admin: Any) -> None:
    async with serving(filled.dsn, listen=False) as broker:
        assert sorted(await broker.list()) == TOPICS
        await admin.execute("DROP SCHEMA broker_core CASCADE")
        await refused(broker, "is missing")
        await migrate_dsn(filled.dsn)
        assert await broker.list() == []  # never loaded: the catalogue answers, without topics
        await asyncio.to_thread(fill_topics, filled)
        await is_listed(broker)


async def test_a_user_who_may_not_read_any_more_is_told(filled: Database, admin: Any) -> None:
    role = f"reader_{uuid.uuid4().hex}"
    await admin.execute(f"CREATE ROLE {role} LOGIN IN ROLE broker_core_reader")
    try:
        async with serving(filled.dsn_of(role)) as broker:
            assert sorted(await broker.list()) == TOPICS
            await admin.execute(f"REVOKE broker_core_reader FROM {role}")
            await refused(broker, "grant it the role broker_core_reader")
    finally:
        await admin.execute(f"DROP ROLE {role}")


# -- restored backups


async def test_a_version_that_went_back_brings_no_old_answer(filled: Database, admin: Any) -> None:
    """A restored dump uses the same version numbers for other topics."""
    async with serving(filled.dsn) as broker:
        await admin.execute(
            f"UPDATE broker_core.namespace_versions SET version = 10 WHERE namespace = '{NAMESPACE}'"
        )
        first = await broker.server.list(NAMESPACE)
        assert sorted(first.topics) == TOPICS
        await admin.execute("DELETE FROM broker_core.topics WHERE local_name <> 'topic-007'")
        await admin.execute(
            f"UPDATE broker_core.namespace_versions SET version = 9 WHERE namespace = '{NAMESPACE}'"
        )
        assert await broker.list() == [TOPICS[7]]
        assert broker.metric("history_breaks_total") == 1
        await admin.execute(
            f"UPDATE broker_core.namespace_versions SET version = 10 WHERE namespace = '{NAMESPACE}'"
        )
        again = await broker.server.list(NAMESPACE, topics_hash=first.topics_hash)
        assert (again.changed, again.topics) == (True, [TOPICS[7]])


async def test_another_catalogue_id_brings_no_old_answer(filled: Database, admin: Any) -> None:
    async with serving(filled.dsn) as broker:
        first = await broker.server.list(NAMESPACE)
        version = await admin.fetchval("SELECT version FROM broker_core.namespaces")
        await admin.execute("DELETE FROM broker_core.topics WHERE local_name <> 'topic-007'")
        await admin.execute("UPDATE broker_core.catalog SET id = gen_random_uuid()")
        await admin.execute("UPDATE broker_core.namespace_versions SET version = $1", version)
        again = await broker.server.list(NAMESPACE, topics_hash=first.topics_hash)
        assert (again.changed, again.topics) == (True, [TOPICS[7]])


# -- a full disk, a read-only server


async def test_a_read_only_server_is_read(filled: Database, admin: Any) -> None:
    await admin.execute(f'ALTER DATABASE "{filled.name}" SET default_transaction_read_only = on')
    async with serving(filled.dsn) as broker:
        assert sorted(await broker.list()) == TOPICS


async def test_temporary_files_that_do_not_fit_are_an_error(large: Database) -> None:
    """Reading from a full disk: only a statement that sorts needs space."""
    dsn = (
        f"{large.dsn}?options=-c%20temp_file_limit%3D64%20-c%20work_mem%3D64kB%20-c%20enable_indexscan%3Doff"
    )
    dsn += "%20-c%20enable_indexonlyscan%3Doff"
    async with serving(dsn) as broker:
        await refused(broker, "temporary files than PostgreSQL allows: raise its temp_file_limit")
        assert broker.metric("failures_total", reason="temp_files") == 1
    async with serving(large.dsn) as broker:
        assert len(await broker.list()) == _MANY


# -- cut connections


async def test_a_backend_that_is_ended_again_and_again_gives_whole_listings_or_errors(
    large: Database,
) -> None:
    admin = await large.connect()
    async with serving(large.dsn) as broker:
        outcomes = {"listed": 0, "failed": 0}
        done = False

        async def ask() -> None:
            while not done:
                try:
                    listed = await broker.list()
                except ServerRefused:
                    outcomes["failed"] += 1
                else:
                    assert len(listed) == _MANY
                    outcomes["listed"] += 1

        asker = asyncio.create_task(ask())
        for _ in range(10):
            await eventually(lambda: _ended_running(admin), LONG)
        done = True
        await asker
        assert outcomes["listed"] + outcomes["failed"] > 0
        assert broker.metric("retries_total") > 0
    await admin.close()


@pytest.mark.parametrize("share", [0.02, 0.5, 0.98])
async def test_a_network_that_breaks_in_the_middle_of_the_rows(large: Database, share: float) -> None:
    """The connection breaks after a share of a listing's bytes: it is read once more, then the listing fails."""
    number = itertools.count()

    def new() -> dict[str, str]:
        """Properties that make a new question, since the answers of asked questions are kept."""
        return {"asked": str(next(number))}

    async with CuttingProxy(large.server.port) as proxy:
        dsn = f"postgresql://postgres@127.0.0.1:{proxy.port}/{large.name}?sslmode=disable"
        async with serving(dsn, listen=False, pool_max=1, pool_min=0) as broker:
            assert len(await broker.list(properties=new())) == _MANY
            before = proxy.sent
            assert len(await broker.list(properties=new())) == _MANY
            size = proxy.sent - before
            proxy.cut_after(int(size * share))
            assert len(await broker.list(properties=new())) == _MANY  # by the second attempt
            assert broker.metric("retries_total") == 1
            proxy.cut_after(int(size * share), 100_000)  # the second attempt too
            await refused(broker, "the connection to PostgreSQL broke", properties=new())
            assert proxy.cuts == 3
            assert len(await broker.list(properties=new())) == _MANY


async def test_a_hint_that_somebody_forges_changes_no_answer(filled: Database, admin: Any) -> None:
    async with serving(filled.dsn) as broker:
        await eventually(lambda: broker.metric("listen_connected") == 1, LONG)
        assert sorted(await broker.list()) == TOPICS
        for payload in (
            "", "no JSON", "[" * 7000, "{}", "[]", '{"namespace": 1, "version": 1}', '{"namespace": "x", "version": 1}',
            '{"namespace": "public/default", "version": true}', '{"namespace": "public/default", "version": -1}',
            '{"namespace": "public/default", "version": 1e3}', '{"namespace": "' + "x" * 7000 + '", "version": 1}',
            '{"namespace": "public/default", "version": ' + "9" * 5000 + "}",
        ):  # fmt: skip
            await admin.execute("SELECT pg_notify('broker_core_topics', $1)", payload)
        forged = '{"namespace": "public/default", "version": 9223372036854775807}'
        await admin.execute("SELECT pg_notify('broker_core_topics', $1)", forged)
        await eventually(lambda: broker.metric("listen_hints_total") == 1, LONG)
        assert broker.metric("listen_ignored_total") == 12
        assert sorted(await broker.list()) == TOPICS
        assert broker.metric("history_breaks_total") == 0


async def _end_connections(admin: Any) -> None:
    await admin.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE application_name = 'broker-core' AND datname = current_database()"
    )


async def _ended_running(admin: Any) -> bool:
    """End the backend that runs a statement of the plugin, if there is one."""
    return bool(
        await admin.fetchval(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE application_name = 'broker-core' AND datname = current_database() AND state = 'active' "
            "AND query LIKE '%broker_core.topics%'"
        )
    )


async def _is(counting: Any, number: int) -> bool:
    return bool(await counting == number)
