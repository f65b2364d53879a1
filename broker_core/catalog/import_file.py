"""Importing a file of names into a namespace: all of it or nothing, however large.

The file is read, checked and gathered into a temporary table first, which locks nothing; only then one transaction
brings it into the catalogue, in the order of its index. Both run in SQLite on whole sets, not topic by topic. SQLite
puts the temporary table into a file once it outgrows its cache (in the folder that ``SQLITE_TMPDIR`` names), so the
file may be larger than memory.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import BinaryIO, Final, Literal

from broker_core.catalog.change_log import NamespaceChange
from broker_core.catalog.errors import sqlite_errors
from broker_core.catalog.lines import Rows, TopicLines
from broker_core.catalog.listed import Listed, merge_listed
from broker_core.catalog.records import CatalogVersion
from broker_core.catalog.store import SqliteCatalog
from broker_core.catalog.topic_id import new_topic_ids
from broker_core.names import NamespaceName

__all__ = ["ImportReport", "Progress", "import_topics"]

#: Called now and then as ``progress("read", bytes so far)`` while the file is read and as ``progress("write", topics
#: of the file)`` while the transaction runs, on the importing thread. What it raises ends the import, which then
#: changed nothing.
Progress = Callable[[Literal["read", "write"], int], None]

_CACHE_KIB: Final = 65_536
_STAGED_CACHE_KIB: Final = 262_144  # of some 3 million topics; beyond that pages go to the temporary file
_TICK: Final = 500_000  # steps of SQLite's machine between two calls of progress: some 20 ms
_ALIKE: Final = 16  # topics with the same properties; fewer go one by one

# What the file says, one row a topic: lines about the same topic are merged as they come.
_STAGED = """CREATE TEMP TABLE staged (
    domain INTEGER NOT NULL,
    base TEXT NOT NULL,
    listed TEXT NOT NULL,
    topic_id BLOB NOT NULL,
    properties TEXT,
    PRIMARY KEY (domain, base)
) WITHOUT ROWID"""
_STAGE_CONFLICT = """ ON CONFLICT (domain, base) DO UPDATE SET
    listed = merge_listed(listed, excluded.listed),
    properties = coalesce(excluded.properties, properties)
    WHERE listed <> excluded.listed OR excluded.properties IS NOT NULL"""
_STAGE_ROW = "INSERT INTO temp.staged VALUES (?, ?, ?, ?, ?)" + _STAGE_CONFLICT  # noqa: S608 - two constants
# A JSON array of names enters SQLite several times faster than a row of parameters for each name. Six digits before
# the name say which of the kinds (names and properties) the topic has.
_KINDS = "CREATE TEMP TABLE kinds (id INTEGER PRIMARY KEY, listed TEXT NOT NULL, properties TEXT)"
_STAGE_ALIKE = (
    """INSERT INTO temp.staged
    SELECT ?1, substr(j.value, 7), k.listed, substr(?2, 16 * j.key + 1, 16), k.properties
    FROM json_each(?3) j CROSS JOIN temp.kinds k WHERE k.id = CAST(substr(j.value, 1, 6) AS INTEGER)"""  # noqa: S608
    + _STAGE_CONFLICT
)

# Topics, and the names that they are listed by. Few are listed by more than the plain one, so Python hardly sees any.
_COUNT = "SELECT count(*), total(CASE listed WHEN '*' THEN 1 ELSE count_listed(listed) END) FROM temp.staged"

# The same merge for the log (before the fact) and for the topics themselves.
_LOG = """INSERT INTO main.changes (namespace, version, operation, domain, base, topic_id, listed_before, listed_after,
        properties_before, properties_after, time)
    SELECT :namespace, :version, iif(t.base IS NULL, 'create', 'update'), s.domain, s.base,
        coalesce(t.topic_id, s.topic_id), coalesce(t.listed, ''), merge_listed(coalesce(t.listed, ''), s.listed),
        t.properties, coalesce(s.properties, t.properties), :time
    FROM temp.staged s
    LEFT JOIN main.topics t ON t.namespace = :namespace AND t.domain = s.domain AND t.base = s.base
    WHERE t.base IS NULL
        OR (s.listed <> t.listed AND merge_listed(t.listed, s.listed) <> t.listed)
        OR coalesce(s.properties, t.properties, '{}') <> coalesce(t.properties, '{}')
    LIMIT :limit"""
_MERGE = """INSERT INTO main.topics (namespace, domain, base, listed, topic_id, properties, created)
    SELECT :namespace, domain, base, listed, topic_id, properties, :time FROM temp.staged WHERE true
    ORDER BY domain, base
    ON CONFLICT (namespace, domain, base) DO UPDATE SET
        listed = merge_listed(listed, excluded.listed),
        properties = coalesce(excluded.properties, properties)
    WHERE (excluded.listed <> listed AND merge_listed(listed, excluded.listed) <> listed)
        OR coalesce(excluded.properties, properties, '{}') <> coalesce(properties, '{}')"""


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What an import did. ``topics`` counts the topics of the file: created, updated and unchanged ones.

    ``repeats`` counts names that the file has more than once: each time but the first.
    """

    lines: int
    topics: int
    created: int
    updated: int
    version: CatalogVersion
    repeats: int = 0

    @property
    def unchanged(self) -> int:
        """Topics of the file that were there already, just so."""
        return self.topics - self.created - self.updated


