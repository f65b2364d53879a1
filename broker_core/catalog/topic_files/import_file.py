"""Import of a file of names into a namespace: all of it or nothing, however large.

The file is read, checked and gathered into a temporary table first (:mod:`.import_staging`), which locks nothing; only
then one transaction brings it into the catalogue, in the order of its index. Both run in SQLite on whole sets, not
topic by topic.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import BinaryIO, Final, Literal

from broker_core.catalog.catalog_errors import PairRefused, sqlite_errors
from broker_core.catalog.store.change_log_writer import DELETED_IDS, NamespaceChange
from broker_core.catalog.store.format_migration import bring_forward_for_a_dry_run, show_as_current
from broker_core.catalog.store.log_rows import read_version
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.topic_files.import_staging import Staged, stage_file
from broker_core.change_log import CatalogVersion
from broker_core.guards import Deletions, Loss, Refusal
from broker_core.names import DOMAINS, ListedNames, NamespaceName, TopicName, merge_listed, new_topic_ids

__all__ = ["Allow", "ImportReport", "Progress", "import_topics"]

#: Called now and then as ``progress("read", bytes so far)`` while the file is read and as ``progress("write", topics
#: of the file)`` while the transaction runs, on the importing thread. An exception ends the import, which then has
#: changed nothing.
Progress = Callable[[Literal["read", "write"], int], None]

#: Called on the importing thread with topics that are to be written or deleted, before anything of the catalogue is
#: changed, and within the transaction for topics that an exact import deletes. An exception ends the import.
Allow = Callable[[Iterator[TopicName]], object]

#: Bytes of the imported topics and of the catalogue that SQLite may keep in memory.
_CACHES: Final = 320 * 1024 * 1024
_BUSY: Final = 0.5  # seconds between two calls of progress while others write
_TICK: Final = 500_000  # steps of SQLite's machine between two calls of progress: some 20 ms

# A line with only properties is for the topic with its current partitions; a missing topic has no known partitions.
_FILL_UNSPECIFIED = """UPDATE temp.staged AS s SET listed = t.listed FROM main.topics t
    WHERE t.namespace = :namespace AND t.listed <> '*'
        AND s.domain = t.domain AND s.base = t.base AND s.listed = '?'"""
# An existing topic would be beside its own partitions (or the reverse), with other properties.
_PAIRS = """SELECT s.base, merge_listed(t.listed, s.listed) FROM temp.staged s
    CROSS JOIN main.topics t ON t.namespace = :namespace AND t.domain = s.domain AND t.base = s.base
    WHERE s.listed NOT IN (t.listed, '?')
        AND coalesce(s.properties, iif(is_pair(t.listed), t.properties, NULL), '{}') <> coalesce(t.properties, '{}')
        AND NOT is_pair(s.listed) AND is_pair(merge_listed(t.listed, s.listed)) LIMIT 1"""

# The same merge for the log (before the fact) and for the topics themselves. The names of an exact import are those of
# the file; of any other they are added to the existing ones.
_FILE: Final = "iif(s.listed = '?', '*', s.listed)"
_ADDED: Final = f"merge_listed(coalesce(t.listed, ''), {_FILE})"
_LOG = """INSERT INTO main.changes (namespace, version, operation, domain, base, topic_id, listed_before, listed_after,
        properties_before, properties_after, time, configs_before, configs_after)
    SELECT :namespace, :version, iif(t.base IS NULL, 'create', 'update'), s.domain, s.base,
        coalesce(t.topic_id, s.topic_id), coalesce(t.listed, ''), {listed},
        t.properties, coalesce(s.properties, t.properties), :time,
        t.configs, coalesce(s.configs, t.configs)
    FROM temp.staged s
    LEFT JOIN main.topics t ON t.namespace = :namespace AND t.domain = s.domain AND t.base = s.base
    WHERE t.base IS NULL
        OR ({file} <> t.listed AND {listed} <> t.listed)
        OR coalesce(s.properties, t.properties, '{{}}') <> coalesce(t.properties, '{{}}') {facts}
    LIMIT :limit"""
_MERGE = """INSERT INTO main.topics (namespace, domain, base, listed, topic_id, properties, created,
        configs, replication)
    SELECT :namespace, domain, base, iif(listed = '?', '*', listed), topic_id, properties, :time,
        configs, replication
    FROM temp.staged WHERE true ORDER BY domain, base
    ON CONFLICT (namespace, domain, base) DO UPDATE SET
        listed = {listed},
        properties = coalesce(excluded.properties, properties),
        configs = coalesce(excluded.configs, configs),
        replication = coalesce(excluded.replication, replication)
    WHERE (excluded.listed <> listed AND {listed} <> listed)
        OR coalesce(excluded.properties, properties, '{{}}') <> coalesce(properties, '{{}}') {facts}"""
# The same for configs and replicas, if the file gives any.
_LOG_FACTS: Final = """OR coalesce(s.configs, t.configs, '{}') <> coalesce(t.configs, '{}')
        OR coalesce(s.replication, t.replication, 0) <> coalesce(t.replication, 0)"""
_MERGE_FACTS: Final = """OR coalesce(excluded.configs, configs, '{}') <> coalesce(configs, '{}')
        OR coalesce(excluded.replication, replication, 0) <> coalesce(replication, 0)"""
# Ids of the file that belong to another topic, or did a while ago, or are given to several topics, are replaced.
_RENEW: Final = f"""UPDATE temp.staged AS s SET topic_id = new_topic_id() FROM temp.facts f
    WHERE s.domain = f.domain AND s.base = f.base AND f.topic_id IS NOT NULL
        AND NOT EXISTS (SELECT 1 FROM main.topics t
            WHERE t.namespace = :namespace AND t.domain = f.domain AND t.base = f.base)
        AND (EXISTS (SELECT 1 FROM main.topics t WHERE t.topic_id = f.topic_id)
            OR f.topic_id IN ({DELETED_IDS})
            OR EXISTS (SELECT 1 FROM temp.facts o
                WHERE o.topic_id = f.topic_id AND (o.domain, o.base) < (f.domain, f.base)))"""  # noqa: S608 - constants

# The topics that an exact import removes.
_STAGED_TOPIC: Final = "SELECT 1 FROM temp.staged s WHERE s.domain = t.domain AND s.base = t.base"
_LOSS = f"""SELECT total(CASE t.listed WHEN '*' THEN 1 ELSE count_listed(t.listed) END),
        total(CASE WHEN s.base IS NULL AND t.listed = '*' THEN 1 WHEN s.listed = t.listed THEN 0
            ELSE count_lost(t.listed, coalesce({_FILE}, '')) END)
    FROM main.topics t LEFT JOIN temp.staged s ON s.domain = t.domain AND s.base = t.base
    WHERE t.namespace = :namespace"""  # noqa: S608 - constants
_LOG_GONE = f"""INSERT INTO main.changes (namespace, version, operation, domain, base, topic_id, listed_before,
        listed_after, properties_before, time, configs_before)
    SELECT :namespace, :version, 'delete', domain, base, topic_id, listed, '', properties, :time, configs
    FROM main.topics t
    WHERE t.namespace = :namespace AND NOT EXISTS ({_STAGED_TOPIC}) LIMIT :limit"""  # noqa: S608 - constants
_GONE = (
    f"SELECT domain, base FROM main.topics t WHERE namespace = :namespace AND NOT EXISTS ({_STAGED_TOPIC})"  # noqa: S608
)
_DELETED = f"""SELECT topic_id, namespace, domain, base, :time FROM main.topics t
    WHERE t.namespace = :namespace AND NOT EXISTS ({_STAGED_TOPIC})"""  # noqa: S608 - constants
_DELETE = f"DELETE FROM main.topics AS t WHERE t.namespace = :namespace AND NOT EXISTS ({_STAGED_TOPIC})"  # noqa: S608


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of an import. ``topics`` counts the topics of the file: created, updated and unchanged ones.

    ``names`` counts the names of the file, and ``repeats`` their repetitions.
    ``deleted`` counts the topics that an exact import removed, and ``names_lost`` the listed names that it removed in
    all. ``refusal``: why, after a dry run, the real import would do nothing. ``renewed_ids``: created topics that got a
    new id, since another topic has the file's id, or had it a while ago.
    """

    lines: int
    topics: int
    created: int
    updated: int
    version: CatalogVersion
    repeats: int = 0
    deleted: int = 0
    names_lost: int = 0
    refusal: Refusal | None = None
    renewed_ids: int = 0
    names: int = 0

    @property
    def unchanged(self) -> int:
        """The number of topics of the file that were there already in the same state."""
        return self.topics - self.created - self.updated


