"""Changes of many topics of a namespace in one transaction, as sets within SQLite: one version for all of them.

A pattern selects the topics that a listing by this pattern would have, of both domains.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from broker_core.catalog.store.change_log_writer import NamespaceChange
from broker_core.names import DOMAINS, NamespaceName, with_ends
from broker_core.patterns import selecting_pattern

__all__ = ["TopicState", "change_topics", "topics_matching"]

_TABLE: Final = """CREATE TEMP TABLE IF NOT EXISTS next_state (
    domain INTEGER NOT NULL,
    base TEXT NOT NULL,
    listed TEXT NOT NULL,
    properties TEXT,
    PRIMARY KEY (domain, base)
) WITHOUT ROWID"""
_LOG: Final = """INSERT INTO main.changes (namespace, version, operation, domain, base, topic_id, listed_before,
        listed_after, properties_before, properties_after, time, configs_before, configs_after)
    SELECT :namespace, :version, iif(n.listed = '', 'delete', 'update'), t.domain, t.base, t.topic_id, t.listed,
        n.listed, t.properties, iif(n.listed = '', NULL, n.properties), :time,
        t.configs, iif(n.listed = '', NULL, t.configs)
    FROM temp.next_state n
    CROSS JOIN main.topics t ON t.namespace = :namespace AND t.domain = n.domain AND t.base = n.base LIMIT :limit"""
_DELETED: Final = """SELECT t.topic_id, t.namespace, t.domain, t.base, :time FROM temp.next_state n
    CROSS JOIN main.topics t ON t.namespace = :namespace AND t.domain = n.domain AND t.base = n.base
    WHERE n.listed = ''"""
_DELETE: Final = """DELETE FROM main.topics AS t WHERE namespace = :namespace AND EXISTS (
    SELECT 1 FROM temp.next_state n WHERE n.domain = t.domain AND n.base = t.base AND n.listed = '')"""
_UPDATE: Final = """UPDATE main.topics AS t SET listed = n.listed, properties = n.properties FROM temp.next_state n
    WHERE t.namespace = :namespace AND t.domain = n.domain AND t.base = n.base AND n.listed <> ''"""
_TOPICS: Final = (
    "SELECT base, listed, properties FROM topics WHERE namespace = ? AND domain = ? ORDER BY base"
)


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic (number of its domain, local name) after a change: the compact form of its names, and its properties.

    If nothing is listed, the topic goes. ``properties`` is their text, ``None`` for none.
    """

    domain: int
    base: str
    listed: str
    properties: str | None


def change_topics(
    connection: sqlite3.Connection, change: NamespaceChange, states: Iterable[TopicState]
) -> int:
    """Bring existing topics to the given states, within the caller's transaction; returns how many.

    Each state must have other names or other properties than the topic has.
    """
    connection.execute(_TABLE)
    connection.execute("DELETE FROM temp.next_state")
    count = connection.executemany(
        "INSERT INTO temp.next_state VALUES (?, ?, ?, ?)",
        ((state.domain, state.base, state.listed, state.properties) for state in states),
    ).rowcount
    if count <= 0:
        return 0
    values = {
        "namespace": change.id,
        "version": change.version,
        "time": change.time,
        "limit": change.most_logged + 1,
    }
    logged = connection.execute(_LOG, values).rowcount
    if logged > change.most_logged:
        change.keep_deleted(_DELETED, values)
    connection.execute(_DELETE, values)
    connection.execute(_UPDATE, values)
    connection.execute("DELETE FROM temp.next_state")
    if logged > change.most_logged:
        change.leave_gap(kept=True)
    else:
        change.logged(logged)
    return count


def topics_matching(
    connection: sqlite3.Connection, namespace: NamespaceName, number: int, pattern: str
) -> Iterator[TopicState]:
    """The topics of a namespace (``number`` in the file) whose name matches in full, in their current state.

    Raises :exc:`~broker_core.errors.InvalidPattern`, also if RE2 does not support the pattern, or if it can match no
    topic of the namespace.
    """
    compiled = selecting_pattern(pattern, namespace)
    for domain in range(len(DOMAINS)):
        rows = connection.execute(_TOPICS, (number, domain)).fetchall()
        names = pa.array([row[0] for row in rows], pa.large_string())
        mask = compiled.match_column(with_ends(names, f"{namespace}/", ""))
        for row, matches in zip(rows, mask.to_pylist(), strict=True):
            if matches:
                yield TopicState(domain, *row)
