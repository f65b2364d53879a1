"""Migration of an earlier release's file: under a lock, after a copy was made, in one transaction.

Formats are numbered (``user_version`` of the database):

1. Versions of namespaces without stamps, or with: releases of both kinds called it 1.
2. Each version that the log leads from has a stamp.
3. Topics are found by their ids, and have configs and a number of replicas; ids of deleted topics are kept for a while;
   Kafka's access control lists and users have tables.

A file of an earlier format that is only read stays as it is: a connection to it gets temporary tables and views for
what is missing. A writer migrates it first.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from broker_core.catalog.catalog_errors import CatalogBusy, sqlite_errors
from broker_core.catalog.store.backup_file import back_up, room_for
from broker_core.catalog.store.catalog_file import check_format, connect, format_of
from broker_core.catalog.store.schema import (
    BY_TOPIC_ID,
    KAFKA_TABLES,
    SCHEMA_VERSION,
    STAMPS,
)

__all__ = [
    "Migration",
    "MigrationAhead",
    "bring_forward_for_a_dry_run",
    "migrate_file",
    "migration_ahead",
    "show_as_current",
    "shows_as_current",
]

#: Seconds to wait for another process that migrates the file, or writes it: copying a large file takes long.
_PATIENCE: Final = 600.0
_STEP: Final = 1.0

#: The statements that bring a file from a format to the next one.
_FORWARD: Final = {
    1: (
        STAMPS.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS"),
        """INSERT INTO stamps SELECT id, version, lower(hex(randomblob(12))) FROM namespaces n WHERE version > 0
            AND NOT EXISTS (SELECT 1 FROM stamps s WHERE s.namespace = n.id AND s.version = n.version)""",
    ),
    2: (
        "ALTER TABLE topics ADD COLUMN configs TEXT",
        "ALTER TABLE topics ADD COLUMN replication INTEGER",
        "ALTER TABLE changes ADD COLUMN configs_before TEXT",
        "ALTER TABLE changes ADD COLUMN configs_after TEXT",
        BY_TOPIC_ID,
        *KAFKA_TABLES.values(),
    ),
}
#: The views as which tables of an earlier format are read.
_VIEWS: Final = {
    "topics": "CREATE TEMPORARY VIEW topics AS SELECT namespace, domain, base, listed, topic_id, properties, created,"
    " NULL AS configs, NULL AS replication FROM main.topics",
    "changes": "CREATE TEMPORARY VIEW changes AS SELECT id, namespace, version, operation, domain, base, topic_id,"
    " listed_before, listed_after, properties_before, properties_after, time, NULL AS configs_before,"
    " NULL AS configs_after FROM main.changes",
}


@dataclass(frozen=True, slots=True)
class Migration:
    """A finished migration of a file from one format to another; ``backup`` is the file as it was before."""

    path: Path
    before: int
    after: int
    backup: Path

    @property
    def text(self) -> str:
        """One line about the migration, with the way back."""
        return (
            f"migrated the catalogue {self.path} from format {self.before} to {self.after}; as it was, it is kept in "
            f"{self.backup}. To go back to the release before: stop all that use the catalogue, remove "
            f"{self.path.name}-wal and {self.path.name}-shm beside it, and move that copy to its place"
        )


@dataclass(frozen=True, slots=True)
class MigrationAhead:
    """The migration that a writer must do first; ``needed`` and ``free`` are bytes of the file's folder."""

    before: int
    after: int
    needed: int
    free: int

    @property
    def has_room(self) -> bool:
        """Whether there is room for the copy that is kept."""
        return self.free >= self.needed

    @property
    def text(self) -> str:
        """One line about the migration."""
        does = f"the server migrates it from format {self.before} to {self.after} at its start"
        if self.has_room:
            return f"it is of an earlier release: {does}, and keeps a copy of it beside it ({self.needed // 2**20} MiB)"
        return (
            f"it is of an earlier release: {does}, which takes {self.needed:,} bytes for a copy of it; "
            f"{self.free:,} are free in its folder"
        )