def import_topics(
    catalog: SqliteCatalog,
    namespace: NamespaceName,
    source: BinaryIO,
    *,
    exact: Deletions | None = None,
    dry_run: bool = False,
    progress: Progress | None = None,
    caches: int = _CACHES,
    allow: Allow | None = None,
    as_names: bool = False,
) -> ImportReport:
    """Add the topics of a file (see :mod:`.topic_file_reader`) to a namespace, in one transaction.

    An existing topic keeps its id, gets further partitions and the new properties; nothing is removed. With ``exact``,
    which limits deletions, the namespace gets exactly the file's topics, and a topic keeps its properties unless the
    file gives some. If nothing changes, and in a ``dry_run``, the version stays as it is. ``caches`` is how many bytes
    SQLite may keep in memory meanwhile; fewer of them make the import of a large file slower. ``allow`` may refuse
    topics. ``as_names`` reads a file that looks like JSON or CSV, or has odd names, as plain names.

    Raises :exc:`~broker_core.catalog.ImportRefused` with the invalid line,
    :exc:`~broker_core.catalog.PairRefused` for a topic beside a partition of its name with other properties,
    :exc:`~.mass_deletion_guard.MassDeletion`, and :exc:`~broker_core.catalog.CatalogBusy` if another process
    writes for longer than the time-out; in each case the catalogue is as it was.
    """
    if not dry_run:
        catalog.migrate()
    with sqlite_errors(catalog.path), closing(catalog.connect()) as connection:
        connection.execute(f"PRAGMA cache_size = -{caches // 5 // 1024}")
        staged = stage_file(
            connection,
            namespace,
            source,
            has_partitions=lambda *topic: exact is None and _has_partitions(connection, namespace, *topic),
            read=None if progress is None else lambda size: progress("read", size),
            cache=caches * 4 // 5,
            as_names=as_names,
        )
        show_as_current(connection)  # setting the stage's temporary file dropped the temporary views
        connection.create_function("merge_listed", 2, merge_listed, deterministic=True)
        connection.create_function("count_lost", 2, _count_lost, deterministic=True)
        connection.create_function("is_pair", 1, is_pair, deterministic=True)
        if allow is not None:
            allow(_names(namespace, connection.execute("SELECT domain, base FROM temp.staged")))
        failed: list[BaseException] = []
        if progress is not None:
            connection.set_progress_handler(lambda: _tick(progress, staged.topics, failed), _TICK)
        try:
            _begin(connection, catalog.busy_timeout, lambda: progress and progress("write", staged.topics))
            report = _merge(connection, catalog, namespace, exact, allow, staged=staged, dry_run=dry_run)
        except sqlite3.OperationalError:
            if failed:
                raise failed[0] from None
            raise
        connection.set_progress_handler(None, 0)
        if not dry_run:
            _checkpoint(connection)
        return report


