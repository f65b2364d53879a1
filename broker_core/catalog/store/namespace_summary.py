"""The numbers of topics and names of a namespace, counted without reading its names."""

from __future__ import annotations

from dataclasses import dataclass

from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.change_log import CatalogVersion
from broker_core.names import ListedNames, NamespaceName

__all__ = ["NamespaceSummary", "summarize"]

_COUNTS = (
    "SELECT listed, count(*), count(coalesce(nullif(properties, '{}'), nullif(configs, '{}'), replication)) FROM topics"
    " WHERE namespace = (SELECT id FROM namespaces WHERE name = ?) GROUP BY listed"
)


@dataclass(frozen=True, slots=True)
class NamespaceSummary:
    """The size of a namespace: ``topics``, and their listed ``names`` (partitions one by one, system topics too).

    ``with_details`` counts topics with properties, or with configs or replicas of Kafka.
    """

    namespace: NamespaceName
    version: CatalogVersion
    topics: int
    names: int
    with_details: int


def summarize(catalog: SqliteCatalog, namespace: NamespaceName) -> NamespaceSummary:
    """Count a namespace; all is 0 if it never had a topic."""
    version = catalog.version(namespace)
    with catalog.reading() as connection:
        rows = connection.execute(_COUNTS, (str(namespace),)).fetchall()
    return NamespaceSummary(
        namespace,
        version,
        topics=sum(count for _, count, _ in rows),
        names=sum(len(ListedNames.parse(listed)) * count for listed, count, _ in rows),
        with_details=sum(count for _, _, count in rows),
    )