def migration_ahead(connection: sqlite3.Connection, path: Path) -> MigrationAhead | None:
    """The migration that a connection's file needs, if any; nothing is changed.

    Raises :exc:`~broker_core.catalog.CatalogUnusable` for a file that is not a catalogue, or of a newer release.
    """
    check_format(connection, path)
    before = format_of(connection)
    return None if before == SCHEMA_VERSION else MigrationAhead(before, SCHEMA_VERSION, *room_for(path))


def migrate_file(path: Path, *, patience: float = _PATIENCE) -> Migration | None:
    """Bring a catalogue to this release's format; ``None`` if it has it already.

    If several processes try at once, one does it and the others wait, for ``patience`` seconds at most. A crash at any
    moment leaves the file in the old or the new format. Raises :exc:`~broker_core.catalog.CatalogError` if no copy of
    it can be made, and :exc:`CatalogBusy`; then the file is as it was.
    """
    with sqlite_errors(path), closing(connect(path, busy_timeout=_STEP)) as connection:
        check_format(connection, path)
        if format_of(connection) == SCHEMA_VERSION or not _locked(connection, path, patience):
            return None
        try:
            before = format_of(connection)
            with closing(connect(path, busy_timeout=_STEP)) as reader:
                # We hold the lock of writers: another connection sees the last commit, and there is no further one.
                backup = back_up(path, reader, before)
            try:
                _bring_forward(connection, before)
                connection.execute("COMMIT")
            except sqlite3.Error:
                backup.unlink(missing_ok=True)  # of a file that is as it was
                raise
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
    return Migration(path, before, SCHEMA_VERSION, backup)


def _locked(connection: sqlite3.Connection, path: Path, patience: float) -> bool:
    """Begin a transaction that writes; false if the file came to this release's format meanwhile."""
    until = time.monotonic() + patience
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if not (getattr(error, "sqlite_errorname", "") or "").startswith(
                ("SQLITE_BUSY", "SQLITE_LOCKED")
            ):
                raise
            if time.monotonic() > until:
                raise CatalogBusy(
                    f"The catalogue {path} is of an earlier release, and is being written by another process: it is "
                    "migrated when that is done; try again then"
                ) from error
        else:
            if format_of(connection) != SCHEMA_VERSION:
                return True
            connection.execute("ROLLBACK")
            return False


def _bring_forward(connection: sqlite3.Connection, before: int) -> None:
    for version in range(before, SCHEMA_VERSION):
        for statement in _FORWARD[version]:
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def bring_forward_for_a_dry_run(connection: sqlite3.Connection) -> None:
    """Bring a file of an earlier format to the current one, within a transaction that will be rolled back."""
    before = format_of(connection)
    if before == SCHEMA_VERSION:
        return
    for kind, name in connection.execute("SELECT type, name FROM temp.sqlite_master").fetchall():
        if name in _VIEWS or name in KAFKA_TABLES or name == "stamps":
            connection.execute(f"DROP {kind} temp.{name}")
    _bring_forward(connection, before)


def show_as_current(connection: sqlite3.Connection) -> None:
    """Let a connection read a file of an earlier format as if it had the current one; the file is not changed."""
    if format_of(connection) == SCHEMA_VERSION:
        return
    known = "SELECT 1 FROM main.sqlite_master WHERE type = 'table' AND name = 'stamps'"
    stamps = () if connection.execute(known).fetchone() else (STAMPS,)
    for table in (*stamps, *KAFKA_TABLES.values()):
        connection.execute(table.replace("CREATE TABLE", "CREATE TEMPORARY TABLE"))
    for view in _VIEWS.values():
        connection.execute(view)


def shows_as_current(connection: sqlite3.Connection) -> bool:
    """Whether :func:`show_as_current` had something to do for this connection."""
    return connection.execute("SELECT 1 FROM temp.sqlite_master WHERE name = 'topics'").fetchone() is not None
