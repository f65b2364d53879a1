"""Deletion of the topics of a file, or of all that match a pattern: in one transaction, limited by the guard."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from typing import BinaryIO, Final

from broker_core.catalog.bulk_changes.change_many_topics import TopicState, change_topics, topics_matching
from broker_core.catalog.catalog_errors import TopicMissing
from broker_core.catalog.store.change_log_writer import NamespaceChange
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.topic_files.topic_file_reader import TopicLines
from broker_core.guards import Deletions, Loss, Refusal
from broker_core.names import DOMAINS, NOTHING, ListedNames, NamespaceName, TopicName, merge_listed

__all__ = ["DeletionReport", "delete_matching", "delete_of_file"]

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
