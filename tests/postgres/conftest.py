"""A real PostgreSQL server for each test process, and databases on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.support.postgres_server import Database, PostgresServer


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A running server, shared by all tests of the process. Tests must not stop it or change its settings.

    A test that stops, kills or fills a server starts its own: ``with PostgresServer() as server``.
    """
    with PostgresServer() as server:
        yield server


@pytest.fixture
def database(postgres_server: PostgresServer) -> Iterator[Database]:
    """A database of the test's own, with the newest schema and without topics."""
    made = postgres_server.create_database()
    yield made
    postgres_server.drop_database(made.name)


@pytest.fixture
def empty_database(postgres_server: PostgresServer) -> Iterator[Database]:
    """A database of the test's own, without a schema."""
    made = postgres_server.create_database(migrated=False)
    yield made
    postgres_server.drop_database(made.name)


@pytest.fixture
async def connection(database: Database) -> AsyncIterator[Any]:
    """An asyncpg connection to ``database``, as the superuser."""
    connected = await database.connect()
    yield connected
    await connected.close()
