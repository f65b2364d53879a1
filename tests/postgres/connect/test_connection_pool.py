"""The pool at real servers: bounds, cancellation at the server, dead connections, back-off and changed roles."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import asyncpg
import pytest

from broker_core.errors import ListingFailed
from broker_core_postgres.connect import connection_pool
from broker_core_postgres.connect.connection_pool import ConnectionCheck, PooledConnection, PostgresPool
from broker_core_postgres.connect.libpq.connection_parameters import ConnectionParameters
from broker_core_postgres.connect.session_settings import SessionSettings
from broker_core_postgres.settings import PostgresSettings
from tests.support.eventually import eventually
from tests.support.narrowed import present
from tests.support.ports import free_port
from tests.support.postgres_server import PostgresServer

_LONG = 60.0  # seconds that a loaded machine may take


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection is not dropped because a loaded machine takes seconds for the end of a cancelled statement."""
    monkeypatch.setattr(connection_pool, "_SETTLE", _LONG)


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """A server that these tests stop and start."""
    with PostgresServer() as server:
        yield server


@pytest.fixture
async def watcher(postgres_server: PostgresServer) -> AsyncIterator[Any]:
    """A connection that watches the others."""
    connection = await asyncpg.connect(postgres_server.dsn())
    yield connection
    await connection.close()


def pool_of(server: PostgresServer, **options: Any) -> PostgresPool:
    return pool_to(ConnectionParameters.parse(server.dsn()), **options)


def pool_to(
    parameters: ConnectionParameters,
    *,
    check: ConnectionCheck | None = None,
    probe: float = 15.0,
    **options: Any,
) -> PostgresPool:
    settings = PostgresSettings(**{"connect_timeout": _LONG, **options})
    session = SessionSettings(settings, application_name="pool under test")
    return PostgresPool(parameters, settings, session, check=check, probe=probe)


async def statements(watcher: Any) -> int:
    """The number of statements of the pool under test that run at the server."""
    return int(
        await watcher.fetchval(
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE application_name = 'pool under test' AND state = 'active' AND query LIKE '%pg_sleep%'"
        )
    )


async def test_a_connection_is_used_again(postgres_server: PostgresServer) -> None:
    pool = pool_of(postgres_server)
    assert await pool.start() is None
    first = await pool.acquire()
    assert (pool.in_use, pool.idle) == (1, 0)
    pool.release(first)
    assert (pool.in_use, pool.idle) == (0, 1)
    assert await pool.acquire() is first
    pool.release(first)
    await pool.close()
    assert (pool.opened, pool.size) == (1, 0)
    with pytest.raises(ListingFailed, match="shutting down"):
        await pool.acquire()


async def test_no_more_than_the_bound_are_open_and_who_waits_is_served_in_turn(
    postgres_server: PostgresServer,
) -> None:
    pool = pool_of(postgres_server, pool_max=2, pool_min=0)
    await pool.start()
    order: list[int] = []

    async def use(number: int) -> None:
        held = await pool.acquire()
        assert pool.size <= 2
        await held.connection.fetchval("SELECT 1")
        order.append(number)
        pool.release(held)

    await asyncio.gather(*(use(number) for number in range(20)))
    assert sorted(order) == list(range(20))
    assert pool.opened <= 2
    await pool.close()


async def test_too_many_who_wait_are_refused_and_others_in_time(postgres_server: PostgresServer) -> None:
    pool = pool_of(postgres_server, pool_max=1, pool_waiting=2)
    await pool.start()
    held = await pool.acquire()
    waiting = [asyncio.create_task(pool.acquire()) for _ in range(2)]
    await eventually(lambda: pool.waiting == 2)
    with pytest.raises(ListingFailed, match="too many listings wait") as refused:
        await pool.acquire()
    assert refused.value.reason == "pool_full"
    waiting[1].cancel()
    await eventually(lambda: pool.waiting == 1)
    with pytest.raises(ListingFailed, match="became free in time") as late:
        await pool.acquire(asyncio.get_running_loop().time() + 0.01)
    assert late.value.reason == "pool_timeout"
    pool.release(held)
    assert await waiting[0] is held
    assert (pool.waiting, pool.refused) == (0, 2)
    pool.release(held)
    await pool.close()


async def test_a_connection_that_comes_as_its_taker_goes_is_not_lost(postgres_server: PostgresServer) -> None:
    pool = pool_of(postgres_server, pool_max=1)
    await pool.start()
    held = await pool.acquire()
    taker = asyncio.create_task(pool.acquire())
    await eventually(lambda: pool.waiting == 1)
    pool.release(held)  # the waiting request has it now, but has not run yet
    taker.cancel()
    await asyncio.gather(taker, return_exceptions=True)
    assert (pool.idle, pool.in_use) == (1, 0)
    await pool.close()


