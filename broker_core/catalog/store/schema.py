"""The catalogue's file: its tables, how a connection to it is opened, and which files are refused.

One SQLite database in WAL mode: readers never wait for a writer, and a transaction that is cut short by a crash leaves
nothing behind. ``application_id`` marks the file as ours and ``user_version`` numbers the schema, so that any other
database is refused before it is touched.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path

from broker_core.catalog.errors import CatalogUnusable, sqlite_errors
from broker_core.catalog.store.backup_file import backups_of
from broker_core.catalog.topic_id import new_topic_id, topic_id_text

__all__ = [
    "APPLICATION_ID",
    "SCHEMA_VERSION",
    "STAMPS",
    "check_format",
    "connect",
    "file_identity",
    "format_of",
    "open_catalog_file",
]

APPLICATION_ID = 0x62726F6B  # "brok"
#: The format that this release writes; what became of the earlier ones is in :mod:`.format_migration`.
SCHEMA_VERSION = 2
_OLDEST = 1

#: What tells each version that the log leads from (log_from and all above) from another one with its number.
STAMPS = """CREATE TABLE stamps (
        namespace INTEGER NOT NULL,
        version INTEGER NOT NULL,
        stamp TEXT NOT NULL,
        PRIMARY KEY (namespace, version)
    ) WITHOUT ROWID"""

_PAGE_BYTES = 8192
_SCHEMA = (
    # The catalogue's random id: versions of namespaces compare under the same id only.
    "CREATE TABLE meta (catalog_id TEXT NOT NULL, created INTEGER NOT NULL)",
    # log_from: the log holds the changes of every version above it. log_rows: how many changes that are.
    """CREATE TABLE namespaces (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        version INTEGER NOT NULL,
        log_from INTEGER NOT NULL,
        log_rows INTEGER NOT NULL
    )""",
    # One row a topic. domain: 0 persistent, 1 non-persistent. base: the local name without partition suffix.
    # listed: which names it stands for (broker_core/names/listed_names.py). properties: JSON with sorted keys, NULL
    # for none. created: milliseconds since 1970. BINARY collation: base is in UTF-8 order.
    """CREATE TABLE topics (
        namespace INTEGER NOT NULL,
        domain INTEGER NOT NULL,
        base TEXT NOT NULL,
        listed TEXT NOT NULL,
        topic_id BLOB NOT NULL,
        properties TEXT,
        created INTEGER NOT NULL,
        PRIMARY KEY (namespace, domain, base)
    ) WITHOUT ROWID""",
    """CREATE TABLE changes (
        id INTEGER PRIMARY KEY,
        namespace INTEGER NOT NULL,
        version INTEGER NOT NULL,
        operation TEXT NOT NULL,
        domain INTEGER NOT NULL,
        base TEXT NOT NULL,
        topic_id BLOB NOT NULL,
        listed_before TEXT NOT NULL,
        listed_after TEXT NOT NULL,
        properties_before TEXT,
        properties_after TEXT,
        time INTEGER NOT NULL
    )""",
    "CREATE INDEX changes_by_version ON changes (namespace, version)",
    STAMPS,
)


def connect(path: Path, *, create: bool = False, busy_timeout: float = 30.0) -> sqlite3.Connection:
    """A connection to the file: autocommit, durable commits, usable from any thread (by one at a time).

    ``busy_timeout`` is how long, in seconds, a statement waits for a writer of another process.
    """
    uri = f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
    connection = sqlite3.connect(
        uri,
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=busy_timeout,
        cached_statements=64,
    )
    # FULL: a commit that was reported is on the disk, whatever happens to the machine next.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    return connection


def file_identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from another one that is put into its place; ``None`` where there is none."""
    try:
        status = os.stat(path)  # noqa: PTH116 - for every call of a catalogue
    except OSError:
        return None
    return status.st_dev, status.st_ino


def open_catalog_file(path: Path, *, create: bool, busy_timeout: float = 30.0) -> str:
    """Check that the file is a catalogue, making it where there is none and ``create`` says so; returns its id.

    One of an earlier format is left as it is. Raises :exc:`CatalogUnusable` for a foreign, damaged or newer file, and
    where there is none.
    """
    if not path.parent.is_dir():
        raise CatalogUnusable(f"The catalogue {path} cannot be opened: there is no folder {path.parent}")
    if path.is_dir():
        raise CatalogUnusable(f"The catalogue {path} cannot be opened: it is a folder")
    if not create and not path.exists():
        raise CatalogUnusable(f"There is no catalogue {path}; importing or creating a topic makes it")
    with sqlite_errors(path):
        connection = connect(path, create=create, busy_timeout=busy_timeout)
        try:
            if _is_blank(connection):
                if not create:
                    raise CatalogUnusable(f"{path} is not a catalogue: it is empty")
                _make(connection)
            _check(connection, path)
            (catalog_id,) = connection.execute("SELECT catalog_id FROM meta").fetchone()
            return str(catalog_id)
        finally:
            connection.close()


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return int(connection.execute(f"PRAGMA {name}").fetchone()[0])


def _is_blank(connection: sqlite3.Connection) -> bool:
    """Whether this is a database without anything in it that nobody has claimed."""
    (objects,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return (
        not objects and not _pragma(connection, "application_id") and not _pragma(connection, "user_version")
    )


def _make(connection: sqlite3.Connection) -> None:
    """Make the tables; of two processes that do so at once, one finds them made."""
    connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN EXCLUSIVE")
    if _is_blank(connection):
        for statement in _SCHEMA:
            connection.execute(statement)
        catalog_id = topic_id_text(new_topic_id())
        connection.execute("INSERT INTO meta VALUES (?, ?)", (catalog_id, time.time_ns() // 1_000_000))
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")


def format_of(connection: sqlite3.Connection) -> int:
    """The number of the format of the file that a connection is to."""
    return _pragma(connection, "user_version")


def check_format(connection: sqlite3.Connection, path: Path) -> None:
    """Raise :exc:`CatalogUnusable` unless the file is a catalogue of this release or of one before."""
    if _pragma(connection, "application_id") != APPLICATION_ID:
        raise CatalogUnusable(f"{path} is not a catalogue: it is an SQLite database of something else")
    version = format_of(connection)
    if version > SCHEMA_VERSION:
        copies = backups_of(path, SCHEMA_VERSION)
        back = (
            f"or move the copy that it kept, {copies[-1]}, to its place"
            if copies
            else "or import the topics anew"
        )
        raise CatalogUnusable(
            f"The catalogue {path} has format {version}, of a newer release; this one knows {SCHEMA_VERSION} at most. "
            f"Nothing was changed: use the newer release, {back}"
        )
    if version < _OLDEST:
        raise CatalogUnusable(f"The catalogue {path} is damaged: no release made a format {version}")


def _check(connection: sqlite3.Connection, path: Path) -> None:
    check_format(connection, path)
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    needed = {"meta", "namespaces", "topics", "changes"}
    if format_of(connection) == SCHEMA_VERSION:
        needed.add("stamps")
    if missing := needed - tables:
        raise CatalogUnusable(f"The catalogue {path} is damaged: it lacks the table {min(missing)}")
    if connection.execute("SELECT count(*) FROM meta").fetchone() != (1,):
        raise CatalogUnusable(f"The catalogue {path} is damaged: it has no id")
