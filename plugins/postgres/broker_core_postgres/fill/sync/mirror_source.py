"""The interface of a mirror's source, a cluster or the embedded catalogue, and what it returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from broker_core.names import NamespaceName
from broker_core_postgres.fill.sync.scope import Scope

__all__ = ["Inventory", "MirrorSource", "NamesOfDomain", "NamespaceTopics"]


@dataclass(frozen=True, slots=True)
class NamesOfDomain:
    """Listed names of a domain. ``properties`` has the JSON text for each name; ``None``: the database's stay.

    ``topics`` has the local name of each name's topic, which differs for partitions. ``ids`` has the 16 bytes of the id
    of each topic; empty if the source has none. ``configs`` has Kafka's configs as JSON, and the number of replicas, of
    each topic with some.
    """

    domain: str
    names: Sequence[str]
    topics: Sequence[str]
    properties: Sequence[str | None]
    ids: Mapping[str, bytes] = field(default_factory=dict)
    configs: Mapping[str, tuple[str | None, int | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NamespaceTopics:
    """All topics of a namespace. ``unread`` has the topics whose properties could not be read, with the reason."""

    namespace: NamespaceName
    parts: tuple[NamesOfDomain, ...]
    unread: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(len(part.names) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Inventory:
    """The namespaces of a source. ``failed`` has the tenants that could not be read: their namespaces stay as they
    are.
    """

    namespaces: tuple[NamespaceName, ...]
    failed: Mapping[str, str] = field(default_factory=dict)


class MirrorSource(Protocol):
    """A source. Methods raise :exc:`~broker_core.errors.BrokerCoreError`; they never return a part of the topics."""

    @property
    def name(self) -> str:
        """``cluster`` or ``catalog``, for messages."""

    @property
    def has_configs(self) -> bool:
        """Whether the source gives Kafka's configs and replicas; else the database's stay."""

    @property
    def origin(self) -> str:
        """The source's address without secrets, shown with the state of the mirror."""

    async def inventory(self, scope: Scope) -> Inventory:
        """The namespaces of a scope."""

    async def read_namespace(self, namespace: NamespaceName) -> NamespaceTopics:
        """All topics of a namespace."""
