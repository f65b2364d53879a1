"""Opening the catalogue's file: making a connection, and refusing other files.

One SQLite database in WAL mode: readers never wait for a writer, and a transaction that is cut short by a crash leaves
nothing behind.

Reading needs a log and shared memory beside the file. If this user cannot make them, or would own them and so keep the
file's owner from writing, a file without a log is read *alone*: nothing is made, and each read compares the file with
its state when it was opened. A writer makes a log before anything else, which reveals it.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

from broker_core.catalog.catalog_errors import CatalogUnusable, sqlite_errors
from broker_core.catalog.store.backup_file import backups_of
from broker_core.catalog.store.schema import (
    APPLICATION_ID,
    KAFKA_TABLES,
    SCHEMA_VERSION,
    is_blank,
    make_tables,
    pragma,
)

__all__ = [
    "NEW_MODE",
    "Identity",
    "check_format",
    "connect",
    "file_identity",
    "format_of",
    "is_alone",
    "open_catalog_file",
]

#: Identifies a file, or one state of a file that is read alone.
Identity: TypeAlias = tuple[int, ...]

#: The rights of a new file: it has the names of all topics, and keys that verify passwords.
NEW_MODE: Final = 0o600
#: Bytes of a page of its database.
_PAGE_BYTES: Final = 8192
#: The first format that a release made.
_OLDEST = 1
#: Seconds after which a write has a later time than one before: more than a tick of the system's clock.
_TICK: Final = 0.05


def connect(
    path: Path, *, create: bool = False, alone: bool = False, busy_timeout: float = 30.0
) -> sqlite3.Connection:
    """A connection to the file: autocommit, durable commits, usable from any thread (by one at a time).

    ``busy_timeout`` is how long, in seconds, a statement waits for a writer of another process. A connection that reads
    ``alone`` sees the file, and no log.
    """
    mode = "ro&immutable=1" if alone else "rwc" if create else "rw"
    uri = f"{path.absolute().as_uri()}?mode={mode}"
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


def file_identity(path: Path | str, *, alone: bool = False) -> Identity | None:
    """The identity of a file (device, inode), to notice its replacement; ``None`` if there is no file.

    For one that is read ``alone`` also its size and times, and whether it has a log.
    """
    try:
        status = os.stat(path)  # noqa: PTH116 - for every call of a catalogue
    except OSError:
        return None
    if not alone:
        return status.st_dev, status.st_ino
    state = status.st_size, status.st_mtime_ns, status.st_ctime_ns
    return status.st_dev, status.st_ino, *state, _has_log(path)


def is_alone(path: Path) -> bool:
    """Whether a file is to be read alone. Waits until a write of just now would show in its time."""
    real = Path(os.path.realpath(path))
    if not real.is_file() or (os.access(real, os.W_OK) and os.access(real.parent, os.W_OK | os.X_OK)):
        return False
    since = time.time() - real.stat().st_mtime
    if 0 <= since < _TICK:
        time.sleep(_TICK - since)
    return not _has_log(real)


def _has_log(path: Path | str) -> bool:
    """Whether there may be changes that are only in a log, which is empty without any."""
    real = os.path.realpath(path)
    with suppress(OSError):
        if os.stat(f"{real}-wal").st_size:  # noqa: PTH116
            return True
    return os.path.lexists(f"{real}-journal")


def open_catalog_file(
    path: Path, *, create: bool, mode: int = NEW_MODE, alone: bool = False, busy_timeout: float = 30.0
) -> str:
    """Check that the file is a catalogue, making it if there is none and ``create`` is set; returns its id.

    ``mode`` has the rights of a new file. SQLite gives the file's rights to its log and its shared memory.
    A file of an earlier format is left as it is. ``alone`` is as for :func:`connect`. Raises :exc:`CatalogUnusable` for
    a foreign, damaged or newer file, and if there is none.
    """
    if not path.parent.is_dir():
        raise CatalogUnusable(f"The catalogue {path} cannot be opened: there is no folder {path.parent}")
    if path.is_dir():
        raise CatalogUnusable(f"The catalogue {path} cannot be opened: it is a folder")
    if not create and not path.exists():
        raise CatalogUnusable(f"There is no catalogue {path}; importing or creating a topic makes it")
    if create:
        _make(path, mode)
    with sqlite_errors(path):
        connection = connect(path, create=create, alone=alone, busy_timeout=busy_timeout)
        try:
            if is_blank(connection):
                if not create:
                    raise CatalogUnusable(f"{path} is not a catalogue: it is empty")
                connection.execute(f"PRAGMA page_size = {_PAGE_BYTES}")
                make_tables(connection)
            _check(connection, path)
            (catalog_id,) = connection.execute("SELECT catalog_id FROM meta").fetchone()
            return str(catalog_id)
        finally:
            connection.close()


def _make(path: Path, mode: int) -> None:
    """Make an empty file with the given rights if there is none. SQLite reports failures when it opens the file."""
    with suppress(OSError):
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        descriptor = os.open(path.resolve(), flags, 0o600)
        try:
            os.fchmod(descriptor, mode)  # whatever the umask
        finally:
            os.close(descriptor)


def format_of(connection: sqlite3.Connection) -> int:
    """The format number of a connection's file."""
    return pragma(connection, "user_version")


def check_format(connection: sqlite3.Connection, path: Path) -> None:
    """Raise :exc:`CatalogUnusable` unless the file is a catalogue of this release or of one before."""
    if pragma(connection, "application_id") != APPLICATION_ID:
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
        needed |= {"stamps", *KAFKA_TABLES}
    if missing := needed - tables:
        raise CatalogUnusable(f"The catalogue {path} is damaged: it lacks the table {min(missing)}")
    if connection.execute("SELECT count(*) FROM meta").fetchone() != (1,):
        raise CatalogUnusable(f"The catalogue {path} is damaged: it has no id")
