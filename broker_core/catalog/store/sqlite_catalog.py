"""The embedded catalogue: one SQLite file that any number of processes read and write at once.

One state of it can be read for as long as it takes, for batches and copies (:class:`CatalogState`).
"""

from __future__ import annotations

import sqlite3
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from broker_core.catalog.catalog_errors import CatalogError, TopicMissing, sqlite_errors
from broker_core.catalog.store.change_log_writer import DeletedTopic, NamespaceChange, deleted_topic
from broker_core.catalog.store.format_migration import bring_forward_for_a_dry_run
from broker_core.catalog.store.kafka_administration import KafkaAdministration
from broker_core.catalog.store.load_columns import LoadedNames, load_names
from broker_core.catalog.store.log_rows import read_catalog_id, read_changes, read_version, when
from broker_core.catalog.store.topic_rows import (
    Edit,
    Require,
    TopicWriter,
    edit_each,
    found_topics,
    listed_topic,
    named_topic,
    own_topic,
    topic_of_id,
    topics_of,
)
from broker_core.catalog.topic_decisions import Decide, TopicWrite, adjustment, creation, deletion
from broker_core.catalog.topic_record import TopicRecord, check_properties
from broker_core.change_log import CatalogVersion, Changes, Gap
from broker_core.names import DOMAINS, NamespaceName, TopicName, topic_id_text

__all__ = ["CatalogState", "SqliteCatalog"]


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


