"""The connection of the commands that fill the database, and the texts of its failures."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from broker_core.errors import BrokerCoreError
from broker_core.plugin_cli import plugin_settings, say
from broker_core_postgres.connect import (
    DRIVER_ERRORS,
    close_connection,
    connect,
    failure_of,
    parameters_of,
    server_message,
)
from broker_core_postgres.fill import FillingFailed
from broker_core_postgres.schema import check_schema, how_to_go_back, migrate_if_older

__all__ = [
    "connect_to_write",
    "run_command",
    "writing_connection",
    "writing_failure",
]

T = TypeVar("T")

#: Texts for writers, for SQLSTATEs whose usual text is about listings.
_FOR_WRITERS: Final = {
    "42501": "the user may not write the topics: grant it the role broker_core_feeder",
    "57014": "PostgreSQL ended the statement: a time limit of the server's, or an administrator",
    "23514": "PostgreSQL refused a value",
}


async def connect_to_write(dsn: str | None) -> Any:
    """Connect to the database as :func:`writing_connection` does, without any check."""
    settings = plugin_settings("postgres")
    parameters = parameters_of(settings, dsn if dsn is not None else settings.listen_dsn)
    connection = await connect(parameters, application_name="broker-core fill")
    # Not the database's default: after waiting for another writer, its changes must be visible.
    await connection.execute("SET default_transaction_isolation = 'read committed'")
    return connection


@asynccontextmanager
async def writing_connection(dsn: str | None, *, writes: bool = True) -> AsyncIterator[Any]:
    """A connection to the database that is filled: ``--dsn``, or ``listen_dsn`` or ``dsn`` of the settings.

    ``listen_dsn`` comes before ``dsn``, which may be a pgbouncer: temporary tables need a session. An older schema is
    migrated for a command that ``writes``; otherwise it must fit. PostgreSQL's errors are raised as
    :exc:`FillingFailed`. Settings with a ``relation`` are refused, since listings do not read what would be written.
    """
    relation = plugin_settings("postgres").relation
    if relation is not None:
        raise FillingFailed(
            f"The settings have relation = {json.dumps(relation)}, which listings read and its owner fills: this "
            "command is about broker_core.topics, and does not concern it (settings without a relation do)"
        )
    connection = await connect_to_write(dsn)
    try:
        if writes:
            await _bring_forward(connection)
        else:
            await check_schema(connection)
        yield connection
    except DRIVER_ERRORS as error:
        if isinstance(error, OSError) and error.filename is not None:  # a file's error, not the connection's
            raise
        raise FillingFailed(writing_failure(error)) from error
    finally:
        await close_connection(connection)


async def _bring_forward(connection: Any) -> None:
    done = await migrate_if_older(
        connection,
        allowed=plugin_settings("postgres").auto_migrate,
        waiting=lambda: say("a migration is under way: waiting for it"),
    )
    if done is not None and done.applied:
        say(f"migrated the database to schema {done.version}: {how_to_go_back(done)}")


def writing_failure(error: BaseException) -> str:
    """The text of a database failure for commands that fill the database."""
    state = getattr(error, "sqlstate", None)
    own = _FOR_WRITERS.get(state or "")
    return f"{own or failure_of(error).message}: {server_message(error)}"


def run_command(function: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a command's coroutine. Ctrl-C cancels it and rolls back."""
    try:
        return asyncio.run(function())
    except BaseExceptionGroup as group:
        found = group.exceptions[0]
        raise (found if isinstance(found, BrokerCoreError) else group) from None
