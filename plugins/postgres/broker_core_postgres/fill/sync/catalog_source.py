"""The embedded catalogue as the source of a mirror."""

from __future__ import annotations

import asyncio
from itertools import repeat

from broker_core.catalog import CatalogError, SqliteCatalog
from broker_core.names import DOMAINS, NamespaceName
from broker_core_postgres.fill.storage_limits import storable_properties
from broker_core_postgres.fill.sync.mirror_source import Inventory, NamesOfDomain, NamespaceTopics
from broker_core_postgres.fill.sync.scope import Scope

__all__ = ["CatalogSource"]


class CatalogSource:
    """Reads an open catalogue in threads, each namespace from one snapshot."""

    name = "catalog"
    has_configs = True

    def __init__(self, catalog: SqliteCatalog) -> None:
        self._catalog = catalog

    @property
    def origin(self) -> str:
        """The path of the catalogue's file."""
        return str(self._catalog.path.absolute())

    async def inventory(self, scope: Scope) -> Inventory:
        """The namespaces of the scope that have topics."""
        namespaces = await asyncio.to_thread(self._catalog.namespaces)
        return Inventory(tuple(filter(scope.covers, namespaces)))

    async def read_namespace(self, namespace: NamespaceName) -> NamespaceTopics:
        """All topics of a namespace, with system topics, which listings hide."""
        return await asyncio.to_thread(self._read, namespace)

    def _read(self, namespace: NamespaceName) -> NamespaceTopics:
        columns: dict[str, tuple[list[str], list[str], list[str | None]]] = {
            domain: ([], [], []) for domain in DOMAINS
        }
        ids: dict[str, dict[str, bytes]] = {domain: {} for domain in DOMAINS}
        configs: dict[str, dict[str, tuple[str | None, int | None]]] = {domain: {} for domain in DOMAINS}
        unread: dict[str, str] = {}
        with self._catalog.topics(namespace) as (_, records):
            for record in records:
                names, topics, properties = columns[record.name.domain]
                listed = list(record.listed.names(record.name.local))
                ids[record.name.domain][record.name.local] = record.topic_id.bytes
                if record.configs or record.replication is not None:
                    own = storable_properties(record.configs) if record.configs else None
                    configs[record.name.domain][record.name.local] = own, record.replication
                text: str | None
                try:
                    text = storable_properties(record.properties)
                except CatalogError as error:
                    text, unread[str(record.name)] = None, str(error)
                names.extend(listed)
                topics.extend(repeat(record.name.local, len(listed)))
                properties.extend(repeat(text, len(listed)))
        return NamespaceTopics(
            namespace,
            tuple(
                NamesOfDomain(domain, *columns[domain], ids[domain], configs[domain]) for domain in DOMAINS
            ),
            unread,
        )