async def test_a_cancelled_statement_stops_at_the_server_before_its_connection_is_used_again(
    postgres_server: PostgresServer, watcher: Any
) -> None:
    pool = pool_of(postgres_server, pool_max=2)
    await pool.start()

    async def long(begin: str) -> None:
        held = await pool.acquire()
        error: BaseException | None = None
        try:
            await held.connection.execute(begin)
            await held.connection.fetchval("SELECT pg_sleep(1000)")
        except BaseException as raised:
            error = raised
            raise
        finally:
            pool.release(held, error)

    tasks = [asyncio.create_task(long("BEGIN")), asyncio.create_task(long("SELECT 1"))]
    await eventually(lambda: _is(statements(watcher), 2), _LONG)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    held = await pool.acquire()
    other = await pool.acquire()
    assert await statements(watcher) == 0
    for each in (held, other):
        assert not each.connection.is_in_transaction()
        assert await each.connection.fetchval("SELECT 7") == 7
        pool.release(each)
    assert (pool.opened, pool.dropped) == (2, 0)
    await pool.close()


async def test_a_transaction_left_open_is_rolled_back(postgres_server: PostgresServer) -> None:
    pool = pool_of(postgres_server, pool_max=1)
    await pool.start()
    held = await pool.acquire()
    await held.connection.execute("BEGIN")
    with pytest.raises(asyncpg.PostgresError) as raised:
        await held.connection.fetch("SELECT nothing_of_the_kind")
    pool.release(held, raised.value)
    assert await pool.acquire() is held
    assert not held.connection.is_in_transaction()
    pool.release(held)
    await pool.close()


async def test_a_dead_connection_is_not_handed_out(postgres_server: PostgresServer, watcher: Any) -> None:
    pool = pool_of(postgres_server, pool_max=3, pool_min=0)
    await pool.start()
    held = [await pool.acquire() for _ in range(3)]
    for each in held:
        pool.release(each)
    await watcher.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pool under test'"
    )
    await eventually(lambda: all(each.connection.is_closed() for each in held), _LONG)
    fresh = await pool.acquire()
    assert fresh not in held
    assert await fresh.connection.fetchval("SELECT 7") == 7
    pool.release(fresh)
    await pool.close()


async def test_after_a_loss_the_others_are_not_trusted(postgres_server: PostgresServer) -> None:
    pool = pool_of(postgres_server, pool_max=2, pool_min=0)
    await pool.start()
    one, two = await pool.acquire(), await pool.acquire()
    pool.release(two)
    pool.release(one, ConnectionResetError(104, "reset"))
    assert one.connection.is_closed()
    assert two.connection.is_closed()
    fresh = await pool.acquire()
    assert fresh not in {one, two}
    pool.release(fresh)
    await pool.close()


async def test_a_server_that_is_down_is_told_at_once_and_found_again(own_server: PostgresServer) -> None:
    pool = pool_of(own_server, pool_max=2)
    own_server.stop()
    failure = present(await pool.start())
    assert failure.reason == "unreachable"
    assert pool.down
    for _ in range(3):
        with pytest.raises(ListingFailed, match="cannot be reached"):
            await pool.acquire()
    await asyncio.to_thread(own_server.start)
    await eventually(lambda: not pool.down, _LONG)  # without a request
    held = await pool.acquire()
    assert await held.connection.fetchval("SELECT 7") == 7
    await asyncio.to_thread(own_server.restart)
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, OSError)) as raised:
        await held.connection.fetchval("SELECT 7")
    pool.release(held, raised.value)
    again = await _acquired(pool)
    assert await again.connection.fetchval("SELECT 7") == 7
    pool.release(again)
    await pool.close()


async def test_a_server_that_hangs_is_left_in_time(own_server: PostgresServer) -> None:
    pool = pool_of(own_server, pool_max=1)
    await pool.start()
    held = await pool.acquire()
    own_server.pause()
    patient, pool.settings = pool.settings, pool.settings.model_copy(update={"connect_timeout": 0.2})
    try:
        pool.release(held, asyncpg.InterfaceError("connection is closed"))
        with pytest.raises(ListingFailed) as refused:
            await pool.acquire(asyncio.get_running_loop().time() + _LONG)
        assert refused.value.reason == "timeout"
    finally:
        own_server.resume()
        pool.settings = patient
    again = await _acquired(pool)
    pool.release(again)
    await pool.close()


