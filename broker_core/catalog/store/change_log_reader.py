"""Reading the embedded catalogue's change log; looking at a version costs no more than it costs a listing.

It has a :class:`~.file_watch.FileWatch` of its own, beside the one of the lister: each has to notice for itself that
another file was put into the place of the catalogue.
"""

from __future__ import annotations

import asyncio
from typing import Final

from broker_core.catalog.errors import reading_catalog
from broker_core.catalog.store.file_watch import FileWatch, WatchedVersions
from broker_core.catalog.store.namespace_change import read_history, read_recreated
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.change_log import CatalogVersion, Change, Changes, Gap
from broker_core.names import NamespaceName, TopicName

__all__ = ["CatalogLogReader"]


class CatalogLogReader:
    """A :class:`~broker_core.change_log.ChangeLog` of the embedded catalogue. Made and used on one event loop."""

    name: Final = "catalog"

    def __init__(self, catalog: SqliteCatalog) -> None:
        self._catalog = catalog
        self._watch = FileWatch(catalog)
        self._versions = WatchedVersions(self._watch, self._watch.version)

    def close(self) -> None:
        """Close the file; no version is known at once from then on."""
        self._watch.close()

    async def catalog_id(self) -> str:
        """The random id of the file that is there now."""
        await self._current()
        return self._watch.catalog_id

    def version_now(self, namespace: NamespaceName) -> CatalogVersion | None:
        """The state of a namespace: a look at the file, and a read of one row where anything was committed since."""
        return self._versions.now(namespace)

    def state_now(self) -> int | None:
        """A number that is another one where anything was committed since; ``None`` where the file cannot be read."""
        return self._watch.state if self._watch.look() else None

    async def version(self, namespace: NamespaceName) -> CatalogVersion:
        """The state of a namespace; waits where the file is being written, or was replaced."""
        now = self.version_now(namespace)
        if now is not None:
            return now
        await self._current()
        with reading_catalog():
            return await asyncio.to_thread(self._catalog.version, namespace)

    async def changes(
        self, namespace: NamespaceName, since: CatalogVersion, *, limit: int | None = None
    ) -> Changes | Gap:
        """The changes after ``since``, or a gap where the log does not reach back to it.

        With a ``limit``, as :meth:`~broker_core.catalog.SqliteCatalog.changes` has it.
        """
        await self._current()
        with reading_catalog():
            return await asyncio.to_thread(self._catalog.changes, namespace, since, limit=limit)

    async def recreated(
        self, namespace: NamespaceName, since: CatalogVersion, gone: CatalogVersion, most: int
    ) -> list[str] | None:
        """The listed names of topics that were made after ``since``, and whose names other topics had after ``gone``.

        ``None`` where the log does not reach back, or there are more than ``most``.
        """
        await self._current()
        with reading_catalog():
            return await asyncio.to_thread(self._recreated, namespace, since, gone, most)

    async def history(self, topic: TopicName, most: int) -> tuple[list[Change], CatalogVersion]:
        """The last changes of a topic, the newest first, and the version behind which the log has all changes."""
        await self._current()
        with reading_catalog():
            return await asyncio.to_thread(self._history, topic, most)

    def _history(self, topic: TopicName, most: int) -> tuple[list[Change], CatalogVersion]:
        with self._catalog.reading() as connection:
            return read_history(connection, topic, most)

    def _recreated(
        self, namespace: NamespaceName, since: CatalogVersion, gone: CatalogVersion, most: int
    ) -> list[str] | None:
        with self._catalog.reading() as connection:
            return read_recreated(connection, namespace, since, gone, most)

    async def _current(self) -> None:
        """See that it is the file in the catalogue's place that is open."""
        with reading_catalog():
            await self._watch.current()
