"""The connections to a catalogue's file: reading transactions, writing ones, and noticing another file in its place."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self, TypeVar

from broker_core.catalog.catalog_errors import (
    CatalogBusy,
    CatalogError,
    CatalogReadOnly,
    CatalogUnusable,
    sqlite_errors,
)
from broker_core.catalog.store.catalog_file import (
    NEW_MODE,
    Identity,
    connect,
    file_identity,
    is_alone,
    open_catalog_file,
)
from broker_core.catalog.store.change_log_writer import LogBounds, NamespaceChange
from broker_core.catalog.store.format_migration import (
    Migration,
    migrate_file,
    show_as_current,
    shows_as_current,
)
from broker_core.names import NamespaceName

__all__ = ["CatalogConnections"]

T = TypeVar("T")

_IDLE_CONNECTIONS: Final = 4
#: Attempts to open a file while its log comes and goes.
_ATTEMPTS: Final = 5


class CatalogConnections:
    """A catalogue's file, open for any thread.

    Synchronous, and safe to call from any thread. Opening makes the file, with the rights of ``mode``, if there is
    none, unless ``create`` is false. It raises :exc:`~broker_core.catalog.CatalogUnusable` for a file that is
    not a catalogue. A file of an earlier release is read as it is; the first write migrates it (:meth:`migrate`).

    The next read or write notices that the file was replaced, and opens the new one (SQLite would go on with the old
    one): each call checks the inode first, which takes some two microseconds.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        create: bool = True,
        mode: int = NEW_MODE,
        log: LogBounds = LogBounds(),  # noqa: B008 - frozen
        busy_timeout: float = 30.0,
    ) -> None:
        self.path = Path(path)
        self.log_bounds = log
        self._create = create
        #: Seconds that a write waits for other processes.
        self.busy_timeout = busy_timeout
        self._writing = threading.Lock()
        self._idle: list[sqlite3.Connection] = []
        self._generation = 0
        self._closed = False
        self._lock = threading.Lock()
        self._reopening = threading.Lock()
        #: ``is_alone``: whether the file is read alone (:mod:`~broker_core.catalog.store.catalog_file`).
        self._catalog_id, self.is_alone, self._file = self._open(create=create, mode=mode)
        #: The migration, if this object migrated a file of an earlier format.
        self.migrated: Migration | None = None
        self._current: Identity | None = None  # the file that is known to be of this release's format
        #: How many changes this object committed; if 0, it has left the file as it was.
        self.committed = 0

    def _open(self, *, create: bool = False, mode: int = NEW_MODE) -> tuple[str, bool, Identity | None]:
        """Open the file: its id, whether it is read alone (:mod:`~broker_core.catalog.store.catalog_file`), and its
        identity. Raises :exc:`CatalogUnusable`.
        """
        attempts = 0
        while True:
            attempts += 1
            alone = is_alone(self.path)
            before = file_identity(self.path, alone=alone)
            try:
                catalog_id = open_catalog_file(
                    self.path,
                    create=create and not alone,
                    mode=mode,
                    alone=alone,
                    busy_timeout=self.busy_timeout,
                )
            except CatalogUnusable as failed:
                # The log may have gone with its writer before it was opened, where this user can make none.
                code = getattr(failed.__cause__, "sqlite_errorname", "")
                if attempts == _ATTEMPTS or not code.startswith("SQLITE_CANTOPEN"):
                    raise
            else:
                # A file that is put there meanwhile has another identity: the next call sees it.
                return catalog_id, alone, before or file_identity(self.path)

    @property
    def catalog_id(self) -> str:
        """The random id of this file; versions of namespaces are comparable under the same id only."""
        self.notice()
        return self._catalog_id

    @property
    def identity(self) -> Identity | None:
        """The identity of the file that is there now; of its state, if it is read alone."""
        return file_identity(self.path, alone=self.is_alone)

    @property
    def is_writable(self) -> bool:
        """Whether this user may write the file, and beside it."""
        return not self.is_alone and os.access(self.path, os.W_OK)

    def close(self) -> None:
        """Close the idle connections; those in use close when they come back."""
        with self._lock:
            self._closed = True
            self._generation += 1
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def notice(self) -> None:
        """Open the file anew if another one was put into its place, as each call does before anything else.

        Raises :exc:`CatalogUnusable` if there is none. It may wait, so an event loop calls it in a thread.
        """
        if self.identity == self._file or self._closed:
            return
        with self._reopening:
            if self.identity == self._file:
                return
            catalog_id, alone, now = self._open()
            with self._lock:
                self._generation += 1
                idle, self._idle = self._idle, []
                self._catalog_id, self.is_alone, self._file = catalog_id, alone, now
            for connection in idle:
                connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def deletion_delay(self) -> int:
        """For how many milliseconds the id of a deleted topic is kept, and given to no other topic."""
        return self.log_bounds.deleted

    @deletion_delay.setter
    def deletion_delay(self, milliseconds: int) -> None:
        self.log_bounds = replace(self.log_bounds, deleted=milliseconds)

    def migrate(self) -> Migration | None:
        """Migrate the file of an earlier release to this release's format; ``None`` if it has that format already.

        A copy is made beside it before, and kept. Every write does this first; a server does it when it starts. Raises
        :exc:`CatalogError` if no copy can be made, and
        :exc:`~broker_core.catalog.CatalogBusy`; then the file is as it was.
        """
        self.notice()
        file = self._file
        if self.is_alone:
            raise CatalogReadOnly(
                f"The catalogue {self.path} cannot be written: check the file's and folder's rights"
            )
        if self._current == file:
            return None
        done = migrate_file(self.path)
        self._current = file
        self.migrated = done or self.migrated
        return done

    def connect(self, *, busy_timeout: float | None = None) -> sqlite3.Connection:
        """A new connection, which the caller closes."""
        if self._closed:
            raise CatalogError(f"The catalogue {self.path} is closed")
        self.notice()
        connection = connect(
            self.path,
            alone=self.is_alone,
            busy_timeout=self.busy_timeout if busy_timeout is None else busy_timeout,
        )
        try:
            show_as_current(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _borrowed(self, *, noticed: bool = False) -> Iterator[sqlite3.Connection]:
        """A connection to the file that is there now; ``noticed``: the caller has called :meth:`notice`."""
        with sqlite_errors(self.path):
            if not noticed:
                self.notice()
            with self._lock:
                connection = self._idle.pop() if self._idle else None
                generation = self._generation
                alone, file = self.is_alone, self._file
            asis = True  # as any that is idle
            if connection is None:
                connection = self.connect()
                alone = alone or self.is_alone
                # A connection that shows an earlier format as the current one must not outlive the migration.
                asis = not shows_as_current(connection)
            kept = False
            try:
                try:
                    yield connection
                except Exception as error:
                    if alone:  # what failed may be pages that were written meanwhile
                        self._check_alone(file, error)
                    raise
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                if alone:
                    self._check_alone(file)
                with self._lock:
                    kept = asis and generation == self._generation and len(self._idle) < _IDLE_CONNECTIONS
                    if kept:
                        self._idle.append(connection)
            finally:
                if not kept:  # after an error too: the state of the connection is unknown
                    connection.close()

    def _check_alone(self, before: Identity | None, error: Exception | None = None) -> None:
        """Raise :exc:`CatalogBusy` if a file that was read alone was written since; a log alone changed nothing yet."""
        now = file_identity(self.path, alone=True)
        if now is None or before is None or now[:-1] != before[:-1]:
            raise CatalogBusy(
                f"The catalogue {self.path} was written while it was read; try again"
            ) from error

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection within a transaction that sees one state of the catalogue, whatever is written meanwhile."""
        with self._borrowed() as connection:
            connection.execute("BEGIN")
            yield connection

    def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """The result of queries in one state of the catalogue."""
        with self.reading() as connection:
            return query(connection)

    @contextmanager
    def changing(
        self, namespace: NamespaceName, *, dry_run: bool = False, wait: float | None = None
    ) -> Iterator[tuple[sqlite3.Connection, NamespaceChange]]:
        """A transaction that makes the next version of a namespace; an error inside leaves everything as it was.

        A ``dry_run`` changes nothing, whatever is done inside. ``wait`` is how many seconds other writers may take
        before it is a :exc:`~broker_core.catalog.CatalogBusy`, instead of the time-out.
        """
        if not dry_run:
            self.migrate()
        with self._turn_to_write(wait), self._borrowed(noticed=not dry_run) as connection:
            self._begin(connection, wait)
            change = NamespaceChange(connection, namespace, self.log_bounds)
            yield connection, change
            if change.changed and not dry_run:
                change.finish()
                connection.execute("COMMIT")
                self.committed += 1

    def _begin(self, connection: sqlite3.Connection, wait: float | None = None) -> None:
        """Begin to write; if that fails after ``wait`` seconds, the connection is not used again."""
        if wait is None:
            connection.execute("BEGIN IMMEDIATE")
            return
        connection.execute(f"PRAGMA busy_timeout = {int(wait * 1000)}")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(f"PRAGMA busy_timeout = {int(self.busy_timeout * 1000)}")

    @contextmanager
    def _turn_to_write(self, wait: float | None) -> Iterator[None]:
        if not self._writing.acquire(timeout=-1 if wait is None else wait):
            raise CatalogBusy(f"The catalogue {self.path} is being written; try again when it is done")
        try:
            yield
        finally:
            self._writing.release()

    @contextmanager
    def _writing_rows(self) -> Iterator[sqlite3.Connection]:
        """A transaction that writes rows other than topics; if nothing is written, the file stays as it was."""
        self.migrate()
        with self._turn_to_write(None), self._borrowed() as connection:
            self._begin(connection)
            before = connection.total_changes
            yield connection
            if connection.total_changes > before:
                connection.execute("COMMIT")
                self.committed += 1
