"""Detection of changes of the catalogue's file, in microseconds, so that every listing can look.

``PRAGMA data_version`` changes with every commit of another connection, of this process or of another one; the watch
has a connection of its own that never writes. A file that was put into the place of the one that is open is noticed
by its inode, as the catalogue itself notices it: SQLite would go on reading the old one.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from broker_core.catalog.catalog_errors import reading_catalog, sqlite_errors
from broker_core.catalog.store.catalog_file import Identity, file_identity
from broker_core.catalog.store.log_rows import RecentRows, read_catalog_id, read_recent, read_version
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.change_log import CatalogVersion
from broker_core.names import NamespaceName

__all__ = ["FileWatch", "WatchedVersions"]

T = TypeVar("T")

#: Namespaces whose version is remembered for as long as nothing is committed.
_REMEMBERED: Final = 10_000

#: Seconds that the first look waits for a process that has locked the file: it migrates it, or begins to use it.
_AT_THE_START: Final = 5.0
#: The length of the identity of a file that is not read alone.
_PLAIN: Final = 2


class FileWatch:
    """A watch of a catalogue's file; for one thread only, and without ever waiting."""

    def __init__(self, catalog: SqliteCatalog) -> None:
        self._catalog = catalog
        self._path = catalog.path
        self._together = 0
        self._data_version = -1
        #: Counts the states of the file that were noticed; equal numbers mean equal content.
        self.state = 0
        #: The id of the file that is open.
        self.catalog_id = ""
        self._connection, self._file = self._opened(_AT_THE_START)
        self._reopening = asyncio.Lock()

    def close(self) -> None:
        """Close the file; after that every look fails."""
        self._connection.close()

    def look(self, together: int = 0) -> bool:
        """Notice commits (:attr:`state`); false if the file cannot be read, or is another one.

        Calls with the same ``together`` other than 0 are one look: all of their requests arrived before the first.
        """
        if together and together == self._together:
            return True
        try:
            if self.replaced:
                return False
            (data_version,) = self._connection.execute("PRAGMA data_version").fetchone()
        except sqlite3.Error:
            return False
        if data_version != self._data_version:
            self._data_version = data_version
            self.state += 1
        self._together = together
        return True

    def version(self, namespace: NamespaceName) -> CatalogVersion | None:
        """The version of a namespace now, ``None`` if it cannot be read at once."""
        return self.read_seen(lambda connection: read_version(connection, namespace))

    def recent(self, namespace: NamespaceName, since: CatalogVersion, most: int) -> RecentRows | None:
        """The changes after a version until now; ``None`` if they are more than ``most``, or not known at once."""
        return self.read_seen(lambda connection: read_recent(connection, namespace, since, most))

    def read(self, query: Callable[[sqlite3.Connection], T], together: int = 0) -> T | None:
        """The result of queries of a few rows in the current state of the file; ``None`` if it cannot be read at once.

        ``together`` is as for :meth:`look`.
        """

        def in_one_state(connection: sqlite3.Connection) -> T:
            connection.execute("BEGIN")
            try:
                return query(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

        return self.read_seen(in_one_state) if self.look(together) else None

    def read_row(self, query: Callable[[sqlite3.Connection], T]) -> T | None:
        """The result of a query of one statement, after a look; ``None`` if it cannot be read at once."""
        return self.read_seen(query) if self.look() else None

    def last_change(self) -> tuple[int, float] | None:
        """The number of the newest logged change of any topic, and its time in Unix seconds; ``None`` before the first.

        Also ``None`` if that cannot be read at once.
        """
        row = self.read_seen(
            lambda connection: connection.execute(
                "SELECT id, time FROM changes ORDER BY id DESC LIMIT 1"
            ).fetchone()
        )
        return None if row is None else (int(row[0]), row[1] / 1000)

    def read_seen(self, query: Callable[[sqlite3.Connection], T]) -> T | None:
        """The result of a query as of the last look, or of a later moment; ``None`` if it cannot be read at once."""
        try:
            found = query(self._connection)
        except sqlite3.Error:
            return None
        # A file that is read alone may be written at any time.
        return None if self._file is not None and len(self._file) > _PLAIN and self.replaced else found

    @property
    def replaced(self) -> bool:
        """Whether there is another file in the place of the one that is open, or none."""
        return file_identity(self._path, alone=self._catalog.is_alone) != self._file

    async def current(self) -> bool:
        """Make sure that the open file is the one at the catalogue's path; returns whether it had been replaced.

        Raises :exc:`~broker_core.catalog.CatalogError`.
        """
        if not self.replaced:
            return False
        async with self._reopening:
            if not self.replaced:
                return False
            await asyncio.to_thread(self._catalog.notice)
            self.reopen()
            return True

    async def read_in_thread(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """The result of queries in one state of the file at the catalogue's path.

        Raises :exc:`~broker_core.errors.ListingFailed` (``Cause.CATALOG``).
        """
        with reading_catalog():
            await self.current()
            return await asyncio.to_thread(self._catalog.read, query)

    def reopen(self) -> None:
        """Open the file that is there now, after :meth:`SqliteCatalog.notice`."""
        connection, file = self._opened(0.0)
        self._connection.close()
        self._connection, self._file = connection, file
        self._data_version = -1
        self.state += 1

    def _opened(self, patience: float) -> tuple[sqlite3.Connection, Identity | None]:
        with sqlite_errors(self._path):
            # Before it is opened: if a file is put there meanwhile, the next look finds that it is another one.
            file = self._catalog.identity
            connection = self._catalog.connect(busy_timeout=patience)
            try:
                connection.execute("PRAGMA query_only = ON")
                self.catalog_id = read_catalog_id(connection)
                connection.execute("PRAGMA busy_timeout = 0")
            except BaseException:
                connection.close()
                raise
            return connection, file


class WatchedVersions(Generic[T]):
    """A version of each namespace, which ``read`` reads from the file if anything was committed since."""

    def __init__(self, watch: FileWatch, read: Callable[[NamespaceName], T | None]) -> None:
        self._watch = watch
        self._read = read
        self._known: dict[NamespaceName, T] = {}
        self._known_state = -1  # of the file, that all of the known versions are for

    def version_now(self, namespace: NamespaceName) -> T | None:
        """The version now: a look at the file, and a read of a few rows if anything was committed since the last one.

        ``None`` if it cannot be read at once.
        """
        return self.version_seen(namespace) if self._watch.look() else None

    def version_seen(self, namespace: NamespaceName) -> T | None:
        """The version as of the last look, or of a later moment; ``None`` if it cannot be read at once."""
        if self._known_state != self._watch.state or len(self._known) > _REMEMBERED:
            self._known.clear()
            self._known_state = self._watch.state
        known = self._known.get(namespace)
        if known is None:
            known = self._read(namespace)
            if known is not None:
                self._known[namespace] = known
        return known
