"""Reading Kafka's ACLs of the embedded catalogue; noticing that they changed costs no more than it costs a listing."""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from broker_core.catalog.errors import reading_catalog
from broker_core.catalog.store.file_watch import FileWatch
from broker_core.catalog.store.kafka_acls import any_acls, read_acl_version, read_acls
from broker_core.catalog.store.kafka_rows import AclRow
from broker_core.catalog.store.namespace_change import read_catalog_id
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.names import NamespaceName

__all__ = ["AclVersion", "KafkaAclReader"]

#: Namespaces whose version is remembered for as long as nothing is committed.
_REMEMBERED: Final = 10_000


class AclVersion(NamedTuple):
    """The state of a namespace's ACLs in one file; ``stored`` says whether any namespace has some."""

    catalog_id: str
    number: int
    stored: bool


class KafkaAclReader:
    """The ACLs of namespaces. Made and used on one event loop."""

    def __init__(self, catalog: SqliteCatalog) -> None:
        self._catalog = catalog
        self._watch = FileWatch(catalog)
        self._known: dict[NamespaceName, AclVersion] = {}
        self._known_state = -1  # of the file, that all of the known versions are for
        self._reopening = asyncio.Lock()

    def close(self) -> None:
        """Close the file; no version is known at once from then on."""
        self._watch.close()

    def version_now(self, namespace: NamespaceName) -> AclVersion | None:
        """A look at the file, and a read of two rows where anything was committed since.

        ``None`` where the file cannot be read at once.
        """
        watch = self._watch
        if not watch.look():
            return None
        if self._known_state != watch.state or len(self._known) > _REMEMBERED:
            self._known.clear()
            self._known_state = watch.state
        known = self._known.get(namespace)
        if known is None:
            now = watch.acl_version(namespace)
            if now is None:
                return None
            known = self._known[namespace] = AclVersion(watch.catalog_id, *now)
        return known

    async def read(self, namespace: NamespaceName) -> tuple[AclVersion, tuple[AclRow, ...]]:
        """All ACLs of a namespace with their version. Raises :exc:`ListingFailed` (``Cause.CATALOG``)."""
        with reading_catalog():
            if self._watch.replaced:
                async with self._reopening:
                    if self._watch.replaced:
                        await asyncio.to_thread(self._catalog.notice)
                        self._watch.reopen()
            return await asyncio.to_thread(self._read, namespace)

    def _read(self, namespace: NamespaceName) -> tuple[AclVersion, tuple[AclRow, ...]]:
        with self._catalog.reading() as connection:
            version = AclVersion(
                read_catalog_id(connection), read_acl_version(connection, namespace), any_acls(connection)
            )
            return version, read_acls(connection, namespace)