def _names(namespace: NamespaceName, rows: Iterable[tuple[int, str]]) -> Iterator[TopicName]:
    return (TopicName(DOMAINS[domain], namespace, base) for domain, base in rows)


def _has_partitions(connection: sqlite3.Connection, namespace: NamespaceName, domain: int, base: str) -> bool:
    row = connection.execute(
        "SELECT listed FROM main.topics WHERE namespace = (SELECT id FROM main.namespaces WHERE name = ?)"
        " AND domain = ? AND base = ?",
        (str(namespace), domain, base),
    ).fetchone()
    return row is not None and bool(ListedNames.parse(row[0]).ranges)


def _count_lost(before: str, after: str) -> int:
    return len(ListedNames.parse(before).without(ListedNames.parse(after)))


def _tick(progress: Progress, topics: int, failed: list[BaseException]) -> bool:
    """Whether to interrupt SQLite, which would lose exceptions of a handler, also an interrupt from the keyboard."""
    try:
        progress("write", topics)
    except BaseException as error:  # noqa: BLE001 - raised again as soon as SQLite has returned
        failed.append(error)
        return True
    return False


def _begin(connection: sqlite3.Connection, patience: float, notify: Callable[[], object]) -> None:
    """Begin to write, once no other process does; ``notify`` is called now and then while waiting, and at the end."""
    end = time.monotonic() + patience
    while True:
        left = end - time.monotonic()
        connection.execute(f"PRAGMA busy_timeout = {int(min(max(left, 0), _BUSY) * 1000)}")
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if left <= 0 or not error.sqlite_errorname.startswith("SQLITE_BUSY"):
                raise
        notify()
        if connection.in_transaction:
            return


