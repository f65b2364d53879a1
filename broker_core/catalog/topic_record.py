"""A topic in a catalogue: its record, its properties and their text, and the protocol of a catalogue."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol

from broker_core.catalog.catalog_errors import TopicInvalid
from broker_core.change_log import CatalogVersion, Changes, Gap
from broker_core.names import ListedNames, NamespaceName, TopicName, topic_id_text

__all__ = [
    "MAX_PROPERTIES_BYTES",
    "Catalog",
    "TopicRecord",
    "check_properties",
    "checked_text",
    "configs_text",
    "properties_of",
    "properties_text",
]


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


#: The most bytes (JSON, UTF-8) that the properties of one topic may take, and so may its configs.
MAX_PROPERTIES_BYTES: Final = 65_536

_What = Literal["properties", "configs"]
_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_quoted = json.encoder.encode_basestring


def properties_text(properties: Mapping[str, str]) -> str:
    """Properties as JSON with sorted keys and without white space."""
    if not properties:
        return "{}"
    return "{" + ",".join([f"{_quoted(key)}:{_quoted(properties[key])}" for key in sorted(properties)]) + "}"


def configs_text(configs: Mapping[str, str]) -> str | None:
    """Configs of Kafka in the same form; none are ``NULL``."""
    return properties_text(configs) if configs else None


def properties_of(text: str | None) -> Mapping[str, str]:
    """The reverse of :func:`properties_text` and :func:`configs_text`, read-only; ``NULL`` is none."""
    return _NONE if text is None or text == "{}" else MappingProxyType(json.loads(text))


def check_properties(properties: object, what: _What = "properties") -> dict[str, str]:
    """A copy of valid properties, or configs; a :exc:`TopicInvalid` says why others are not."""
    if type(properties) is dict and not properties:
        return {}
    checked_text(properties, what)
    assert isinstance(properties, Mapping)
    return dict(properties)


def checked_text(properties: object, what: _What = "properties") -> str:
    """The text of valid properties (strings by strings, as in Pulsar); a :exc:`TopicInvalid` for others."""
    if not isinstance(properties, Mapping):
        raise TopicInvalid(f"{what} must be an object of strings, not {_kind(properties)}")
    for key, value in properties.items():
        if not isinstance(key, str) or not isinstance(value, str):
            one = "property" if what == "properties" else "config"
            raise TopicInvalid(f"the value of {one} {key!r} must be a string, not {_kind(value)}")
    text = properties_text(properties)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise TopicInvalid(f"{what} are not valid Unicode (a lone surrogate)") from None
    if size > MAX_PROPERTIES_BYTES:
        raise TopicInvalid(f"{what} take {size} bytes, at most {MAX_PROPERTIES_BYTES}")
    return text


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    return (
        "a list"
        if isinstance(value, list | tuple)
        else "an object"
        if isinstance(value, Mapping)
        else "a string"
    )
