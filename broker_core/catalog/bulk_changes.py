"""Changes of many topics of a namespace in one transaction, as sets within SQLite: one version for all of them.

Topics of a file, or all that match a pattern, are deleted, limited by the guard; properties are changed key by key, of
one topic or of all that match a pattern. A pattern selects the topics that a listing by this pattern would have, of
both domains.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import BinaryIO, Final

import pyarrow as pa

from broker_core.catalog.catalog_errors import CatalogError, TopicMissing
from broker_core.catalog.store.change_log_writer import NamespaceChange
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.topic_decisions import adjustment
from broker_core.catalog.topic_files.topic_file_reader import TopicLines
from broker_core.catalog.topic_record import checked_text, properties_of
from broker_core.guards import Deletions, Loss, Refusal
from broker_core.names import DOMAINS, NOTHING, ListedNames, NamespaceName, TopicName, merge_listed, with_ends
from broker_core.patterns import selecting_pattern

__all__ = [
    "DeletionReport",
    "PropertiesChange",
    "PropertiesReport",
    "TopicState",
    "change_topics",
    "delete_matching",
    "delete_of_file",
    "set_properties",
    "set_properties_of_matching",
    "topics_matching",
]


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


_TOPIC: Final = "SELECT listed, properties FROM topics WHERE namespace = ? AND domain = ? AND base = ?"
_COUNTS: Final = "SELECT listed, count(*) FROM topics WHERE namespace = ? GROUP BY listed"


@dataclass(frozen=True, slots=True)
class DeletionReport:
    """The deleted topics, or the ones that a dry run would delete. ``topics`` has full names: a topic's own if all of
    it goes, otherwise its deleted partitions; ``names`` counts listed names. ``refusal``: why the real run would delete
    nothing."""

    topics: tuple[str, ...]
    names: int
    refusal: Refusal | None = None


def delete_matching(
    catalog: SqliteCatalog,
    namespace: NamespaceName,
    pattern: str,
    allowed: Deletions,
    *,
    dry_run: bool = False,
) -> DeletionReport:
    """Remove all topics, with all their partitions, whose name matches as in a listing (of either domain).

    Raises :exc:`~broker_core.guards.MassDeletion`, and :exc:`~broker_core.errors.InvalidPattern`.
    """
    with catalog.changing(namespace, dry_run=dry_run) as (connection, change):
        there = topics_matching(connection, namespace, change.id, pattern)
        going = [(topic, "") for topic in there]
        return _delete(connection, change, going, allowed, dry_run=dry_run)


def delete_of_file(
    catalog: SqliteCatalog,
    namespace: NamespaceName,
    source: BinaryIO,
    allowed: Deletions,
    *,
    dry_run: bool = False,
) -> DeletionReport:
    """Remove the topics of a file (:mod:`~.topic_file_reader`): all, or none if one is missing.

    A topic's own name removes it with all partitions; a partition's name, or a number of partitions, only those.
    Raises :exc:`~broker_core.guards.MassDeletion`, :exc:`~broker_core.catalog.TopicMissing` and
    :exc:`~broker_core.catalog.ImportRefused`.
    """
    named: dict[tuple[int, str], str] = {}
    for chunk in TopicLines(namespace, source, odd=True):
        for domain, rows in enumerate(chunk):
            for base, (listed, _) in rows.topics.items():
                named[domain, base] = merge_listed(named.get((domain, base), ""), listed)
    with catalog.changing(namespace, dry_run=dry_run) as (connection, change):
        going: list[tuple[TopicState, str]] = []
        for (domain, base), listed in named.items():
            row = connection.execute(_TOPIC, (change.id, domain, base)).fetchone()
            topic = TopicState(domain, base, *(row or ("", None)))
            there, meant = ListedNames.parse(topic.listed), ListedNames.parse(listed)
            missing = NOTHING if meant.plain and there else meant.without(there)
            if missing:
                name = TopicName(DOMAINS[domain], namespace, base)
                raise TopicMissing.of(next(missing.names(str(name))), "; nothing was deleted")
            going.append((topic, "" if meant.plain else str(there.without(meant))))
        return _delete(connection, change, going, allowed, dry_run=dry_run)


def _delete(
    connection: sqlite3.Connection,
    change: NamespaceChange,
    going: list[tuple[TopicState, str]],
    allowed: Deletions,
    *,
    dry_run: bool,
) -> DeletionReport:
    """Reduce each topic to the names of the compact form beside it."""
    topics: list[str] = []
    removed = 0
    for topic, left in going:
        name = TopicName(DOMAINS[topic.domain], change.namespace, topic.base)
        lost = ListedNames.parse(topic.listed).without(ListedNames.parse(left))
        removed += len(lost)
        topics += lost.names(str(name)) if left else (str(name),)
    there = sum(
        len(ListedNames.parse(listed)) * count for listed, count in connection.execute(_COUNTS, (change.id,))
    )
    refusal = allowed.refusal({str(change.namespace): Loss(there, removed)})
    if not dry_run:
        if refusal is not None:
            raise refusal.error("--dry-run shows them")
        change_topics(connection, change, (replace(topic, listed=left) for topic, left in going))
    return DeletionReport(tuple(topics), removed, refusal)


@dataclass(frozen=True, slots=True)
class PropertiesChange:
    """A change of properties: keys of ``unset`` go (all keys with ``replace``), then the ``given`` ones are set."""

    given: Mapping[str, str] = field(default_factory=dict)
    unset: Collection[str] = ()
    replace: bool = False

    def check(self) -> None:
        """Raise :exc:`CatalogError` if the change is empty or contradicts itself."""
        if not self.given and not self.unset and not self.replace:
            raise CatalogError("No property is given: KEY=VALUE sets one, --unset KEY takes one away")
        both = sorted(set(self.given) & set(self.unset))
        if both:
            raise CatalogError(f"Property {both[0]!r} is both set and unset")
        checked_text(self.given)

    def of(self, properties: Mapping[str, str]) -> dict[str, str]:
        """The properties of a topic after the change."""
        kept = {} if self.replace else {k: v for k, v in properties.items() if k not in self.unset}
        return kept | dict(self.given)


@dataclass(frozen=True, slots=True)
class PropertiesReport:
    """The number of selected ``topics``, of their listed ``names``, and of topics that ``changed``."""

    topics: int
    names: int
    changed: int


def set_properties(
    catalog: SqliteCatalog, name: TopicName, wanted: PropertiesChange, *, dry_run: bool = False
) -> PropertiesReport:
    """Change a topic, named by its own name or by one of its partitions: all of its names.

    If the topic has the properties already, nothing changes, not even the version. Raises
    :exc:`~broker_core.catalog.TopicMissing`, and :exc:`CatalogError` for invalid properties.
    """
    wanted.check()
    write = catalog.edit(name, adjustment(name, properties=wanted.of), dry_run=dry_run)
    assert write.after is not None
    return PropertiesReport(1, len(write.after.listed), int(write.changed))


def set_properties_of_matching(
    catalog: SqliteCatalog,
    namespace: NamespaceName,
    pattern: str,
    wanted: PropertiesChange,
    *,
    dry_run: bool = False,
) -> PropertiesReport:
    """Change all topics of a namespace whose name matches, as a listing by this pattern would (of either domain).

    Raises :exc:`~broker_core.errors.InvalidPattern`.
    """
    with catalog.changing(namespace, dry_run=dry_run) as (connection, change):
        report, states = _changed(topics_matching(connection, namespace, change.id, pattern), wanted)
        if not dry_run:
            change_topics(connection, change, states)
        return report


def _changed(
    topics: Iterable[TopicState], wanted: PropertiesChange
) -> tuple[PropertiesReport, list[TopicState]]:
    """The counts of the selected topics, and the new states of topics whose properties change."""
    wanted.check()
    known: dict[str | None, str] = {}
    states = []
    count = names = 0
    for topic in topics:
        count += 1
        names += len(ListedNames.parse(topic.listed))
        if topic.properties not in known:
            known[topic.properties] = checked_text(wanted.of(properties_of(topic.properties)))
        text = known[topic.properties]
        if text != (topic.properties or "{}"):
            states.append(replace(topic, properties=text))
    return PropertiesReport(count, names, len(states)), states
