"""Set-up for tests of mirrors: a simulated cluster as the source, and the names that the database has."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from broker_core_postgres.fill.sync.cluster_source import ClusterSource
from broker_core_postgres.fill.sync.pulsar_admin import AdminAddress, PulsarAdmin
from broker_core_postgres.fill.sync.retry import Retry
from tests.support.admin_server import AdminServer

__all__ = ["listed", "source_of"]


@asynccontextmanager
async def source_of(server: AdminServer, **options: Any) -> AsyncIterator[ClusterSource]:
    """The cluster as a source, with short waits between tries."""
    async with PulsarAdmin(AdminAddress(server.url), retry=Retry(tries=2, first=0.001)) as admin:
        yield ClusterSource(admin, **options)


async def listed(connection: Any) -> dict[str, dict[str, str]]:
    """All names of the database, with their properties."""
    rows = await connection.fetch(
        "SELECT domain || '://' || namespace || '/' || local_name, properties::text FROM broker_core.topics"
    )
    return {name: json.loads(text) for name, text in rows}
