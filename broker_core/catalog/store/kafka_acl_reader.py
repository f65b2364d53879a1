"""Reader of the embedded catalogue's Kafka ACLs; noticing a change costs no more than for a listing."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from broker_core.catalog.store.file_watch import FileWatch, WatchedVersions
from broker_core.catalog.store.kafka_administration import AclRow, any_acls, read_acl_version, read_acls
from broker_core.catalog.store.log_rows import read_catalog_id
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.names import NamespaceName

__all__ = ["AclVersion", "KafkaAclReader"]


class AclVersion(NamedTuple):
    """The state of a namespace's ACLs in one file; ``stored`` says whether any namespace has some."""

    catalog_id: str
    number: int
    stored: bool


class KafkaAclReader(WatchedVersions[AclVersion]):
    """The ACLs of namespaces, and their versions. Made and used on one event loop."""

    def __init__(self, catalog: SqliteCatalog) -> None:
        self._watch = FileWatch(catalog)
        super().__init__(self._watch, self._version)

    def close(self) -> None:
        """Close the file; after that no version is known at once."""
        self._watch.close()

    async def read(self, namespace: NamespaceName) -> tuple[AclVersion, tuple[AclRow, ...]]:
        """All ACLs of a namespace with their version. Raises :exc:`ListingFailed` (``Cause.CATALOG``)."""
        return await self._watch.read_in_thread(
            lambda connection: (_read_version(connection, namespace), read_acls(connection, namespace))
        )

    def _version(self, namespace: NamespaceName) -> AclVersion | None:
        return self._watch.read_seen(lambda connection: _read_version(connection, namespace))


def _read_version(connection: sqlite3.Connection, namespace: NamespaceName) -> AclVersion:
    return AclVersion(
        read_catalog_id(connection), read_acl_version(connection, namespace), any_acls(connection)
    )