def _merge(
    connection: sqlite3.Connection,
    catalog: SqliteCatalog,
    namespace: NamespaceName,
    exact: Deletions | None,
    allow: Allow | None,
    *,
    staged: Staged,
    dry_run: bool,
) -> ImportReport:
    """Bring the staged topics into the catalogue, within a transaction that has begun, and end it."""
    if dry_run:
        bring_forward_for_a_dry_run(connection)
    change = NamespaceChange(connection, namespace, catalog.log_bounds)
    now = read_version(connection, namespace)
    report = ImportReport(staged.lines, staged.topics, 0, 0, now, repeats=staged.repeats, names=staged.names)
    values = {
        "namespace": change.id,
        "version": change.version,
        "time": change.time,
        "limit": change.most_logged + 1,
        "since": change.deleted_since,
    }
    lost = deleted = logged = 0
    kept = False
    refusal: Refusal | None = None
    if exact is None:
        if staged.properties_only:
            connection.execute(_FILL_UNSPECIFIED, values)
        pair = connection.execute(_PAIRS, values).fetchone()
        if pair is not None:
            raise PairRefused.of(pair[0], ListedNames.parse(pair[1]))
    else:
        lost, refusal = _loss(connection, namespace, values, exact)
        if refusal is not None and not dry_run:
            raise refusal.error("--dry-run shows how many")
        if allow is not None:
            allow(_names(namespace, connection.execute(_GONE, values)))
        logged = connection.execute(_LOG_GONE, values).rowcount
        kept = logged > change.most_logged
        if kept:
            change.keep_deleted(_DELETED, values)
        deleted = connection.execute(_DELETE, values).rowcount
    renewed = _renew_ids(connection, values) if staged.facts else 0
    listed = _ADDED if exact is None else _FILE
    facts = _LOG_FACTS if staged.facts else ""
    logged += connection.execute(_LOG.format(file=_FILE, listed=listed, facts=facts), values).rowcount
    if not logged:
        connection.execute("ROLLBACK")
        return report
    count = "SELECT count(*) FROM main.topics WHERE namespace = ?"
    (before,) = connection.execute(count, (change.id,)).fetchone()
    listed = "merge_listed(listed, excluded.listed)" if exact is None else "excluded.listed"
    facts = _MERGE_FACTS if staged.facts else ""
    changed = connection.execute(_MERGE.format(listed=listed, facts=facts), values).rowcount
    (after,) = connection.execute(count, (change.id,)).fetchone()
    created = after - before
    report = replace(
        report,
        created=created,
        updated=changed - created,
        deleted=deleted,
        names_lost=lost,
        refusal=refusal,
        renewed_ids=renewed,
    )
    if dry_run:
        connection.execute("ROLLBACK")
        return report
    if logged > change.most_logged:
        change.leave_gap(kept=kept)
    else:
        change.logged(logged)
    change.finish()
    connection.execute("COMMIT")
    catalog.committed += 1
    return replace(report, version=change.version_in(now.catalog_id))


def _renew_ids(connection: sqlite3.Connection, values: dict[str, int]) -> int:
    """Give new ids to new topics whose id in the file is another topic's; returns their number."""
    connection.create_function("new_topic_id", 0, lambda: new_topic_ids(1))
    connection.execute("CREATE INDEX temp.facts_by_id ON facts (topic_id)")
    return connection.execute(_RENEW, values).rowcount


def _loss(
    connection: sqlite3.Connection, namespace: NamespaceName, values: dict[str, int], allowed: Deletions
) -> tuple[int, Refusal | None]:
    """Number of listed names that an exact import removes, and the reason if so many may not go."""
    there, lost = connection.execute(_LOSS, values).fetchone()
    loss = Loss(there=int(there), removed=int(lost))
    refusal = allowed.refusal({str(namespace): loss})
    if refusal is None and loss.removed and allowed == Deletions():
        (topics,) = connection.execute("SELECT count(*) FROM temp.staged").fetchone()
        if not topics:  # of however few names: no topic at all is hardly ever meant
            refusal = Refusal(
                f"the file has no topics, and {namespace} would lose all of its {loss.there} listed names",
                "--allow-mass-deletions",
                loss,
            )
    return loss.removed, refusal


def _checkpoint(connection: sqlite3.Connection) -> None:
    """Move the changes from the write-ahead log into the file, as far as readers allow now."""
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.OperationalError:  # there is a reader or writer; a later connection moves the log
        pass


def is_pair(listed: str) -> bool:
    """Whether the compact form lists a topic ``x`` beside a partition ``x-partition-0``.

    A function of the SQL of imports. No broker makes such a pair; a catalogue has one row for both, so both have the
    same properties. If they are given different ones, the pair is refused: one of the two names would be missing in
    selections by property. A pair with the same properties, or without any, is accepted, since some clusters list one
    (made by old releases), and it is listed and selected correctly.
    """
    return listed.startswith("*,")
