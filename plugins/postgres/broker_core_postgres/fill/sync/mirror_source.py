"""What a namespace is said to hold by whoever knows: a cluster, or the embedded catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from broker_core.names import NamespaceName
from broker_core_postgres.fill.sync.scope import Scope

__all__ = ["Inventory", "MirrorSource", "NamesOfDomain", "NamespaceTopics"]


@dataclass(frozen=True, slots=True)
class NamesOfDomain:
    """Listed names of one domain. ``properties`` has their JSON text, name by name; ``None``: leave what is there.

    ``topics`` has the local names of the topics that the names belong to, which differ for partitions.
    """

    domain: str
    names: Sequence[str]
    topics: Sequence[str]
    properties: Sequence[str | None]


@dataclass(frozen=True, slots=True)
class NamespaceTopics:
    """All of a namespace. ``unread`` says of which topics the properties could not be had, and why."""

    namespace: NamespaceName
    parts: tuple[NamesOfDomain, ...]
    unread: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return sum(len(part.names) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Inventory:
    """The namespaces that there are. ``failed`` are tenants of which nobody knows: they are left alone."""

    namespaces: tuple[NamespaceName, ...]
    failed: Mapping[str, str] = field(default_factory=dict)


class MirrorSource(Protocol):
    """Whom to believe. Methods raise :exc:`~broker_core.errors.BrokerCoreError`, never answer with a part."""

    @property
    def name(self) -> str:
        """``cluster`` or ``catalog``: for messages."""

    @property
    def origin(self) -> str:
        """Where it is, without secrets: for people who look at the state of the mirror."""

    async def inventory(self, scope: Scope) -> Inventory:
        """The namespaces of a scope."""

    async def read_namespace(self, namespace: NamespaceName) -> NamespaceTopics:
        """All of a namespace."""
