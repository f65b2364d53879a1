"""One state of the whole catalogue, readable for as long as it takes, for batches and copies."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from broker_core.catalog.catalog_errors import CatalogError, sqlite_errors
from broker_core.catalog.store.load_columns import LoadedNames, load_names
from broker_core.catalog.store.log_rows import read_catalog_id, read_changes
from broker_core.change_log import CatalogVersion, Changes, Gap
from broker_core.names import DOMAINS, NamespaceName

__all__ = ["CatalogState"]


class CatalogState:
    """One state of the whole catalogue, seen by one read transaction while others write.

    Made by :meth:`~broker_core.catalog.SqliteCatalog.state`, and usable within its ``with``, by one thread at a time.
    Errors of SQLite are raised as :exc:`~broker_core.catalog.CatalogError`.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self._path = path
        self._connection = connection
        with sqlite_errors(path):
            #: The random id of the file.
            self.catalog_id = read_catalog_id(connection)
            rows = connection.execute(
                "SELECT n.name, n.id, n.version, s.stamp FROM namespaces n"
                " LEFT JOIN stamps s ON s.namespace = n.id AND s.version = n.version ORDER BY n.name"
            ).fetchall()
        self._numbers = {NamespaceName.parse(name): number for name, number, _, _ in rows}
        #: The version of each namespace that ever had a topic, in order of their names.
        self.versions = {
            NamespaceName.parse(name): CatalogVersion(self.catalog_id, version, stamp or "")
            for name, _, version, stamp in rows
        }

    def names(self, namespace: NamespaceName, domain: str, property_keys: Sequence[str] = ()) -> LoadedNames:
        """The listed local names of one domain as a column, in no particular order, system topics included.

        ``names`` is a large_string column; ``properties`` has a column as long for each of ``property_keys``: the value
        of the name's topic, null if it has none. A namespace that never had a topic has no names.
        """
        if domain not in DOMAINS:
            raise CatalogError(f"A domain is one of {', '.join(DOMAINS)}, not {domain!r:.100}")
        number = self._numbers.get(namespace, 0)  # which no namespace has
        with sqlite_errors(self._path):
            return load_names(self._connection, number, DOMAINS.index(domain), property_keys)

    def changes(self, namespace: NamespaceName, since: CatalogVersion) -> Changes | Gap:
        """The changes after ``since`` up to this state, or a gap if the log does not reach back to it."""
        with sqlite_errors(self._path):
            return read_changes(self._connection, namespace, since)

    def __iter__(self) -> Iterator[NamespaceName]:
        """The namespaces of :attr:`versions`."""
        return iter(self.versions)
