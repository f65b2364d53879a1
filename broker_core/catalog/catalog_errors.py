"""Errors of a catalogue, its file, or a file that is imported into it.

CatalogError
|-- CatalogUnusable      the file is not a catalogue, is damaged, is of a newer release, or cannot be opened
|-- CatalogBusy          another process held the file for longer than the time-out
|-- CatalogReadOnly      this process may read the file and not write it
|-- CatalogFull          the disk has no room for a change
|-- TopicInvalid         properties or a number of partitions that no topic can have
|-- TopicExists          create() of an existing topic
|-- NameCollides         a new name that Kafka does not distinguish from another topic's
|-- TopicMissing         delete(), set_properties() of a missing topic
|-- PartitionRefused     a partition's name that no partitioned topic has room for
|-- PartitionCountRefused  a number of partitions that a topic cannot change to
|-- PartitionedRefused   a partitioned topic instead of a plain one or a partition, or the reverse
|-- PreconditionFailed   the topic is not what a change of it relies on
|-- PairRefused          a topic beside a partition of its name, with different properties
|-- ImportRefused        a line of an imported file is invalid; nothing of the file was taken
|-- ExportRefused        a name that the plain format cannot carry
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final, Self

from broker_core.errors import BrokerCoreError, Cause, ListingFailed
from broker_core.names import ListedNames, TopicName, partition_name

__all__ = [
    "CatalogBusy",
    "CatalogError",
    "CatalogFull",
    "CatalogReadOnly",
    "CatalogUnusable",
    "ExportRefused",
    "ImportRefused",
    "NameCollides",
    "PairRefused",
    "PartitionCountRefused",
    "PartitionRefused",
    "PartitionedRefused",
    "PreconditionFailed",
    "TopicExists",
    "TopicInvalid",
    "TopicMissing",
    "reading_catalog",
    "sqlite_errors",
]


class CatalogError(BrokerCoreError):
    """The catalogue could not do a request; nothing of it was done. ``cause`` says why, to each transport.

    ``unquoted`` is a message without contents of the catalogue, if ``message`` quotes some.
    """

    cause: ClassVar[Cause] = Cause.CATALOG

    def __init__(self, message: str, unquoted: str | None = None) -> None:
        super().__init__(message)
        self.unquoted = unquoted

    def unquote(self) -> None:
        """Use the message without contents of the catalogue, for a client that may change a topic but not list it."""
        if self.unquoted is not None:
            self.args = (self.unquoted,)


class CatalogUnusable(CatalogError):
    """The file is not a catalogue of this release, is damaged, or cannot be read; the message names the file."""


class CatalogBusy(CatalogError):
    """Another process is writing (an import, say) and did not finish in time; trying again later is right."""

    cause = Cause.UNAVAILABLE


class CatalogReadOnly(CatalogError):
    """The file can be read and not written; the message names the file."""

    cause = Cause.NOT_ALLOWED


class CatalogFull(CatalogError):
    """The disk is full, or the folder of temporary files; the catalogue is as it was."""

    cause = Cause.FULL


class TopicInvalid(CatalogError):
    """Properties that are not strings or too large, or too many partitions: no topic can have them."""

    cause = Cause.BAD_REQUEST


class TopicExists(CatalogError):
    """A topic to be created is there already."""

    @classmethod
    def of(cls, name: TopicName, how: str = "") -> Self:
        """The error for a topic of this name; ``how`` says what it has, if that matters."""
        return cls(f"Topic {name} is there already{how}")

    cause = Cause.CONFLICT


class NameCollides(CatalogError):
    """A new topic's name differs from another one only in ``.`` and ``_``, which Kafka's metrics do not distinguish.

    ``other`` is the local name of the topic that is there.
    """

    cause = Cause.CONFLICT

    def __init__(self, name: str, other: str) -> None:
        super().__init__(f"Topic {name!r} collides with the topic {other!r}")
        self.other = other


class TopicMissing(CatalogError):
    """A topic to be changed or deleted is not there."""

    @classmethod
    def of(cls, name: TopicName | str, so: str = "") -> Self:
        """The error for a topic, or a partition, of this name; ``so`` is what follows from it."""
        return cls(f"There is no topic {name} in the catalogue{so}")

    cause = Cause.NOT_FOUND


class PartitionRefused(CatalogError):
    """A partition's name without a partitioned topic, or beyond its partitions, as brokers refuse it.

    ``partitions`` is how many the topic has; 0: no partitioned topic is there.
    """

    cause = Cause.CONFLICT

    def __init__(self, message: str, partitions: int = 0, unquoted: str | None = None) -> None:
        super().__init__(message, unquoted)
        self.partitions = partitions


class PartitionCountRefused(CatalogError):
    """A topic cannot change to this number of partitions: it may only grow, and a plain topic stays one.

    ``partitions`` is the number that it has, ``None`` if the client must not see it; ``wanted`` is the refused number.
    """

    cause = Cause.CONFLICT

    def __init__(
        self, message: str, partitions: int | None, wanted: int = 0, unquoted: str | None = None
    ) -> None:
        super().__init__(message, unquoted)
        self.partitions = partitions
        self.wanted = wanted

    def unquote(self) -> None:
        super().unquote()
        if self.unquoted is not None:
            self.partitions = None


class PartitionedRefused(CatalogError):
    """The name is a partitioned topic's own, but a plain topic or one partition was expected, or the reverse."""

    cause = Cause.CONFLICT