def import_topics(
    catalog: SqliteCatalog, namespace: NamespaceName, source: BinaryIO, *, progress: Progress | None = None
) -> ImportReport:
    """Add the topics of a file (see :mod:`broker_core.catalog.lines`) to a namespace, in one transaction.

    A topic that is there keeps its id, gets further partitions and the new properties; nothing is removed. Nothing to
    change leaves the version as it is. Raises :exc:`~broker_core.catalog.errors.ImportRefused` with the line that is
    wrong, and :exc:`~broker_core.catalog.errors.CatalogBusy` where another process writes for longer than the time-out;
    in each case the catalogue is as it was.
    """
    with sqlite_errors(catalog.path), closing(catalog.connect()) as connection:
        connection.create_function("merge_listed", 2, merge_listed, deterministic=True)
        connection.create_function("count_listed", 1, _count_listed, deterministic=True)
        connection.execute("PRAGMA temp_store = FILE")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute(_STAGED)
        connection.execute(_KINDS)
        connection.execute(f"PRAGMA temp.cache_size = -{_STAGED_CACHE_KIB}")
        lines = TopicLines(namespace, source)
        connection.execute("BEGIN")
        for rows in lines:
            for domain, part in enumerate(rows):
                _stage(connection, domain, part)
            if progress is not None:
                progress("read", lines.bytes)
        connection.execute("COMMIT")
        topics, names = connection.execute(_COUNT).fetchone()
        failed: list[BaseException] = []
        if progress is not None:
            connection.set_progress_handler(lambda: _tick(progress, topics, failed), _TICK)
        try:
            created, updated, version = _merge(connection, catalog, namespace)
        except sqlite3.OperationalError:
            if failed:
                raise failed[0] from None
            raise
        connection.set_progress_handler(None, 0)
        _checkpoint(connection)
        return ImportReport(
            lines.lines,
            topics,
            created,
            updated,
            CatalogVersion(catalog.catalog_id, version),
            lines.names - int(names),
        )


def _count_listed(listed: str) -> int:
    return len(Listed.parse(listed))


def _tick(progress: Progress, topics: int, failed: list[BaseException]) -> bool:
    """Whether to interrupt: what a handler raises would be lost within SQLite, an interrupt of the keyboard too."""
    try:
        progress("write", topics)
    except BaseException as error:  # noqa: BLE001 - raised again as soon as SQLite has returned
        failed.append(error)
        return True
    return False


def _stage(connection: sqlite3.Connection, domain: int, rows: Rows) -> None:
    """Add the rows of one chunk to the temporary table."""
    counts = Counter(rows.topics.values())
    frequent = [row for row, count in counts.items() if count >= _ALIKE]
    prefixes = {row: f"{kind:06d}" for kind, row in enumerate(frequent)}
    connection.execute("DELETE FROM temp.kinds")
    connection.executemany(
        "INSERT INTO temp.kinds VALUES (?, ?, ?)", [(kind, *row) for kind, row in enumerate(frequent)]
    )
    # Sorted, so that neighbours in the index come one after the other.
    names = sorted(rows.topics)
    alike = [prefixes[row] + base for base in names if (row := rows.topics[base]) in prefixes]
    ids = new_topic_ids(len(names))
    connection.execute(_STAGE_ALIKE, (domain, ids, json.dumps(alike, ensure_ascii=False)))
    if len(alike) < len(names):
        others = [base for base in names if rows.topics[base] not in prefixes]
        starts = range(16 * len(alike), 16 * len(names), 16)
        connection.executemany(
            _STAGE_ROW,
            (
                (domain, base, rows.topics[base][0], ids[start : start + 16], rows.topics[base][1])
                for base, start in zip(others, starts, strict=True)
            ),
        )


def _merge(
    connection: sqlite3.Connection, catalog: SqliteCatalog, namespace: NamespaceName
) -> tuple[int, int, int]:
    """Bring the staged topics into the catalogue: (created, updated, number of the version)."""
    connection.execute("BEGIN IMMEDIATE")
    change = NamespaceChange(connection, namespace, catalog.log_bounds)
    count = "SELECT count(*) FROM main.topics WHERE namespace = ?"
    (before,) = connection.execute(count, (change.id,)).fetchone()
    values = {
        "namespace": change.id,
        "version": change.version,
        "time": change.time,
        "limit": change.most_logged + 1,
    }
    logged = connection.execute(_LOG, values).rowcount
    if not logged:
        connection.execute("ROLLBACK")
        return 0, 0, change.version - 1
    changed = connection.execute(_MERGE, values).rowcount
    (after,) = connection.execute(count, (change.id,)).fetchone()
    if logged > change.most_logged:
        change.leave_gap()
    else:
        change.logged(logged)
    change.finish()
    connection.execute("COMMIT")
    created = after - before
    return created, changed - created, change.version


def _checkpoint(connection: sqlite3.Connection) -> None:
    """Move what was written from the write-ahead log into the file, as far as readers allow just now."""
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.OperationalError:  # a reader or writer is there; the log is moved later, by whoever comes
        pass
