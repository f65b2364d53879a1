"""A topic in a catalogue, and the protocol of a catalogue."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from broker_core.change_log import CatalogVersion, Changes, Gap
from broker_core.names import ListedNames, NamespaceName, TopicName, topic_id_text

__all__ = ["Catalog", "TopicRecord"]


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """One topic: its plain name and its partitions share the id and the properties.

    ``name`` is the topic's own name, without any partition suffix; ``listed`` says which names it is listed by.
    ``configs`` are the configs of Kafka that were set for this topic; ``replication`` is the number of replicas that a
    Kafka client requested, ``None`` for no number.
    """

    name: TopicName
    topic_id: uuid.UUID
    listed: ListedNames
    properties: Mapping[str, str]
    created: datetime
    configs: Mapping[str, str] = field(default_factory=dict)
    replication: int | None = None

    @property
    def partitions(self) -> int:
        """The number of partitions that clients get; 0 for a topic that has none."""
        return self.listed.partitions

    @property
    def names(self) -> Iterator[str]:
        """The full names that the topic is listed by: the plain one first, then the partitions by index."""
        return self.listed.names(str(self.name))

    def shown(self) -> dict[str, Any]:
        """The topic as an object of JSON, for HTTP and the output of commands."""
        return {
            "name": str(self.name),
            "topic_id": topic_id_text(self.topic_id),
            "partitions": self.partitions,
            "properties": dict(self.properties),
            "configs": dict(self.configs),
            "replication": self.replication,
            "created": self.created.isoformat(timespec="milliseconds"),
        }


class Catalog(Protocol):
    """A store of topics in the broker itself. All calls are synchronous and safe from any thread."""

    @property
    def catalog_id(self) -> str:
        """The random id that versions are comparable under."""

    def namespaces(self) -> list[NamespaceName]:
        """The namespaces that hold a topic, in order of their names."""

    def version(self, namespace: NamespaceName) -> CatalogVersion:
        """The state of a namespace now."""

    def changes(self, namespace: NamespaceName, since: CatalogVersion) -> Changes | Gap:
        """The changes after ``since``, or a :class:`Gap` if the log does not reach back to it."""

    def topics(
        self, namespace: NamespaceName
    ) -> AbstractContextManager[tuple[CatalogVersion, Iterator[TopicRecord]]]:
        """All topics of a namespace at one version, to be read after a gap."""

    def topic(self, name: TopicName) -> TopicRecord | None:
        """The topic that is, or that has, this name."""

    def partitions(self, name: TopicName) -> int | None:
        """The number of partitions of a topic, 0 for one without (or a partition); ``None`` if there is no topic."""

    def create(
        self, name: TopicName, *, partitions: int = 0, properties: Mapping[str, str] | None = None
    ) -> TopicRecord:
        """Add a topic with a new id; raises :exc:`~broker_core.catalog.TopicExists`."""

    def delete(self, name: TopicName) -> TopicRecord:
        """Remove a topic with all of its names, or one partition; returns the record before."""

    def set_properties(self, name: TopicName, properties: Mapping[str, str]) -> TopicRecord:
        """Replace the properties of a topic."""