async def test_who_waits_while_the_server_is_full_gets_what_is_given_back(own_server: PostgresServer) -> None:
    own_server.settings.update({"max_connections": "4", "superuser_reserved_connections": "0"})
    await asyncio.to_thread(own_server.restart)
    others = [await asyncpg.connect(own_server.dsn()) for _ in range(3)]
    try:
        pool = pool_of(own_server, pool_max=4)
        assert await pool.start() is None
        held = await pool.acquire()
        waiting = asyncio.create_task(pool.acquire())
        await eventually(lambda: pool.failure is not None, _LONG)
        assert present(pool.failure).reason == "connections"
        assert not pool.down
        pool.release(held)
        assert await waiting is held
        pool.release(held)
        await pool.close()
        blocked = await asyncpg.connect(own_server.dsn())
        empty = pool_of(own_server, pool_max=4)
        failure = present(await empty.start())
        assert failure.reason == "connections"
        await blocked.close()
        await empty.close()
    finally:
        for other in others:
            await other.close()
        own_server.settings.update({"max_connections": "60", "superuser_reserved_connections": "3"})
        await asyncio.to_thread(own_server.restart)


async def test_what_is_idle_is_probed_replaced_and_let_go(postgres_server: PostgresServer) -> None:
    pool = pool_of(postgres_server, pool_max=3, pool_min=1, pool_idle=0.01, probe=0.01)
    await pool.start()
    held = [await pool.acquire() for _ in range(3)]
    for each in held:
        pool.release(each)
    await eventually(lambda: pool.size == 1, _LONG)
    await pool.close()
    short = pool_of(postgres_server, pool_max=1, pool_lifetime=0.01)
    await short.start()
    first = await short.acquire()
    short.release(first)
    await eventually(lambda: short.opened >= 2, _LONG)
    assert first.connection.is_closed()
    await short.close()


async def test_a_host_that_became_read_only_is_left_for_one_that_writes(
    postgres_server: PostgresServer, own_server: PostgresServer
) -> None:
    hosts = f"127.0.0.1:{own_server.port},127.0.0.1:{postgres_server.port}"
    parameters = ConnectionParameters.parse(f"postgresql://postgres@{hosts}/postgres")
    pool = pool_to(parameters, probe=0.05)
    assert await pool.start() is None
    assert pool.host is not None
    assert pool.host.port == own_server.port
    await asyncio.to_thread(own_server.sql, "ALTER SYSTEM SET default_transaction_read_only = on")
    await asyncio.to_thread(own_server.sql, "SELECT pg_reload_conf()")
    try:
        await eventually(lambda: pool.host is not None and pool.host.port == postgres_server.port, _LONG)
        held = await pool.acquire()
        assert held.host.port == postgres_server.port
        pool.release(held)
    finally:
        await asyncio.to_thread(own_server.sql, "ALTER SYSTEM RESET default_transaction_read_only")
        await asyncio.to_thread(own_server.sql, "SELECT pg_reload_conf()")
        await pool.close()


async def test_a_connection_that_fails_its_check_is_not_used(postgres_server: PostgresServer) -> None:
    good = False

    async def check(connection: Any) -> None:
        assert await connection.fetchval("SHOW default_transaction_read_only") == "on"
        if not good:
            raise ListingFailed("the schema is too old", reason="schema")

    parameters = ConnectionParameters.parse(postgres_server.dsn())
    pool = pool_to(parameters, check=check)
    failure = present(await pool.start())
    assert failure.reason == "schema"
    with pytest.raises(ListingFailed, match="the schema is too old"):
        await pool.acquire()
    good = True
    pool.release(await _acquired(pool))
    await pool.close()


async def test_closing_ends_everything(postgres_server: PostgresServer) -> None:
    pool = pool_of(postgres_server, pool_max=1)
    await pool.start()
    held = await pool.acquire()
    waiting = asyncio.create_task(pool.acquire())
    await eventually(lambda: pool.waiting == 1)
    await pool.close()
    with pytest.raises(ListingFailed, match="shutting down"):
        await waiting
    assert held.connection.is_closed()
    pool.release(held)
    nobody = pool_to(ConnectionParameters.parse(f"postgresql://me@127.0.0.1:{free_port()}/x"))
    await nobody.start()
    await nobody.close()


async def _acquired(pool: PostgresPool) -> PooledConnection:
    """A connection, as soon as one can be acquired."""
    found: list[PooledConnection] = []

    async def taken() -> bool:
        try:
            found.append(await pool.acquire())
        except ListingFailed:
            return False
        return True

    await eventually(taken, _LONG)
    return found[0]


async def _is(counting: Any, number: int) -> bool:
    return bool(await counting == number)
