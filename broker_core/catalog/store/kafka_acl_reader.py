"""Reader of the embedded catalogue's Kafka ACLs; noticing a change costs no more than for a listing."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from broker_core.catalog.catalog_errors import reading_catalog
from broker_core.catalog.store.file_watch import FileWatch, WatchedVersions
from broker_core.catalog.store.kafka_acls import AclRow, any_acls, read_acl_version, read_acls
from broker_core.catalog.store.log_rows import read_catalog_id
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.names import NamespaceName

__all__ = ["AclVersion", "KafkaAclReader"]


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
        self._versions = WatchedVersions(self._watch, self._version)

    def close(self) -> None:
        """Close the file; after that no version is known at once."""
        self._watch.close()

    def version_now(self, namespace: NamespaceName) -> AclVersion | None:
        """The version of a namespace's ACLs: a look at the file, and a read of two rows if anything was committed.

        ``None`` if the file cannot be read at once.
        """
        return self._versions.now(namespace)

    async def read(self, namespace: NamespaceName) -> tuple[AclVersion, tuple[AclRow, ...]]:
        """All ACLs of a namespace with their version. Raises :exc:`ListingFailed` (``Cause.CATALOG``)."""
        with reading_catalog():
            await self._watch.current()
            return await asyncio.to_thread(self._read, namespace)

    def _version(self, namespace: NamespaceName) -> AclVersion | None:
        now = self._watch.acl_version(namespace)
        return None if now is None else AclVersion(self._watch.catalog_id, *now)

    def _read(self, namespace: NamespaceName) -> tuple[AclVersion, tuple[AclRow, ...]]:
        with self._catalog.reading() as connection:
            version = AclVersion(
                read_catalog_id(connection), read_acl_version(connection, namespace), any_acls(connection)
            )
            return version, read_acls(connection, namespace)
