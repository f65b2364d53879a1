"""The identity of a server, and a new one after a promotion."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from broker_core_postgres.connect.server_identity import ServerIdentity
from tests.support.narrowed import present
from tests.support.postgres_server import PostgresServer


@pytest.fixture
async def connection(postgres_server: PostgresServer) -> AsyncIterator[Any]:
    opened = await asyncpg.connect(postgres_server.dsn())
    yield opened
    await opened.close()


async def test_the_same_server_stays_the_same(connection: Any, postgres_server: PostgresServer) -> None:
    reports: list[None] = []
    identity = ServerIdentity(lambda: reports.append(None))
    await identity.check(connection)
    first = present(identity.known)
    assert first.endswith("/00000001")
    other = await asyncpg.connect(postgres_server.dsn())
    await identity.check(other)
    await other.close()
    assert (identity.known, reports) == (first, [])


async def test_another_history_is_reported(connection: Any) -> None:
    reports: list[None] = []
    identity = ServerIdentity(lambda: reports.append(None))
    identity.known = "1/00000001"
    await identity.check(connection)
    await identity.check(connection)
    assert len(reports) == 1


async def test_a_server_that_does_not_tell_is_taken_for_the_same(connection: Any) -> None:
    await connection.execute("CREATE ROLE unprivileged")
    await connection.execute("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
    await connection.execute("SET ROLE unprivileged")
    try:
        reports: list[None] = []
        identity = ServerIdentity(lambda: reports.append(None))
        identity.known = "1/00000001"
        await identity.check(connection)
        assert (identity.known, reports) == ("1/00000001", [])
    finally:
        await connection.execute("RESET ROLE")
        await connection.execute("GRANT EXECUTE ON FUNCTION pg_control_system() TO PUBLIC")
        await connection.execute("DROP ROLE unprivileged")
