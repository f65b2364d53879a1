"""A lister of a database, rows for it, and pages."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from broker_core.servers.pulsar import PulsarOptions
from broker_core.settings import PulsarSettings
from broker_core_postgres.changes.version_history import VersionHistory
from broker_core_postgres.connect.server_pools import ServerPools
from broker_core_postgres.listing.lister import PostgresLister
from broker_core_postgres.listing.pages import NamesPage
from broker_core_postgres.listing.query_metrics import QueryMetrics
from broker_core_postgres.service import SESSION
from broker_core_postgres.settings import PostgresSettings
from tests.support.postgres_server import Database

__all__ = ["QUIET", "Row", "fill", "opened_lister", "page"]

#: No PINGs: slow tests with clients that only read answers would be disconnected.
QUIET = PulsarOptions(PulsarSettings(keep_alive=3600))

#: Domain, local name, properties.
Row = tuple[str, str, Mapping[str, str]]


async def fill(database: Database, namespace: str, rows: Iterable[Row]) -> None:
    """Insert rows as the superuser."""
    async with database.connected() as connection:
        await connection.executemany(
            "INSERT INTO broker_core.topics (namespace, domain, local_name, properties) VALUES ($1, $2, $3, $4)",
            [(namespace, domain, local, json.dumps(dict(properties))) for domain, local, properties in rows],
        )


def page(*names: str, other: tuple[str, ...] = (), counted: int | None = None) -> NamesPage:
    texts = ["".join(f"/{name}" for name in each).encode() for each in (names, other)]
    return NamesPage(len(names) + len(other) if counted is None else counted, sum(map(len, texts)), *texts)


@asynccontextmanager
async def opened_lister(database: Database, **table: Any) -> AsyncIterator[PostgresLister]:
    """A lister with the plugin's settings."""
    settings = PostgresSettings(dsn=database.dsn, **table)
    server_pools = ServerPools(settings, session_settings=SESSION)
    lister = PostgresLister(
        server_pools,
        settings,
        QueryMetrics(),
        VersionHistory(),
    )
    try:
        assert await server_pools.start() is None
        yield lister
    finally:
        lister.close()
        await server_pools.close()
