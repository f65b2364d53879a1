"""The catalogue's file, folder, format and property keys."""

from __future__ import annotations

import glob
import json
import os
import shlex
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from broker_core.counted import counted
from broker_core.plugin_api import Check

if TYPE_CHECKING:
    from broker_core.settings import Settings

__all__ = ["catalog_checks", "opened_to_read"]

_LITTLE_SPACE: Final = 256 * 1024 * 1024

#: Topics with properties that are searched for a key.
_MOST_TOPICS: Final = 50_000


def catalog_checks(settings: Settings) -> Iterator[Check]:
    """Findings about the catalogue's file and folder. It is only opened for reading; a missing one is not made."""
    from broker_core.catalog import CatalogError, is_alone, migration_ahead
    from broker_core.snapshots import StoredSnapshots

    path = Path(os.path.abspath(settings.catalog.path))  # noqa: PTH100 - without its ".."
    folder = path.parent
    if not folder.is_dir():
        yield Check.error("catalog.path", f"{path}: there is no folder {folder}")
        return
    if not os.access(folder, os.W_OK | os.X_OK) and not is_alone(path):
        yield Check.error(
            "catalog.path", f"{path}: the folder cannot be written, where SQLite puts its log beside the file"
        )
        return
    space = os.statvfs(folder)
    if space.f_bavail * space.f_frsize < _LITTLE_SPACE:
        yield Check.warning(
            "catalog.space", f"{folder}: {space.f_bavail * space.f_frsize // 2**20} MiB of the disk are free"
        )
    if settings.catalog.snapshots == "folder":
        problem = StoredSnapshots.beside(path).problem()
        if problem is not None:
            yield Check.warning("catalog.snapshots", f"{problem}; the next starts may be slow")
    if not path.exists():
        yield Check.warning("catalog.path", f"{path} is not there: the server makes it, without topics")
        return
    if not os.access(path, os.R_OK):
        yield Check.error("catalog.path", f"{path} cannot be read by this user")
        return
    try:
        with opened_to_read(path) as connection:
            ahead = migration_ahead(connection, path)
            (topics,) = connection.execute("SELECT count(*) FROM topics").fetchone()
            if is_alone(path) or not os.access(path, os.W_OK):
                yield Check.warning(
                    "catalog.path",
                    f"{path}: {counted(topics, 'topic')}, listed; this user cannot write the "
                    "file, and so create none",
                )
            else:
                yield Check.ok("catalog.path", f"{path}: {counted(topics, 'topic')}")
                if ahead is not None:
                    yield (Check.warning if ahead.has_room else Check.error)("catalog.format", ahead.text)
            yield from _rights(path, settings.catalog.file_mode)
            if topics:
                yield from _property_keys(connection, settings.catalog.property_keys)
    except CatalogError as error:
        yield Check.error("catalog.path", str(error))
    except sqlite3.Error as error:
        yield Check.error("catalog.path", f"{path} is no catalogue, or damaged: {error}")


def opened_to_read(path: Path) -> closing[sqlite3.Connection]:
    """The file, for a block that reads it as it is. ``path`` is absolute. Raises :exc:`sqlite3.Error`."""
    # Without a log beside it no process has it open, and SQLite need not make a log to read it.
    alone = "" if path.with_name(path.name + "-wal").exists() else "&immutable=1"
    return closing(sqlite3.connect(f"{path.as_uri()}?mode=ro{alone}", uri=True, timeout=2))


def _rights(path: Path, meant: int) -> Iterator[Check]:
    """A warning if the file, or a file beside it, may be read by more users than ``catalog.mode`` allows."""
    real = path.resolve()
    log = [real.with_name(real.name + end) for end in ("-wal", "-shm")]
    wide = []
    for file in (real, *log, *sorted(real.parent.glob(f"{glob.escape(real.name)}.format-*.backup*"))):
        with suppress(OSError):
            mode = file.stat().st_mode & 0o777
            if mode & ~meant:
                wide.append((mode, shlex.quote(str(file))))
    if wide:
        yield Check.warning(
            "catalog.mode",
            f"others may use {wide[0][1]} (its mode is {wide[0][0]:04o}), which has the names of all topics and what "
            f"verifies Kafka's passwords: `chmod {meant:04o} {' '.join(file for _, file in wide)}`, or say in "
            "catalog.mode what is meant",
        )


def _property_keys(connection: sqlite3.Connection, keys: Iterable[str]) -> Iterator[Check]:
    rows = connection.execute(
        "SELECT DISTINCT properties FROM (SELECT properties FROM topics WHERE properties IS NOT NULL LIMIT ?)",
        (_MOST_TOPICS,),
    ).fetchall()
    known: set[str] = set().union(*(json.loads(text) for (text,) in rows))
    there = f"there are {', '.join(sorted(known)[:10])}" if known else "no topic has any property"
    for key in keys:
        if key not in known:
            yield Check.warning(
                "catalog.property_keys",
                f"no topic has the property {key!r}, so that a client with one gets nothing; {there}",
            )
