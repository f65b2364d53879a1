"""Reader of the embedded catalogue's change log; reading a version costs no more than for a listing.

It has a :class:`~.file_watch.FileWatch` of its own, beside the lister's: each has to notice itself that another file
was put into the place of the catalogue.
"""

from __future__ import annotations

import asyncio
from typing import Final

from broker_core.catalog.catalog_errors import reading_catalog
from broker_core.catalog.store.file_watch import FileWatch, WatchedVersions
from broker_core.catalog.store.log_rows import (
    LogSpan,
    SpanBound,
    none_recreated,
    read_changes_of,
    read_history,
    read_recreated,
    read_span,
)
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.store.write_notices import WriteNotices
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
        #: Of the file.
        self.writes = WriteNotices(catalog.path)

    def close(self) -> None:
        """Close the file; after that no version is known at once."""
        self.writes.close()
        self._watch.close()

    async def catalog_id(self) -> str:
        """The random id of the file that is there now."""
        await self._current()
        return self._watch.catalog_id

    def version_now(self, namespace: NamespaceName) -> CatalogVersion | None:
        """The state of a namespace: costs a look at the file, and a read of one row if anything was committed since."""
        return self._versions.now(namespace)

    def version_seen(self, namespace: NamespaceName) -> CatalogVersion | None:
        """As :meth:`version_now`, of the last look or a later moment."""
        return self._versions.seen(namespace)

    def state_now(self) -> int | None:
        """A number that changes with every commit; ``None`` if the file cannot be read."""
        return self._watch.state if self._watch.look() else None

    async def version(self, namespace: NamespaceName) -> CatalogVersion:
        """The state of a namespace; waits if the file is being written, or was replaced."""
        now = self.version_now(namespace)
        if now is not None:
            return now
        await self._current()
        with reading_catalog():
            return await asyncio.to_thread(self._catalog.version, namespace)

    async def changes(self, namespace: NamespaceName, since: CatalogVersion) -> Changes | Gap:
        """The changes after ``since``, or a gap if the log does not reach back to it."""
        await self._current()
        with reading_catalog():
            return await asyncio.to_thread(self._catalog.changes, namespace, since)

    async def span(self, namespace: NamespaceName, since: CatalogVersion, within: SpanBound) -> LogSpan | Gap:
        """The changes after ``since`` that keep a bound, to be read by :meth:`changes_of`."""
        await self._current()
        with reading_catalog():
            return await asyncio.to_thread(self._span, namespace, since, within)

    async def changes_of(self, namespace: NamespaceName, span: LogSpan) -> Changes | Gap:
        """The changes of a span, or a gap if the log has them no longer."""
        await self._current()
        with reading_catalog():
            return await asyncio.to_thread(self._changes_of, namespace, span)

    async def recreated(
        self, namespace: NamespaceName, since: CatalogVersion, gone: CatalogVersion, most: int
    ) -> list[str] | None:
        """The listed names of topics made after ``since`` whose names other topics had after ``gone``.

        ``None`` if the log does not reach back, or there are more than ``most``.
        """
        # A thread would take longer for so few rows, and as a rule nothing was made again.
        if self._watch.read_row(lambda now: none_recreated(now, namespace, since, gone)):
            return []
        await self._current()
        with reading_catalog():
            return await asyncio.to_thread(self._recreated, namespace, since, gone, most)

    async def history(
        self, topic: TopicName, most: int, most_text: int
    ) -> tuple[list[Change], CatalogVersion, bool]:
        """The last changes of a topic, the newest first, the version after which the log has all changes, and whether
        older ones may be left out: there are ``most`` at the most, of ``most_text`` characters that clients chose.
        """
        await self._current()
        with reading_catalog():
            return await asyncio.to_thread(self._history, topic, most, most_text)

    def _span(self, namespace: NamespaceName, since: CatalogVersion, within: SpanBound) -> LogSpan | Gap:
        with self._catalog.reading() as connection:
            return read_span(connection, namespace, since, within=within)

    def _changes_of(self, namespace: NamespaceName, span: LogSpan) -> Changes | Gap:
        with self._catalog.reading() as connection:
            return read_changes_of(connection, namespace, span)

    def _history(
        self, topic: TopicName, most: int, most_text: int
    ) -> tuple[list[Change], CatalogVersion, bool]:
        with self._catalog.reading() as connection:
            return read_history(connection, topic, most, most_text)

    def _recreated(
        self, namespace: NamespaceName, since: CatalogVersion, gone: CatalogVersion, most: int
    ) -> list[str] | None:
        with self._catalog.reading() as connection:
            return read_recreated(connection, namespace, since, gone, most)

    async def _current(self) -> None:
        """Make sure that the open file is the one at the catalogue's path."""
        with reading_catalog():
            await self._watch.current()
