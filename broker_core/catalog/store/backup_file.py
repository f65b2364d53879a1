"""A backup of the catalogue's file, beside it, before a migration: complete, and never over an existing file."""

from __future__ import annotations

import filecmp
import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from broker_core.catalog.catalog_errors import CatalogError

__all__ = ["back_up", "backups_of", "room_for"]

#: Bytes besides the copy, for what the migration itself writes.
_MARGIN: Final = 16 * 1024 * 1024
_PAGES_A_STEP: Final = 4096  # between two steps an interrupt from the keyboard is noticed


def backups_of(path: Path, version: int) -> list[Path]:
    """The copies of a catalogue in a format that are beside it, the newest last."""
    real = Path(os.path.realpath(path))
    found: list[Path] = []
    while (name := _numbered(real, version, len(found) + 1)).exists():
        found.append(name)
    return found


def room_for(path: Path) -> tuple[int, int]:
    """Bytes that a migration needs in the file's folder, and bytes that are free there."""
    real = Path(os.path.realpath(path))
    files = (real, real.with_name(f"{real.name}-wal"))
    size = sum(file.stat().st_size for file in files if file.exists())
    return size + _MARGIN, shutil.disk_usage(real.parent).free


def back_up(path: Path, source: sqlite3.Connection, version: int) -> Path:
    """Copy the database that ``source`` reads to ``NAME.format-VERSION.backup`` beside it; returns that path.

    The caller holds the lock of writers. The copy has the rights (and, if possible, the owner) of the file; it is on
    the disk before it gets its name, and never replaces a file: if the name is taken, ``-2`` is appended. Raises
    :exc:`CatalogError` if there is no room, or the folder cannot be written; then nothing is left there.
    """
    real = Path(os.path.realpath(path))
    needed, free = room_for(path)
    if free < needed:
        raise CatalogError(
            f"{_unchanged(path, version)}: the copy of it that is kept needs {needed:,} bytes in {real.parent}, where "
            f"{free:,} are free"
        )
    part = real.with_name(f"{real.name}.format-{version}.backup.part")
    try:
        try:
            _make_empty(part, real)
            _copy(source, part)
            return _named(part, real, version)
        finally:
            for leftover in (
                part,
                *(part.with_name(f"{part.name}-{end}") for end in ("wal", "shm", "journal")),
            ):
                leftover.unlink(missing_ok=True)
    except OSError as error:
        raise CatalogError(
            f"{_unchanged(path, version)}: no copy of it can be made in {real.parent} ({error.strerror})"
        ) from error
    except sqlite3.Error as error:
        raise CatalogError(f"{_unchanged(path, version)}: the copy that is kept failed ({error})") from error


def _unchanged(path: Path, version: int) -> str:
    return f"The catalogue {path} stays in format {version}"


def _numbered(real: Path, version: int, number: int) -> Path:
    return real.with_name(f"{real.name}.format-{version}.backup{f'-{number}' if number > 1 else ''}")


def _make_empty(part: Path, real: Path) -> None:
    """A new file with the rights and the owner of the catalogue, before anything is in it."""
    part.unlink(missing_ok=True)
    status = real.stat()
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with suppress(OSError):  # only root may give a file away
            os.fchown(descriptor, status.st_uid, status.st_gid)
        os.fchmod(descriptor, status.st_mode & 0o777)
    finally:
        os.close(descriptor)


def _copy(source: sqlite3.Connection, part: Path) -> None:
    with closing(sqlite3.connect(part, isolation_level=None)) as target:
        target.execute("PRAGMA journal_mode = OFF")  # half of a copy is of no use
        target.execute("PRAGMA synchronous = OFF")
        source.backup(target, pages=_PAGES_A_STEP, sleep=0)
    uri = f"{part.absolute().as_uri()}?mode=ro&immutable=1"
    question = "SELECT catalog_id, (SELECT count(*) FROM namespaces), (SELECT total(version) FROM namespaces) FROM meta"
    with closing(sqlite3.connect(uri, uri=True)) as copy:
        same = all(
            copy.execute(each).fetchall() == source.execute(each).fetchall()
            for each in (question, "PRAGMA user_version", "PRAGMA page_count")
        )
    if not same:
        raise sqlite3.DatabaseError("it is not what the catalogue is")
    with part.open("rb+") as file:
        os.fsync(file.fileno())


def _named(part: Path, real: Path, version: int) -> Path:
    """Give the copy the first free name; an identical copy made before a crash is used instead."""
    number = 1
    while True:
        name = _numbered(real, version, number)
        try:
            os.link(part, name)
        except FileExistsError:
            if filecmp.cmp(part, name, shallow=False):
                break
            number += 1
            continue
        except OSError:  # a file system without hard links
            if name.exists():
                number += 1
                continue
            part.rename(name)
        break
    folder = os.open(real.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return name