class PreconditionFailed(CatalogError):
    """The topic is not, or no longer, in the state that a change of it relies on."""

    cause = Cause.PRECONDITION


class PairRefused(CatalogError):
    """A topic and a partition of its name would have different properties, as no broker has them."""

    cause = Cause.CONFLICT

    @classmethod
    def of(cls, name: str, listed: ListedNames) -> Self:
        """The error for a topic's own name (full or local) that would be ``listed`` with different properties."""
        partition = partition_name(str(name), next(listed.indices(), 0))
        return cls(
            f"Topic {name!r} and partition {partition!r} cannot both be there with different properties: a topic "
            'either has partitions, which share its properties (in a file {"name": ..., "partitions": N}), or has none'
        )


class ImportRefused(CatalogError):
    """A line of an import is invalid. ``line`` counts from 1, ``reason`` says what is wrong with it."""

    cause = Cause.BAD_REQUEST

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


class NotNames(ImportRefused):
    """A file of plain names looks like another kind of file; ``as_names`` reads it as names."""


class ExportRefused(CatalogError):
    """A name cannot be written in the plain format (it holds a line feed, say); JSON lines can carry it."""

    cause = Cause.NOT_ALLOWED


@contextmanager
def reading_catalog() -> Iterator[None]:
    """Turn errors of the catalogue raised inside into a :exc:`ListingFailed`."""
    try:
        yield
    except CatalogError as error:
        raise ListingFailed(
            f"Cannot read the catalogue: {error}", cause=Cause.CATALOG, reason="catalog"
        ) from error


@contextmanager
def sqlite_errors(path: Path) -> Iterator[None]:
    """Turn errors of SQLite raised inside into errors that name the file and say what to do."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translated(path, error) from error


_CANNOT_OPEN: Final = ("SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")
#: The errors by the beginnings of SQLite's names.
_OF_SQLITE: Final[tuple[tuple[tuple[str, ...], type[CatalogError], str], ...]] = (
    (
        ("SQLITE_BUSY", "SQLITE_LOCKED"),
        CatalogBusy,
        "The catalogue {path} is being written by another process; try again when it is done",
    ),
    (("SQLITE_NOTADB",), CatalogUnusable, "{path} is not a catalogue: it is no SQLite database"),
    (
        ("SQLITE_CORRUPT",),
        CatalogUnusable,
        "The catalogue {path} is damaged ({error}); restore it from a copy or import it anew",
    ),
    (_CANNOT_OPEN, CatalogUnusable, "The catalogue {path} cannot be opened ({error})"),
    (
        ("SQLITE_READONLY",),
        CatalogReadOnly,
        "The catalogue {path} cannot be written ({error}): check the file's and folder's rights",
    ),
    (
        ("SQLITE_FULL",),
        CatalogFull,
        "The catalogue {path} was not changed: the disk is full (or the folder of temporary files)",
    ),
)


def _translated(path: Path, error: sqlite3.Error) -> CatalogError:
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(_CANNOT_OPEN) and path.is_file() and not os.access(path.absolute().parent, os.W_OK):
        return CatalogUnusable(
            f"The catalogue {path} cannot be opened: SQLite keeps {path.name}-wal and {path.name}-shm beside it "
            f"while it is read, and the folder {path.absolute().parent} cannot be written; make it writable, or "
            "copy the file to a folder that is"
        )
    for names, kind, text in _OF_SQLITE:
        if name.startswith(names):
            return kind(text.format(path=path, error=error))
    return CatalogError(f"The catalogue {path} failed: {error}")
