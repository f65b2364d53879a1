"""A cluster as the source of a mirror: its tenants, namespaces, topics, partitions and properties.

Names are those that a broker lists: existing partitions one by one, no system topics. Partitions have the properties of
their partitioned topic; other topics have their own. The admin interface has no request for the properties of several
topics, so each topic takes one, and the broker loads the topic to answer it. ``properties=False`` saves these requests
and leaves the properties in the database as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from broker_core.catalog import CatalogError
from broker_core.names import DOMAINS, NON_PERSISTENT, NamespaceName, TopicName
from broker_core_postgres.fill.filling_failed import FillingFailed
from broker_core_postgres.fill.storage_limits import storable_properties
from broker_core_postgres.fill.sync.for_each import for_each
from broker_core_postgres.fill.sync.mirror_source import Inventory, NamesOfDomain, NamespaceTopics
from broker_core_postgres.fill.sync.pulsar_admin import PARALLEL, AdminRefused, PulsarAdmin, UnusableAnswer
from broker_core_postgres.fill.sync.scope import Scope

__all__ = ["ClusterSource"]

#: Without permission or authentication, no topic of the namespace can be read.
_OF_ALL: Final = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class _Properties:
    """The properties of a topic as text; ``None`` if unknown. ``fault`` is the reason, if that is an error."""

    text: str | None
    fault: str | None = None


class ClusterSource:
    """Reads by ``admin``. ``progress`` is called with (topics read, topics to read) of a namespace."""

    name = "cluster"
    has_configs = False

    def __init__(
        self,
        admin: PulsarAdmin,
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
        """The URL of the admin interface."""
        return self._admin.base

    async def inventory(self, scope: Scope) -> Inventory:
        """All namespaces of the scope. A tenant that cannot be read is in ``failed``."""
        every = await self._admin.tenants()
        if not every:
            # Every cluster has tenants. An empty list must not delete everything.
            raise FillingFailed("The cluster says that it has no tenants at all: is the URL right?")
        tenants = [tenant for tenant in every if scope.may_cover(tenant)]
        failed: dict[str, str] = {}
        found: list[NamespaceName] = []

        async def read(tenant: str) -> None:
            try:
                found.extend(filter(scope.covers, await self._admin.namespaces(tenant)))
            except AdminRefused as error:
                if error.status == 401:  # no other tenant would answer either
                    raise
                failed[tenant] = str(error)
            except FillingFailed as error:
                failed[tenant] = str(error)

        await for_each(tenants, read, self._parallel)
        if tenants and len(failed) == len(tenants):
            raise FillingFailed(f"No tenant of the cluster can be read: {next(iter(failed.values()))}")
        return Inventory(tuple(sorted(set(found))), failed)

    async def read_namespace(self, namespace: NamespaceName) -> NamespaceTopics:
        """The current topics of a namespace. Any failure fails the whole namespace.

        A namespace that was deleted after the inventory has no topics.
        """
        unread: dict[str, str] = {}
        try:
            parts = [await self._domain(namespace, domain, unread) for domain in DOMAINS]
        except AdminRefused as error:
            # "Namespace does not exist" counts only if the tenant does not list the namespace any more.
            if error.status == 404 and namespace not in await self._admin.namespaces(namespace.tenant):
                return NamespaceTopics(namespace, ())
            raise
        return NamespaceTopics(namespace, tuple(parts), unread)

    async def _domain(self, namespace: NamespaceName, domain: str, unread: dict[str, str]) -> NamesOfDomain:
        partitioned: set[str] = set(await self._admin.partitioned_topics(namespace, domain))
        names: list[str] = await self._admin.topics(namespace, domain)
        topics = [TopicName.split_local(name)[0] for name in names]
        # The topic that has the properties of each name.
        owners = [topic if topic in partitioned else name for name, topic in zip(names, topics, strict=True)]
        if not self._properties:
            return NamesOfDomain(domain, names, topics, [None] * len(names))
        known: dict[str, _Properties] = {}
        to_read = list(dict.fromkeys(owners))
        if domain == NON_PERSISTENT:
            # Non-persistent topics have properties only in the metadata of partitioned ones.
            known = {owner: _Properties("{}") for owner in to_read if owner not in partitioned}
            to_read = [owner for owner in to_read if owner in partitioned]

        async def read(owner: str) -> None:
            known[owner] = await self._properties_of(TopicName(domain, namespace, owner))
            if self._progress is not None:
                self._progress(namespace, len(known), len(to_read))

        await for_each(to_read, read, self._parallel)
        unread.update(
            {
                str(TopicName(domain, namespace, owner)): properties.fault
                for owner, properties in known.items()
                if properties.fault is not None
            }
        )
        return NamesOfDomain(domain, names, topics, [known[owner].text for owner in owners])

    async def _properties_of(self, topic: TopicName) -> _Properties:
        try:
            properties = await self._admin.properties(topic)
            # Deleted after it was listed: it stays as it is until the next run.
            return _Properties(None if properties is None else storable_properties(properties))
        except AdminRefused as error:
            if error.status in _OF_ALL:
                raise
            return _Properties(None, str(error))  # for example, a name that no request can contain
        except (UnusableAnswer, CatalogError) as error:
            return _Properties(None, str(error))