class SqliteCatalog(KafkaAdministration):
    """The embedded catalogue (the :class:`~broker_core.catalog.topic_record.Catalog` of a broker without a cluster).

    Synchronous, and safe to call from any thread: see :class:`~.catalog_connections.CatalogConnections` for its file.
    """

    # -- reading

    def namespaces(self) -> list[NamespaceName]:
        """The namespaces that hold a topic, in order of their names."""
        with self.reading() as connection:
            rows = connection.execute(
                "SELECT name FROM namespaces n WHERE EXISTS (SELECT 1 FROM topics WHERE namespace = n.id) ORDER BY name"
            )
            return [NamespaceName.parse(name) for (name,) in rows]

    def version(self, namespace: NamespaceName) -> CatalogVersion:
        """The state of a namespace now; number 0 if it never had a topic."""
        with self.reading() as connection:
            return read_version(connection, namespace)

    def changes(
        self, namespace: NamespaceName, since: CatalogVersion, *, limit: int | None = None
    ) -> Changes | Gap:
        """The changes after ``since``, or a gap if the log does not reach back to it.

        With a ``limit`` the changes of as many versions as have at most so many together, and of at least one.
        """
        with self.reading() as connection:
            return read_changes(connection, namespace, since, limit=limit)

    @contextmanager
    def topics(self, namespace: NamespaceName) -> Iterator[tuple[CatalogVersion, Iterator[TopicRecord]]]:
        """All topics of a namespace, system topics too, and their version: to be read after a gap.

        They are read one by one from a single state of the file, within the ``with``.
        """
        with self.reading() as connection:
            yield read_version(connection, namespace), topics_of(connection, namespace)

    @contextmanager
    def state(self) -> Iterator[CatalogState]:
        """The whole catalogue as it is at one moment, whatever is written meanwhile."""
        with self.reading() as connection:
            yield CatalogState(self.path, connection)

    def topic(self, name: TopicName) -> TopicRecord | None:
        """The topic that is listed by this name, or whose own name it is; ``None`` if there is neither."""
        with self.reading() as connection:
            return named_topic(connection, name)

    def found(self, names: Sequence[TopicName]) -> list[tuple[TopicRecord | None, int]]:
        """For each name of one namespace the result of :meth:`topic`, and how many partitions exactly this name has."""
        with self.reading() as connection:
            return found_topics(connection, names)

    def topics_by_id(self, ids: Sequence[uuid.UUID]) -> list[TopicRecord | None]:
        """The topics that have these ids, in whatever namespace, in their order."""
        with self.reading() as connection:
            return [topic_of_id(connection, topic_id) for topic_id in ids]

    def partitions(self, name: TopicName) -> int | None:
        """The number of partitions of a topic: the highest index and one; 0 for one without, and for a partition.

        ``None`` if the catalogue has no such topic.
        """
        with self.reading() as connection:
            own = own_topic(connection, name)
            if own is not None:
                return own.partitions
            return 0 if listed_topic(connection, name) else None

    def topic_by_id(self, topic_id: uuid.UUID) -> TopicRecord | None:
        """The topic that has this id, in whatever namespace."""
        with self.reading() as connection:
            return topic_of_id(connection, topic_id)

    def deleted_topic(self, topic_id: uuid.UUID) -> DeletedTopic | None:
        """The topic that had this id, for :attr:`deletion_delay` after it was deleted."""
        since = time.time_ns() // 1_000_000 - self.deletion_delay
        with self.reading() as connection:
            return deleted_topic(connection, topic_id, since)

    def topic_of_id(self, topic_id: uuid.UUID) -> TopicRecord:
        """The topic that has this id; if none has, a :exc:`TopicMissing` says what became of it."""
        record = self.topic_by_id(topic_id)
        if record is None:
            raise _no_such_id(topic_id, self.deleted_topic(topic_id))
        return record

    def was_deleted(self, topic_id: uuid.UUID) -> bool:
        """Whether a topic of this id was deleted, within :attr:`deletion_delay`."""
        return self.deleted_topic(topic_id) is not None

    # -- writing

    def create(
        self, name: TopicName, *, partitions: int = 0, properties: Mapping[str, str] | None = None
    ) -> TopicRecord:
        """Add a topic: a plain one, one of ``partitions``, or (by its name) a partition that a topic lacks.

        Raises :exc:`TopicExists`, and :exc:`~.catalog_errors.PartitionRefused` for a partition that no topic
        has room for.
        """
        after = self.edit(name, creation(name, partitions, properties)).after
        assert after is not None
        return after

    def edit(
        self,
        name: TopicName,
        decide: Decide,
        *,
        require: Require | None = None,
        dry_run: bool = False,
    ) -> TopicWrite:
        """Change a topic to what ``decide`` makes of its current state (:mod:`broker_core.catalog.topic_decisions`).

        ``require`` is called before with the topic of this name, or ``None``, in the same transaction, and may raise
        :exc:`~.catalog_errors.PreconditionFailed`, say. ``dry_run`` is as for :meth:`changing`. If nothing
        changes, or anything is raised, the version stays as it is.
        """
        (done,) = self.edit_many(name.namespace, [Edit(name, decide, require)], dry_run=dry_run)
        if isinstance(done, CatalogError):
            raise done
        return done

    def edit_many(
        self,
        namespace: NamespaceName,
        edits: Sequence[Edit],
        *,
        wait: float | None = None,
        dry_run: bool = False,
    ) -> list[TopicWrite | CatalogError]:
        """Do edits of topics of one namespace in their order, in one transaction and one version.

        Each result is a success, or the error that :meth:`edit` would raise for it. Errors of the catalogue itself
        (:exc:`CatalogBusy`, say) are raised, and no edit was written.
        """
        with self.changing(namespace, wait=wait, dry_run=dry_run) as (connection, change):
            if dry_run:
                bring_forward_for_a_dry_run(connection)
            done = edit_each(connection, change, edits)
            catalog_id = self._catalog_id
            version = change.version_in(catalog_id) if change.changed else read_version(connection, namespace)
        return [each if isinstance(each, CatalogError) else TopicWrite(*each, version) for each in done]

    def delete(self, name: TopicName) -> TopicRecord:
        """Remove a topic with all names that it is listed by or, by a partition's name, only that partition.

        The id is never used again: a topic of the same name that is created later has another. The record is the topic
        before the deletion. Raises :exc:`TopicMissing`.
        """
        before = self.edit(name, deletion(name)).before
        assert before is not None
        return before

    def delete_all(self, names: Iterable[TopicName | uuid.UUID]) -> list[TopicRecord]:
        """Remove several topics as :meth:`delete` does, of any namespaces: all, or none if one is missing.

        A topic given by its id goes with all names that it is listed by.
        """
        self.migrate()
        with self._writing, self._borrowed() as connection:
            connection.execute("BEGIN IMMEDIATE")
            writers: dict[NamespaceName, TopicWriter] = {}
            removed = []
            for given in names:
                name = _name_of(connection, given) if isinstance(given, uuid.UUID) else given
                if name.namespace not in writers:
                    change = NamespaceChange(connection, name.namespace, self.log_bounds)
                    writers[name.namespace] = TopicWriter(connection, change)
                before = named_topic(connection, name)
                writers[name.namespace].write(before, deletion(name)(before))
                writers[name.namespace].flush()
                assert before is not None
                removed.append(before)
            for writer in writers.values():
                writer.change.finish()
            connection.execute("COMMIT")
            self.committed += 1
            return removed

    def set_properties(self, name: TopicName, properties: Mapping[str, str]) -> TopicRecord:
        """Replace the properties of a topic, named by its own name or by one of its partitions.

        Raises :exc:`TopicMissing`. Properties that it has already change nothing, the version included.
        """
        given = check_properties(properties)
        after = self.edit(name, adjustment(name, properties=lambda _: given)).after
        assert after is not None
        return after


def _name_of(connection: sqlite3.Connection, topic_id: uuid.UUID) -> TopicName:
    record = topic_of_id(connection, topic_id)
    if record is None:
        raise _no_such_id(topic_id, deleted_topic(connection, topic_id, 0))
    return record.name


def _no_such_id(topic_id: uuid.UUID, gone: DeletedTopic | None) -> TopicMissing:
    text = f"There is no topic of the id {topic_id_text(topic_id)} in the catalogue"
    if gone is not None:
        at = when(gone.deleted).isoformat(timespec="seconds")
        text += f": {gone.name} had it, and was deleted at {at}"
    return TopicMissing(text)
