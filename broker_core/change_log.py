"""Change logs of topics: the protocol between a store of topics and its followers.

The embedded catalogue has a change log, and a plugin that holds topics offers its own by the hook
``broker_core_change_log``. A plugin that keeps something derived from topics (a precomputed listing, say) follows a
log: it knows the version of its state, and requests the changes since.
"""

from __future__ import annotations

import enum
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, runtime_checkable

from broker_core.errors import InvalidName
from broker_core.names import ListedNames, NamespaceName, TopicName

__all__ = ["CatalogVersion", "Change", "ChangeLog", "Changes", "Gap", "ListedNames", "Operation"]


@dataclass(frozen=True, slots=True)
class CatalogVersion:
    """The state of one namespace in one catalogue; ``str()`` is ``<catalogue id>:<number>``.

    ``number`` grows by one with every transaction that changes the namespace; 0 is a namespace that never had a topic.
    Numbers of different catalogues (each file has a random id of its own) say nothing about each other.

    After a copy of a catalogue was restored, its numbers come again with other topics. ``stamp`` is random and was made
    with the version, so that it distinguishes the two; it is empty if it is not known.
    """

    catalog_id: str
    number: int
    stamp: str = field(default="", compare=False)

    def same_state(self, other: CatalogVersion) -> bool:
        """Whether both are one state, and not two of the same number; an unknown stamp matches any."""
        return self == other and (not self.stamp or not other.stamp or self.stamp == other.stamp)

    def __str__(self) -> str:
        return f"{self.catalog_id}:{self.number}"

    @classmethod
    def parse(cls, text: str) -> CatalogVersion:
        """The reverse of ``str()``; raises :exc:`~broker_core.errors.InvalidName` for anything else."""
        catalog_id, separator, number = text.rpartition(":")
        if not (separator and catalog_id and number.isascii() and number.isdigit()):
            raise InvalidName(f"Invalid version {text[:100]!r} of a catalogue: expected ID:NUMBER")
        return cls(catalog_id, int(number))


def version_text(version: CatalogVersion) -> str:
    """A version as HTTP clients have it: ``ID:NUMBER.STAMP``, without the stamp if it is not known."""
    return f"{version}.{version.stamp}" if version.stamp else str(version)


def read_version(text: str) -> CatalogVersion:
    """The reverse of :func:`version_text`. Raises :exc:`~broker_core.errors.InvalidName`."""
    head, dot, stamp = text.rpartition(".")
    if not dot:
        return CatalogVersion.parse(text)
    found = CatalogVersion.parse(head)
    return CatalogVersion(found.catalog_id, found.number, stamp)


class Operation(enum.Enum):
    """The kinds of a change of a topic."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Change:
    """One topic before and after a transaction.

    For a created topic ``listed_before`` and ``properties_before`` are empty, for a deleted one ``listed_after`` and
    ``properties_after``; the change is then the tombstone of ``topic_id``. A name that is created anew has another id:
    it is another topic, whatever its properties are. ``configs_before`` and ``configs_after`` are the topic's configs
    of Kafka; a log without configs leaves them empty.
    """

    version: int
    operation: Operation
    name: TopicName
    topic_id: uuid.UUID
    listed_before: ListedNames
    listed_after: ListedNames
    properties_before: Mapping[str, str]
    properties_after: Mapping[str, str]
    time: datetime
    configs_before: Mapping[str, str] = field(default_factory=dict)
    configs_after: Mapping[str, str] = field(default_factory=dict)

    @property
    def removed(self) -> Iterator[str]:
        """The full names that are no longer listed."""
        return self.listed_before.without(self.listed_after).names(str(self.name))

    @property
    def added(self) -> Iterator[str]:
        """The full names that are newly listed."""
        return self.listed_after.without(self.listed_before).names(str(self.name))


@dataclass(frozen=True, slots=True)
class Changes:
    """All changes of a namespace after ``since`` up to and with ``version``, oldest first; possibly none."""

    since: CatalogVersion
    version: CatalogVersion
    changes: tuple[Change, ...] = ()

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)


@dataclass(frozen=True, slots=True)
class Gap:
    """The log cannot lead from ``since`` to ``version``: read the whole namespace. ``reason`` says why."""

    since: CatalogVersion
    version: CatalogVersion
    reason: str


@runtime_checkable
class ChangeLog(Protocol):
    """The versions and the changes of all namespaces in one place. Called on the event loop.

    A version is of one namespace and one catalogue id: numbers under different ids cannot be compared. Its ``stamp``
    distinguishes it from another version of the same number, which a restored copy may reach; a log without stamps
    leaves it empty, and must then change its id after a restore. A failure to read raises
    :exc:`~broker_core.errors.ListingFailed`.
    """

    @property
    def name(self) -> str:
        """``catalog`` for the embedded one, else the name of the plugin."""

    async def catalog_id(self) -> str:
        """The id that versions are comparable under; it changes if the topics were replaced as a whole."""

    def version_now(self, namespace: NamespaceName) -> CatalogVersion | None:
        """The state of a namespace as of this call, if it is known without any waiting, else ``None``."""

    async def version(self, namespace: NamespaceName) -> CatalogVersion:
        """The state of a namespace, at some moment after this call."""

    async def changes(self, namespace: NamespaceName, since: CatalogVersion) -> Changes | Gap:
        """All changes after ``since``, oldest first; a :class:`Gap` if they are not known.

        A gap may have any reason: ``since`` is of another catalogue, is newer than the current version or has another
        stamp than this log's version of its number (both after a copy was restored), or is older than the log reaches
        back. A follower then reads the whole namespace again.
        """
