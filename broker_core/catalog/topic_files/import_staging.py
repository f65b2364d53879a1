"""Staging of an import: a file's topics in a temporary table of SQLite, one row a topic, in the catalogue's order.

Locks nothing. SQLite puts the table into a file once it outgrows its cache (in the folder of ``SQLITE_TMPDIR``),
so the imported file may be larger than memory. While it is read, lines of a topic and of its partitions are separate
rows, since only the whole file shows what belongs together; afterwards each topic has one row.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO, Final

from broker_core.catalog.catalog_errors import PairRefused
from broker_core.catalog.topic_files.topic_file_reader import UNSPECIFIED, TopicInFile, TopicLines
from broker_core.compact_json import compact_json
from broker_core.names import ListedNames, NamespaceName, count_listed, merge_listed, new_topic_ids

__all__ = ["Staged", "stage_file"]

_ALIKE: Final = 16  # topics with the same properties; fewer go one by one
_TOPIC: Final = 0  # the side of lines about a topic
_PARTITIONS: Final = 1  # the side of lines about its partitions

# Lines about the same side of a topic are merged as they come. declared: a line says how many partitions it has.
_STAGED = """CREATE TEMP TABLE staged (
    domain INTEGER NOT NULL,
    base TEXT NOT NULL,
    side INTEGER NOT NULL,
    listed TEXT NOT NULL,
    topic_id BLOB NOT NULL,
    properties TEXT,
    declared INTEGER NOT NULL,
    configs TEXT,
    replication INTEGER,
    PRIMARY KEY (domain, base, side)
) WITHOUT ROWID"""
_COLUMNS = "(domain, base, side, listed, topic_id, properties, declared)"
# Ids, configs and replicas that lines give, by topic.
_FACTS = """CREATE TEMP TABLE facts (
    domain INTEGER NOT NULL,
    base TEXT NOT NULL,
    topic_id BLOB,
    configs TEXT,
    replication INTEGER,
    PRIMARY KEY (domain, base)
) WITHOUT ROWID"""
_FACT = """INSERT INTO temp.facts VALUES (?, ?, ?, ?, ?) ON CONFLICT (domain, base) DO UPDATE SET
    topic_id = coalesce(excluded.topic_id, topic_id),
    configs = coalesce(excluded.configs, configs),
    replication = coalesce(excluded.replication, replication)"""
_WITH_FACTS = """UPDATE temp.staged AS s SET topic_id = coalesce(f.topic_id, s.topic_id), configs = f.configs,
    replication = f.replication FROM temp.facts f WHERE s.domain = f.domain AND s.base = f.base"""
_CONFLICT = """ ON CONFLICT (domain, base, side) DO UPDATE SET
    listed = merge_staged(listed, excluded.listed),
    properties = coalesce(excluded.properties, properties),
    declared = max(declared, excluded.declared)
    WHERE listed <> excluded.listed OR excluded.properties IS NOT NULL OR excluded.declared > declared"""
_ROW = f"INSERT INTO temp.staged {_COLUMNS} VALUES (?, ?, ?, ?, ?, ?, ?)" + _CONFLICT  # noqa: S608 - constants
# A JSON array of names enters SQLite several times faster than a row of parameters for each name. Six digits before
# the name say which of the kinds (names and properties) the topic has.
_KINDS = "CREATE TEMP TABLE kinds (id INTEGER PRIMARY KEY, listed TEXT NOT NULL, properties TEXT)"
_ROWS_ALIKE = (
    f"""INSERT INTO temp.staged {_COLUMNS}
    SELECT ?1, substr(j.value, 7), ?4, k.listed, substr(?2, 16 * j.key + 1, 16), k.properties, ?5
    FROM json_each(?3) j CROSS JOIN temp.kinds k WHERE k.id = CAST(substr(j.value, 1, 6) AS INTEGER)"""  # noqa: S608
    + _CONFLICT
)
# Topics with a row of either side: few, if any.
_BOTH = """SELECT t.domain, t.base, t.listed, t.properties, p.listed, p.properties, p.declared
    FROM temp.staged p CROSS JOIN temp.staged t ON t.domain = p.domain AND t.base = p.base AND t.side = 0
    WHERE p.side = 1"""
_JOINED = "UPDATE temp.staged SET listed = ?, properties = ? WHERE domain = ? AND base = ? AND side = 0"
_DROP = "DELETE FROM temp.staged WHERE domain = ? AND base = ? AND side = 1"

# Topics, and their listed names. Few are listed by more than the plain name, so Python handles hardly any.
_COUNT = "SELECT count(*), total(CASE WHEN listed IN ('*', '?') THEN 1 ELSE count_listed(listed) END) FROM temp.staged"


@dataclass(frozen=True, slots=True)
class Staged:
    """Counts of a read file: ``topics`` in ``lines`` lines, of whose ``names`` ``repeats`` are repetitions.

    The table ``temp.staged`` has the columns ``domain``, ``base``, ``listed``, ``topic_id``, ``properties``,
    ``configs`` and ``replication`` (NULL: not given). With ``facts``, ``temp.facts`` has the ids that lines give.
    ``listed`` is :data:`~.topic_file_reader.UNSPECIFIED` for lines with only properties, configs or replication;
    ``properties_only``: there are some.
    """

    lines: int
    topics: int
    repeats: int
    properties_only: bool
    facts: bool
    names: int


def stage_file(
    connection: sqlite3.Connection,
    namespace: NamespaceName,
    source: BinaryIO,
    *,
    has_partitions: Callable[[int, str], bool],
    cache: int,
    read: Callable[[int], None] | None = None,
    as_names: bool = False,
) -> Staged:
    """Read a file (:mod:`broker_core.catalog.topic_files.topic_file_reader`); ``read`` is called with the bytes so far.

    ``cache``: bytes of the table that are kept in memory, some 85 for each topic; the rest goes to the temporary file.

    ``has_partitions`` says whether the catalogue has partitions of a topic, by domain and local name.
    Raises :exc:`~broker_core.catalog.ImportRefused` with the invalid line, and
    :exc:`~broker_core.catalog.PairRefused`.
    """
    connection.create_function("merge_staged", 2, _merge_staged, deterministic=True)
    connection.create_function("count_listed", 1, count_listed, deterministic=True)
    connection.execute("PRAGMA temp_store = FILE")
    connection.execute(_STAGED)
    connection.execute(_KINDS)
    connection.execute(_FACTS)
    connection.execute(f"PRAGMA temp.cache_size = -{cache // 1024}")
    lines = TopicLines(namespace, source, apart=True, as_names=as_names)
    topics = partitions = properties_only = facts = False
    connection.execute("BEGIN")
    for chunk in lines:
        for domain, rows in enumerate(chunk):
            topics = topics or bool(rows.topics)
            partitions = partitions or bool(rows.partitions)
            properties_only = _stage(connection, domain, _TOPIC, rows.topics) or properties_only
            declared_rows = {base: row for base, row in rows.partitions.items() if base in rows.declared}
            named = {base: row for base, row in rows.partitions.items() if base not in rows.declared}
            _stage(connection, domain, _PARTITIONS, declared_rows, declared=True)
            _stage(connection, domain, _PARTITIONS, named)
            if rows.facts:
                facts = True
                connection.executemany(_FACT, ((domain, base, *fact) for base, fact in rows.facts.items()))
        if read is not None:
            read(lines.bytes)
    if topics and partitions:
        _join_sides(connection, has_partitions)
    if facts:
        connection.execute(_WITH_FACTS)
    connection.execute("COMMIT")
    count, names = connection.execute(_COUNT).fetchone()
    return Staged(lines.lines, count, lines.names - int(names), properties_only, facts, lines.names)


def _merge_staged(one: str, other: str) -> str:
    """Merge two forms by :func:`merge_listed`; one that is :data:`UNSPECIFIED` leaves the other."""
    if UNSPECIFIED in (one, other):
        return other if one == UNSPECIFIED else one
    return merge_listed(one, other)


def _stage(
    connection: sqlite3.Connection,
    domain: int,
    side: int,
    rows: dict[str, TopicInFile],
    *,
    declared: bool = False,
) -> bool:
    """Add rows of one side of a chunk to the temporary table; returns whether some have only properties."""
    if not rows:
        return False
    counts = Counter(rows.values())
    frequent = [row for row, count in counts.items() if count >= _ALIKE]
    prefixes = {row: f"{kind:06d}" for kind, row in enumerate(frequent)}
    connection.execute("DELETE FROM temp.kinds")
    connection.executemany(
        "INSERT INTO temp.kinds VALUES (?, ?, ?)", [(kind, *row) for kind, row in enumerate(frequent)]
    )
    # Sorted, so that neighbours in the index come one after the other.
    names = sorted(rows)
    alike = [prefixes[row] + base for base in names if (row := rows[base]) in prefixes]
    ids = new_topic_ids(len(names))
    connection.execute(_ROWS_ALIKE, (domain, ids, compact_json(alike), side, declared))
    if len(alike) < len(names):
        others = [base for base in names if rows[base] not in prefixes]
        starts = range(16 * len(alike), 16 * len(names), 16)
        connection.executemany(
            _ROW,
            (
                (domain, base, side, rows[base][0], ids[start : start + 16], rows[base][1], declared)
                for base, start in zip(others, starts, strict=True)
            ),
        )
    return any(listed == UNSPECIFIED for listed, _ in counts)


def _join_sides(connection: sqlite3.Connection, has_partitions: Callable[[int, str], bool]) -> None:
    """Join the row of a topic's lines with the row of its partitions' lines, if a file has both."""
    for domain, base, listed, given, partitions, of_partitions, declared in connection.execute(
        _BOTH
    ).fetchall():
        if listed == UNSPECIFIED and (declared or has_partitions(domain, base)):
            joined, properties = partitions, given  # of a topic with partitions
        elif (given or "{}") == (of_partitions or "{}"):
            joined, properties = merge_listed("*", partitions), given if given is not None else of_partitions
        else:
            raise PairRefused.of(base, ListedNames.parse(partitions))
        connection.execute(_JOINED, (joined, properties, domain, base))
        connection.execute(_DROP, (domain, base))
