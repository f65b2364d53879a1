"""The embedded catalogue: one SQLite file that any number of processes read and write at once."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from broker_core.catalog.errors import (
    CatalogBusy,
    CatalogError,
    PairRefused,
    TopicExists,
    TopicInvalid,
    TopicMissing,
    sqlite_errors,
)
from broker_core.catalog.properties import check_properties
from broker_core.catalog.store.catalog_file import connect, file_identity, open_catalog_file
from broker_core.catalog.store.catalog_state import CatalogState
from broker_core.catalog.store.format_migration import (
    Migration,
    migrate_file,
    show_as_current,
    shows_as_current,
)
from broker_core.catalog.store.namespace_change import (
    LogBounds,
    NamespaceChange,
    read_changes,
    read_version,
)
from broker_core.catalog.store.topic_rows import (
    listed_topic,
    make_record,
    named_topic,
    own_topic,
    write_topic,
)
from broker_core.catalog.topic_decisions import (
    MAX_PARTITIONS,
    Decide,
    TopicWrite,
    deletion,
    has_name,
    new_record,
)
from broker_core.catalog.topic_record import TopicRecord
from broker_core.change_log import CatalogVersion, Changes, Gap
from broker_core.names import DOMAINS, NamespaceName, TopicName
from broker_core.names.listed_names import ListedNames

__all__ = ["SqliteCatalog"]

_IDLE_CONNECTIONS = 4
_TOPICS = (
    "SELECT domain, base, listed, topic_id, properties, created FROM topics"
    " WHERE namespace = (SELECT id FROM namespaces WHERE name = ?) ORDER BY domain, base"
)


class SqliteCatalog:
    """The embedded catalogue (the :class:`~broker_core.catalog.topic_record.Catalog` of a broker without a cluster).

    Synchronous, and safe to call from any thread. Opening makes the file where there is none, unless ``create`` is
    false, and raises :exc:`~broker_core.catalog.errors.CatalogUnusable` for a file that is no catalogue. One of an
    earlier release is read as it is; what writes first brings it forward (:meth:`migrate`).

    The next read or write notices that the file was replaced, and opens the new one (SQLite would go on
    with the old one): each call looks at the inode first, which takes some two microseconds.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        create: bool = True,
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
        self._catalog_id = open_catalog_file(self.path, create=create, busy_timeout=busy_timeout)
        self._file = file_identity(self.path)
        #: What became of a file of an earlier format, where this object brought it forward.
        self.migrated: Migration | None = None
        self._current: tuple[int, int] | None = None  # the file that is known to be of this release's format
        #: How many changes were committed by this object: 0, and it has left the file as it was.
        self.committed = 0

    @property
    def catalog_id(self) -> str:
        """The random id of this file; versions of namespaces are comparable under the same id only."""
        self.notice()
        return self._catalog_id

    def close(self) -> None:
        """Close the idle connections; those in use close when they come back."""
        with self._lock:
            self._closed = True
            self._generation += 1
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def notice(self) -> None:
        """Open the file anew where another one was put into its place, as each call does before anything else.

        Raises :exc:`CatalogUnusable` where there is none. It may wait: an event loop has it done by a thread.
        """
        if file_identity(self.path) == self._file or self._closed:
            return
        with self._reopening:
            now = file_identity(self.path)
            if now == self._file:
                return
            # A file that is put there in the midst of this has another identity than `now`: the next call sees it.
            catalog_id = open_catalog_file(self.path, create=False, busy_timeout=self.busy_timeout)
            with self._lock:
                self._generation += 1
                idle, self._idle = self._idle, []
                self._catalog_id, self._file = catalog_id, now
            for connection in idle:
                connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def migrate(self) -> Migration | None:
        """Bring the file of an earlier release to this one's format; ``None`` where it is in it.

        A copy of it is made beside it before, and kept. Whatever writes does this first; a server does it when it
        starts. Raises :exc:`CatalogError` where no copy can be made, and
        :exc:`~broker_core.catalog.errors.CatalogBusy`; the file is as it was then.
        """
        self.notice()
        file = self._file
        if self._current == file:
            return None
        done = migrate_file(self.path)
        self._current = file
        self.migrated = done or self.migrated
        return done

    # -- connections

    def connect(self, *, busy_timeout: float | None = None) -> sqlite3.Connection:
        """A connection of the caller's own, to be closed by it."""
        if self._closed:
            raise CatalogError(f"The catalogue {self.path} is closed")
        self.notice()
        connection = connect(
            self.path, busy_timeout=self.busy_timeout if busy_timeout is None else busy_timeout
        )
        try:
            show_as_current(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def _borrowed(self) -> Iterator[sqlite3.Connection]:
        with sqlite_errors(self.path):
            self.notice()
            with self._lock:
                connection = self._idle.pop() if self._idle else None
                generation = self._generation
            connection = connection or self.connect()
            kept = False
            try:
                try:
                    yield connection
                finally:
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                # One that shows an earlier format as this one must not outlive the migration.
                asis = not shows_as_current(connection)
                with self._lock:
                    kept = asis and generation == self._generation and len(self._idle) < _IDLE_CONNECTIONS
                    if kept:
                        self._idle.append(connection)
            finally:
                if not kept:  # after an error too: the state of the connection is unknown
                    connection.close()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection within a transaction that sees one state of the catalogue, whatever is written meanwhile."""
        with self._borrowed() as connection:
            connection.execute("BEGIN")
            yield connection

    @contextmanager
    def changing(
        self, namespace: NamespaceName, *, dry_run: bool = False, wait: float | None = None
    ) -> Iterator[tuple[sqlite3.Connection, NamespaceChange]]:
        """A transaction that makes the next version of a namespace; an error inside leaves everything as it was.

        A ``dry_run`` changes nothing, whatever is done inside. ``wait`` is how many seconds other writers may take
        before it is a :exc:`~broker_core.catalog.errors.CatalogBusy`, instead of the time-out.
        """
        if not dry_run:
            self.migrate()
        with self._turn_to_write(wait), self._borrowed() as connection:
            # Also where the last one that had this connection waited for another time.
            patience = self.busy_timeout if wait is None else wait
            connection.execute(f"PRAGMA busy_timeout = {int(patience * 1000)}")
            connection.execute("BEGIN IMMEDIATE")
            change = NamespaceChange(connection, namespace, self.log_bounds)
            yield connection, change
            if change.changed and not dry_run:
                change.finish()
                connection.execute("COMMIT")
                self.committed += 1

    @contextmanager
    def _turn_to_write(self, wait: float | None) -> Iterator[None]:
        if not self._writing.acquire(timeout=-1 if wait is None else wait):
            raise CatalogBusy(f"The catalogue {self.path} is being written; try again when it is done")
        try:
            yield
        finally:
            self._writing.release()

    # -- reading

    def namespaces(self) -> list[NamespaceName]:
        """The namespaces that hold a topic, in order of their names."""
        with self.reading() as connection:
            rows = connection.execute(
                "SELECT name FROM namespaces n WHERE EXISTS (SELECT 1 FROM topics WHERE namespace = n.id) ORDER BY name"
            )
            return [NamespaceName.parse(name) for (name,) in rows]

    def version(self, namespace: NamespaceName) -> CatalogVersion:
        """The state of a namespace now; number 0 where it never had a topic."""
        with self.reading() as connection:
            return read_version(connection, namespace)

    def changes(
        self, namespace: NamespaceName, since: CatalogVersion, *, limit: int | None = None
    ) -> Changes | Gap:
        """The changes after ``since``, or a gap where the log does not reach back to it.

        With a ``limit`` those of as many versions as have so many changes together, and of one at least.
        """
        with self.reading() as connection:
            return read_changes(connection, namespace, since, limit=limit)

    @contextmanager
    def topics(self, namespace: NamespaceName) -> Iterator[tuple[CatalogVersion, Iterator[TopicRecord]]]:
        """All topics of a namespace, system topics too, and the version that they are: what to read after a gap.

        They come one by one from a single state of the file, as long as the ``with`` lasts.
        """
        with self.reading() as connection:
            version = read_version(connection, namespace)
            rows = connection.execute(_TOPICS, (str(namespace),))
            yield (
                version,
                (
                    make_record(TopicName(DOMAINS[domain], namespace, base), *rest)
                    for domain, base, *rest in rows
                ),
            )

    @contextmanager
    def state(self) -> Iterator[CatalogState]:
        """The whole catalogue as it is at one moment, whatever is written meanwhile."""
        with self.reading() as connection:
            yield CatalogState(self.path, connection)

    def topic(self, name: TopicName) -> TopicRecord | None:
        """The topic that is listed by this name, or whose own name it is; ``None`` where there is neither."""
        with self.reading() as connection:
            return named_topic(connection, name)

    def partitions(self, name: TopicName) -> int | None:
        """The number of partitions of a topic: the highest index and one; 0 for one without, and for a partition.

        ``None`` where the catalogue has no such topic.
        """
        with self.reading() as connection:
            own = own_topic(connection, name)
            if own is not None:
                return own.partitions
            return 0 if listed_topic(connection, name) else None

    # -- writing

    def create(
        self, name: TopicName, *, partitions: int = 0, properties: Mapping[str, str] | None = None
    ) -> TopicRecord:
        """Add a topic: a plain one, one of ``partitions``, or (by a partition's name) one more partition of a topic.

        Raises :exc:`TopicExists` where the topic, or that partition, is there, and
        :exc:`~broker_core.catalog.errors.PairRefused` for a partition beside a topic without any, with different
        properties. Properties given with a further partition replace those of its topic.
        """
        if not 0 <= partitions <= MAX_PARTITIONS:
            raise TopicInvalid(f"A topic has 0 to {MAX_PARTITIONS} partitions, not {partitions}")
        base, index = (name.local, -1) if partitions else TopicName.split_local(name.local)
        own = TopicName(name.domain, name.namespace, base)
        listed = ListedNames.partitioned(partitions) if partitions else ListedNames.of(index)
        with self.changing(name.namespace) as (connection, change):
            before = own_topic(connection, own)
            if before is not None and (index < 0 or index in before.listed):
                raise TopicExists(f"Topic {name} is there already")
            if before is None:
                after = new_record(own, listed, properties or {})
            else:
                kept = before.properties if properties is None else check_properties(properties)
                if before.listed.plain:
                    given = before.properties if properties is None and before.listed.ranges else properties
                    if dict(given or {}) != dict(before.properties):
                        raise PairRefused.of(str(own), listed)
                after = replace(before, listed=before.listed | listed, properties=kept)
            written = write_topic(connection, change, before, after)
            assert written is not None
            return written

    def edit(
        self,
        name: TopicName,
        decide: Decide,
        *,
        require: Callable[[TopicRecord | None], object] | None = None,
        wait: float | None = None,
    ) -> TopicWrite:
        """Make of a topic what ``decide`` makes of it as it is (:mod:`broker_core.catalog.topic_decisions`).

        ``require`` is called with the topic of this name, or ``None``, in the same transaction before, and raises
        :exc:`~broker_core.catalog.errors.PreconditionFailed`, say. ``wait`` is that of :meth:`changing`. Nothing to
        change leaves the version as it is, and so does whatever is raised.
        """
        with self.changing(name.namespace, wait=wait) as (connection, change):
            before = named_topic(connection, name)
            if before is None and name.partition >= 0:
                before = own_topic(connection, name.partitioned_name)
            if require is not None:
                require(before if before is not None and has_name(before, name) else None)
            after = write_topic(connection, change, before, decide(before))
            catalog_id = self._catalog_id
            version = (
                change.version_in(catalog_id) if change.changed else read_version(connection, name.namespace)
            )
        return TopicWrite(before, after, version)

    def delete(self, name: TopicName) -> TopicRecord:
        """Remove a topic with all names that it is listed by or, by a partition's name, that partition alone.

        The id is never used again: a topic of the same name that is created later has another. The record is what the
        topic was before. Raises :exc:`TopicMissing`.
        """
        before = self.edit(name, deletion(name)).before
        assert before is not None
        return before

    def delete_all(self, names: Iterable[TopicName]) -> list[TopicRecord]:
        """Remove several topics as :meth:`delete` does, of any namespaces: all, or none where one is missing."""
        self.migrate()
        with self._writing, self._borrowed() as connection:
            connection.execute("BEGIN IMMEDIATE")
            changes: dict[NamespaceName, NamespaceChange] = {}
            removed = []
            for name in names:
                if name.namespace not in changes:
                    changes[name.namespace] = NamespaceChange(connection, name.namespace, self.log_bounds)
                before = named_topic(connection, name)
                write_topic(connection, changes[name.namespace], before, deletion(name)(before))
                assert before is not None
                removed.append(before)
            for change in changes.values():
                change.finish()
            connection.execute("COMMIT")
            self.committed += 1
            return removed

    def set_properties(self, name: TopicName, properties: Mapping[str, str]) -> TopicRecord:
        """Replace the properties of a topic, named by its own name or by one of its partitions.

        Raises :exc:`TopicMissing`. Properties that it has already change nothing, the version included.
        """
        given = check_properties(properties)

        def decide(topic: TopicRecord | None) -> TopicRecord:
            if topic is None or not has_name(topic, name):
                raise TopicMissing(f"There is no topic {name} in the catalogue")
            return replace(topic, properties=given)

        after = self.edit(name, decide).after
        assert after is not None
        return after
