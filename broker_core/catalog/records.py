"""What a catalogue says: topics, versions, changes and gaps; and the protocol of one."""

from __future__ import annotations

import enum
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from broker_core.catalog.errors import CatalogError
from broker_core.catalog.listed import Listed
from broker_core.names import NamespaceName, TopicName

__all__ = ["Catalog", "CatalogVersion", "Change", "Changes", "Gap", "Operation", "TopicRecord"]


@dataclass(frozen=True, slots=True)
class CatalogVersion:
    """The state of one namespace in one catalogue; ``str()`` is ``<catalogue id>:<number>``.

    ``number`` grows by one with every transaction that changes the namespace; 0 is a namespace that never had a topic.
    Numbers of different catalogues (each file has a random id of its own) say nothing about each other.

    After a copy of a catalogue was restored, its numbers come again with other topics. ``stamp`` is random and was made
    with the version, so that it tells the one from the other; it is empty where it is not known.
    """

    catalog_id: str
    number: int
    stamp: str = field(default="", compare=False)

    def same_state(self, other: CatalogVersion) -> bool:
        """Whether both are one state, and not two of the same number; a stamp that is not known may be any."""
        return self == other and (not self.stamp or not other.stamp or self.stamp == other.stamp)

    def __str__(self) -> str:
        return f"{self.catalog_id}:{self.number}"

    @classmethod
    def parse(cls, text: str) -> CatalogVersion:
        """The reverse of ``str()``; raises :exc:`CatalogError` for anything else."""
        catalog_id, separator, number = text.rpartition(":")
        if not (separator and catalog_id and number.isascii() and number.isdigit()):
            raise CatalogError(f"Invalid version {text[:100]!r} of a catalogue: expected ID:NUMBER")
        return cls(catalog_id, int(number))


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """One topic: its plain name and its partitions share the id and the properties.

    ``name`` is the topic's own name, without any partition suffix; ``listed`` says which names it is listed by.
    """

    name: TopicName
    topic_id: uuid.UUID
    listed: Listed
    properties: Mapping[str, str]
    created: datetime

    @property
    def partitions(self) -> int:
        """The number of partitions that clients are told; 0 for a topic that has none."""
        return self.listed.partitions

    @property
    def names(self) -> Iterator[str]:
        """The full names that the topic is listed by: the plain one first, then the partitions by index."""
        return self.listed.names(str(self.name))


class Operation(enum.Enum):
    """What a change did to a topic."""

    CREATE = "create"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Change:
    """One topic before and after a transaction.

    Of a created topic ``listed_before`` is nothing and ``properties_before`` is empty, of a deleted one the same holds
    after it; the change is then the tombstone of ``topic_id``.
    """

    version: int
    operation: Operation
    name: TopicName
    topic_id: uuid.UUID
    listed_before: Listed
    listed_after: Listed
    properties_before: Mapping[str, str]
    properties_after: Mapping[str, str]
    time: datetime

    @property
    def removed(self) -> Iterator[str]:
        """The full names that are no longer listed."""
        return self.listed_before.without(self.listed_after).names(str(self.name))

    @property
    def added(self) -> Iterator[str]:
        """The full names that are listed since."""
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


class Catalog(Protocol):
    """Where topics live when the broker holds them itself. All calls are synchronous and safe from any thread."""

    @property
    def catalog_id(self) -> str:
        """The random id that versions are comparable under."""

    def namespaces(self) -> list[NamespaceName]:
        """The namespaces that hold a topic, in order of their names."""

    def version(self, namespace: NamespaceName) -> CatalogVersion:
        """The state of a namespace now."""

    def changes(self, namespace: NamespaceName, since: CatalogVersion) -> Changes | Gap:
        """What happened after ``since``, or a :class:`Gap` where the log does not reach back to it."""

    def topics(
        self, namespace: NamespaceName
    ) -> AbstractContextManager[tuple[CatalogVersion, Iterator[TopicRecord]]]:
        """All topics of a namespace at one version: what to read after a gap."""

    def topic(self, name: TopicName) -> TopicRecord | None:
        """The topic that is, or that has, this name."""

    def partitions(self, name: TopicName) -> int | None:
        """The number of partitions of a topic, 0 for one without (or for a partition); ``None`` for none at all."""

    def create(
        self, name: TopicName, *, partitions: int = 0, properties: Mapping[str, str] | None = None
    ) -> TopicRecord:
        """Add a topic with a new id; raises :exc:`~broker_core.catalog.errors.TopicExists`."""

    def delete(self, name: TopicName) -> TopicRecord:
        """Remove a topic with all of its names, or one partition; the record is what it was before."""

    def set_properties(self, name: TopicName, properties: Mapping[str, str]) -> TopicRecord:
        """Replace the properties of a topic."""
