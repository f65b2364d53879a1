"""The connection of the commands that fill the database, and the texts of its failures."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from broker_core.plugin_cli import plugin_settings, say
from broker_core_postgres.connect import connected, failure_text, parameters_of, server_message
from broker_core_postgres.fill import FillingFailed
from broker_core_postgres.schema import check_schema, how_to_go_back, migrate_if_older
from broker_core_postgres.settings import PostgresSettings

__all__ = ["writing_connection", "writing_failure"]

#: Texts for writers, for SQLSTATEs whose usual text is about listings.
_FOR_WRITERS: Final = {
    "42501": "the user may not write the topics: grant it the role broker_core_feeder",
    "57014": "PostgreSQL ended the statement: a time limit of the server's, or an administrator",
    "23514": "PostgreSQL refused a value",
}


@asynccontextmanager
async def writing_connection(dsn: str | None, *, writes: bool = True) -> AsyncIterator[Any]:
    """A connection to the database that is filled: ``--dsn``, or ``listen_dsn`` or ``dsn`` of the settings.

    ``listen_dsn`` comes before ``dsn``, which may be a pgbouncer: temporary tables need a session. An older schema is
    migrated for a command that ``writes``; otherwise it must fit. PostgreSQL's errors are raised as
    :exc:`FillingFailed`. Settings with a ``relation`` are refused, since listings do not read what would be written.
    """
    settings = plugin_settings("postgres")
    if settings.relation is not None:
        raise FillingFailed(
            f"The settings have relation = {json.dumps(settings.relation)}, which listings read and its owner fills: "
            "this command fills broker_core.topics, and does not concern it: give it settings without a relation"
        )
    async with connected(
        parameters_of(settings, dsn if dsn is not None else settings.listen_dsn),
        application_name="broker-core fill",
        failed=lambda error: FillingFailed(writing_failure(error)),
    ) as connection:
        # Not the database's default: after waiting for another writer, its changes must be visible.
        await connection.execute("SET default_transaction_isolation = 'read committed'")
        if writes:
            await _bring_forward(connection, settings)
        else:
            await check_schema(connection)
        yield connection


async def _bring_forward(connection: Any, settings: PostgresSettings) -> None:
    done = await migrate_if_older(
        connection,
        allowed=settings.auto_migrate,
        waiting=lambda: say("a migration is under way: waiting for it"),
    )
    if done is not None and done.applied:
        say(f"migrated the database to schema {done.version}: {how_to_go_back(done)}")


def writing_failure(error: BaseException) -> str:
    """The text of a database failure for commands that fill the database."""
    state = getattr(error, "sqlstate", None)
    own = _FOR_WRITERS.get(state or "")
    return failure_text(error) if own is None else f"{own}: {server_message(error)}"
