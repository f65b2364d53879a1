"""A cluster as the source of a mirror: its tenants, namespaces, topics, partitions and properties.

Names are those that a broker lists: partitions one by one as far as they exist, system topics not. Properties belong to
the topic, so all partitions of a partitioned topic have its own; a topic without partitions is asked by itself. There
is no request for the properties of many topics, so it is one request for each, and a broker loads a topic that is not
in use to answer it: ``properties=False`` leaves them as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from broker_core.catalog import CatalogError
from broker_core.names import DOMAINS, NON_PERSISTENT, NamespaceName, TopicName
from broker_core_postgres.fill.filling_failed import FillingFailed
from broker_core_postgres.fill.storage_limits import storable_properties
from broker_core_postgres.fill.sync.admin_client import PARALLEL, AdminClient, AdminRefused, UnusableAnswer
from broker_core_postgres.fill.sync.for_each import for_each
from broker_core_postgres.fill.sync.mirror_source import Inventory, NamesOfDomain, NamespaceTopics
from broker_core_postgres.fill.sync.scope import Scope

__all__ = ["ClusterSource"]

#: Without the right to read, or who we are in doubt, nothing is known about any topic of the namespace.
_OF_ALL: Final = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class _Properties:
    """Of one topic: the text, ``None`` where it is not known, with the reason if that is a fault."""

    text: str | None
    fault: str | None = None


class ClusterSource:
    """Reads by ``admin``; ``progress`` is called with (topics asked, topics to ask) of each namespace."""

    name = "cluster"

    def __init__(
        self,
        admin: AdminClient,
        *,
        properties: bool = True,
        parallel: int = PARALLEL,
        progress: Callable[[NamespaceName, int, int], None] | None = None,
    ) -> None:
        self._admin = admin
        self._properties = properties
        self._parallel = parallel
        self._progress = progress

    @property
    def origin(self) -> str:
        """The address of the admin interface."""
        return self._admin.base

    async def inventory(self, scope: Scope) -> Inventory:
        """All namespaces of the scope; a tenant that cannot be read is one of the failed."""
        every = await self._admin.tenants()
        if not every:
            # Each cluster has tenants: this is not the answer of one, and nothing must be deleted by it.
            raise FillingFailed("The cluster says that it has no tenants at all: is the URL right?")
        tenants = [tenant for tenant in every if scope.may_cover(tenant)]
        failed: dict[str, str] = {}
        found: list[NamespaceName] = []

        async def read(tenant: str) -> None:
            try:
                found.extend(filter(scope.covers, await self._admin.namespaces(tenant)))
            except AdminRefused as error:
                if error.status == 401:  # nobody would be let in
                    raise
                failed[tenant] = str(error)
            except FillingFailed as error:
                failed[tenant] = str(error)

        await for_each(tenants, read, self._parallel)
        if tenants and len(failed) == len(tenants):
            raise FillingFailed(f"No tenant of the cluster can be read: {next(iter(failed.values()))}")
        return Inventory(tuple(sorted(set(found))), failed)

    async def read_namespace(self, namespace: NamespaceName) -> NamespaceTopics:
        """The topics of a namespace as they are now; whatever fails, fails all of it.

        One that was deleted since the inventory has none.
        """
        unread: dict[str, str] = {}
        try:
            parts = [await self._domain(namespace, domain, unread) for domain in DOMAINS]
        except AdminRefused as error:
            # "Namespace does not exist" is believed where the tenant does not have it any more, either.
            if error.status == 404 and namespace not in await self._admin.namespaces(namespace.tenant):
                return NamespaceTopics(namespace, ())
            raise
        return NamespaceTopics(namespace, tuple(parts), unread)

    async def _domain(self, namespace: NamespaceName, domain: str, unread: dict[str, str]) -> NamesOfDomain:
        partitioned: set[str] = set(await self._admin.partitioned_topics(namespace, domain))
        names: list[str] = await self._admin.topics(namespace, domain)
        topics = [TopicName.split_local(name)[0] for name in names]
        # Whom to ask for the properties of each name.
        owners = [topic if topic in partitioned else name for name, topic in zip(names, topics, strict=True)]
        if not self._properties:
            return NamesOfDomain(domain, names, topics, [None] * len(names))
        known: dict[str, _Properties] = {}
        asked = list(dict.fromkeys(owners))
        if domain == NON_PERSISTENT:
            # Only partitioned ones have metadata that holds properties.
            known = {owner: _Properties("{}") for owner in asked if owner not in partitioned}
            asked = [owner for owner in asked if owner in partitioned]

        async def read(owner: str) -> None:
            known[owner] = await self._properties_of(TopicName(domain, namespace, owner))
            if self._progress is not None:
                self._progress(namespace, len(known), len(asked))

        await for_each(asked, read, self._parallel)
        unread.update(
            {
                str(TopicName(domain, namespace, owner)): told.fault
                for owner, told in known.items()
                if told.fault is not None
            }
        )
        return NamesOfDomain(domain, names, topics, [known[owner].text for owner in owners])

    async def _properties_of(self, topic: TopicName) -> _Properties:
        try:
            properties = await self._admin.properties(topic)
            # Deleted since it was listed: the next run sees that; until then it is left as it is.
            return _Properties(None if properties is None else storable_properties(properties))
        except AdminRefused as error:
            if error.status in _OF_ALL:
                raise
            return _Properties(None, str(error))  # a name that cannot be asked for, say
        except (UnusableAnswer, CatalogError) as error:
            return _Properties(None, str(error))
