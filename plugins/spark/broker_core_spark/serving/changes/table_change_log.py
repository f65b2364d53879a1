"""The change log of a table's generation: the looks at the table that a job of Spark leaves in the store."""

from __future__ import annotations

import uuid

from broker_core.change_log import CatalogVersion, Change, Changes, ListedNames, Operation
from broker_core.names import NamespaceName, TopicName
from broker_core_spark.store import TableChanges

__all__ = ["TableChangeLog"]

_LISTED, _NOT_LISTED = ListedNames.of(-1), ListedNames(plain=False)


class TableChangeLog:
    """A :class:`~broker_core.change_log.ChangeLog`: its versions are the numbers of looks, 0 is the generation."""

    name = "spark"

    def __init__(self, catalogue_id: str, changes: TableChanges) -> None:
        self._catalogue_id = catalogue_id
        self.changes_of_table = changes
        self._changes: dict[str, list[Change]] = {}
        for (namespace, domain, local), properties in changes.names.items():
            listed = properties is not None
            change = Change(
                changes.number,
                Operation.UPDATE,
                TopicName.parse(f"{domain}://{namespace}/{local}"),
                uuid.UUID(int=0),
                _NOT_LISTED if listed else _LISTED,
                _LISTED if listed else _NOT_LISTED,
                {},
                properties or {},
                changes.looked,
            )
            self._changes.setdefault(namespace, []).append(change)

    async def catalog_id(self) -> str:
        return self._catalogue_id

    def version_now(self, _namespace: NamespaceName) -> CatalogVersion:
        return CatalogVersion(self._catalogue_id, self.changes_of_table.number)

    async def version(self, namespace: NamespaceName) -> CatalogVersion:
        return self.version_now(namespace)

    async def changes(self, namespace: NamespaceName, since: CatalogVersion) -> Changes:
        return Changes(since, self.version_now(namespace), tuple(self._changes.get(str(namespace), ())))
