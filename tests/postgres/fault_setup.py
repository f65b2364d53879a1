"""A broker in front of a failing database, and checks that clients never get a part of a listing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from broker_core.client import ServerRefused
from broker_core.testing import Server, serve
from broker_core_postgres.plugin import PostgresPlugin
from broker_core_postgres.service import PostgresService
from tests.support.eventually import eventually
from tests.support.narrowed import present
from tests.support.postgres_server import Database

__all__ = [
    "LONG",
    "NAMESPACE",
    "TOPICS",
    "Serving",
    "fill_topics",
    "is_listed",
    "refused",
    "serving",
]

#: Seconds that a loaded machine may take.
LONG = 60.0
NAMESPACE = "public/default"
TOPICS = [f"persistent://{NAMESPACE}/topic-{number:03}" for number in range(200)]


class Serving:
    """A broker with the plugin."""

    def __init__(self, server: Server, plugin: PostgresPlugin) -> None:
        self.server = server
        self.plugin = plugin

    @property
    def service(self) -> PostgresService:
        return present(self.plugin.service)

    async def list(self, pattern: str | None = None, **options: Any) -> list[str]:
        return list((await self.server.list(NAMESPACE, pattern=pattern, **options)).topics)

    def problems(self) -> Sequence[str]:
        """The problems that ``GET /plugins`` shows."""
        (described,) = self.server.broker.pipeline.dispatcher.describe_without_errors()
        assert (described["state"] == "error") == bool(described["problems"])
        problems: Sequence[str] = described["problems"]
        return problems

    def metric(self, name: str, **labels: str) -> float:
        """The value of one of the plugin's metrics, 0 if it has none yet."""
        registry = CollectorRegistry()
        registry.register(self.service.metrics)
        return registry.get_sample_value(f"broker_core_postgres_{name}", labels) or 0.0


@asynccontextmanager
async def serving(dsn: str, **table: Any) -> AsyncIterator[Serving]:
    """A broker with this plugin alone. ``table`` is ``[plugins.postgres]``, beside ``dsn``.

    No listing is held: tests delete by other ways than one by one.
    """
    plugin = PostgresPlugin()
    settings: dict[str, dict[str, Any]] = {
        "shrink_guard": {"enabled": False},
        "plugins": {"enabled": ["postgres"], "postgres": {"dsn": dsn, "deadline": "60s", **table}},
    }
    async with serve({"postgres": plugin}, settings=settings) as server:
        yield Serving(server, plugin)


def fill_topics(database: Database) -> None:
    """Insert the 200 topics of these tests, as version 1."""
    database.sql(
        "INSERT INTO broker_core.topics (namespace, local_name) "
        f"SELECT '{NAMESPACE}', 'topic-' || lpad(n::text, 3, '0') FROM generate_series(0, 199) n"
    )


async def refused(broker: Serving, said: str, **options: Any) -> ServerRefused:
    """Expect a listing to fail with a text that matches, and return the error."""
    with pytest.raises(ServerRefused, match=said) as raised:
        await broker.list(**options)
    return raised.value


async def is_listed(broker: Serving, **options: Any) -> None:
    """Wait until the listing is whole again. Errors before are fine; any other list fails the test."""

    async def whole() -> bool:
        try:
            listed = await broker.list(**options)
        except ServerRefused:
            await asyncio.sleep(0)
            return False
        if sorted(listed) != TOPICS:
            pytest.fail(f"{len(listed)} topics were listed instead of {len(TOPICS)} or an error")
        return True

    await eventually(whole, LONG, what="the listing is whole again")
