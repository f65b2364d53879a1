"""Automatic migration: a server or a writing command that finds an older schema migrates it, if its user may.

A database without a schema is not touched: it may be the wrong one, and the first migration decides who owns the
schema. That is left to the command ``broker-core postgres migrate``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final, Literal

import asyncpg
import structlog

from broker_core_postgres.connect import (
    CannotConnect,
    connected,
    parameters_of,
    server_message,
)
from broker_core_postgres.connect.libpq import ConnectionParameters, DsnError
from broker_core_postgres.schema.migration_lock import PATIENCE, MigrationFailed
from broker_core_postgres.schema.roles import schema_owner
from broker_core_postgres.schema.run_migrations import MigrationResult, migrate
from broker_core_postgres.schema.schema_version import (
    MIGRATE_COMMAND,
    SchemaMismatch,
    SchemaTooOld,
    check_applied,
    migrations,
    read_applied,
)
from broker_core_postgres.schema.trigram_index import read_trigram_index
from broker_core_postgres.settings import PostgresSettings

__all__ = ["AutoMigration", "how_to_go_back", "migrate_if_older"]

_log = structlog.get_logger(__name__)

#: Seconds that a server waits until the tables are free.
_SERVER_PATIENCE: Final = 30.0
#: Seconds until a server retries a failed migration.
_AGAIN: Final = 30.0


def how_to_go_back(done: MigrationResult) -> str:
    """The way back after a migration, as a text for operators."""
    if done.backup is None:
        return "no backup was made"
    return (
        f"the rows of schema {done.backup.number} are kept in the schema {done.backup.schema}; to go back, stop what "
        f"uses the database, run `{MIGRATE_COMMAND} --back` with this version, and start the older one"
    )


async def migrate_if_older(
    connection: Any,
    *,
    allowed: bool = True,
    reader: bool = False,
    waiting: Callable[[], None] | None = None,
    patience: float = PATIENCE,
) -> MigrationResult | None:
    """Migrate an older schema. Returns ``None`` if there was nothing to do.

    Raises :exc:`SchemaMismatch`, with the command to run and its user, if the schema is newer, missing, or older and
    not migrated because that is not ``allowed`` or the user may not.
    """
    applied = await read_applied(connection)
    try:
        check_applied(applied, reader=reader)
    except SchemaTooOld as old:
        if not allowed:
            raise SchemaTooOld(f"{old} (auto_migrate is off)", old.found) from None
        # Extensions and indexes that are missing are left to the command.
        trigrams: Literal["auto", "off"] = "off" if await read_trigram_index(connection) is None else "auto"
        try:
            return await migrate(connection, trigrams=trigrams, waiting=waiting, patience=patience)
        except (MigrationFailed, asyncpg.PostgresError) as error:
            reason = str(error) if isinstance(error, MigrationFailed) else server_message(error)
            owner = await schema_owner(connection)
            raise SchemaTooOld(
                f"The database has schema {old.found}, and schema {migrations()[-1].number} is needed. It was not "
                f"migrated by itself: {reason}. Run `{MIGRATE_COMMAND} --dsn URL` as a user who may create in the "
                f"database and is a member of {owner}",
                old.found,
            ) from error
    return None


class AutoMigration:
    """The automatic migration of a server, at its start and whenever it finds an older schema. For the event loop."""

    def __init__(self, settings: PostgresSettings) -> None:
        self._settings = settings
        self._task: asyncio.Task[None] | None = None
        self._ended = float("-inf")
        #: The error of the last attempt.
        self.failure: SchemaMismatch | None = None

    @property
    def under_way(self) -> bool:
        """Whether a migration, or its check, is running."""
        return self._task is not None

    def parameters(self) -> ConnectionParameters | None:
        """The server itself; ``None`` if only a pooler is known, or migrating is not allowed.

        The lock of a migration spans several transactions, so it needs a session. Raises :exc:`DsnError`.
        """
        settings = self._settings
        if not settings.auto_migrate or settings.relation is not None:
            return None
        if settings.listen_dsn is None and settings.prepared_statements == "off":
            return None
        return parameters_of(settings, settings.listen_dsn)

    def start(self) -> asyncio.Task[None] | None:
        """Start a migration. Returns ``None`` if that is not allowed, or an attempt failed just now."""
        loop = asyncio.get_running_loop()
        if self._task is None and loop.time() >= self._ended + _AGAIN:
            try:
                parameters = self.parameters()
            except DsnError:  # the pool reports it
                return None
            if parameters is not None:
                self._task = loop.create_task(self._run(parameters), name="postgres-migration")
        return self._task

    async def close(self) -> None:
        """Cancel a running migration: its transaction is rolled back."""
        task = self._task
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _run(self, parameters: ConnectionParameters) -> None:
        try:
            async with connected(
                parameters,
                application_name="broker-core migrate",
                failed=lambda error: MigrationFailed(server_message(error)),
                timeout=self._settings.connect_timeout,
            ) as connection:
                done = await migrate_if_older(connection, reader=True, patience=_SERVER_PATIENCE)
        except SchemaMismatch as mismatch:
            self.failure = mismatch
            _log.error("the schema of PostgreSQL does not fit", error=str(mismatch))
        except CannotConnect:  # the pool reports it, or the listener at an address of its own
            pass
        except MigrationFailed as error:
            _log.info("PostgreSQL was not looked at for its schema", error=str(error))
        else:
            self.failure = None
            if done is not None and done.applied:
                _log.warning(
                    f"migrated PostgreSQL to schema {done.version}: {how_to_go_back(done)}",
                    applied=done.applied,
                )
        finally:
            self._task = None
            self._ended = asyncio.get_running_loop().time()
