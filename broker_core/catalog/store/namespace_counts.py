"""The numbers of names that each namespace lists, by domain, for pages of namespaces: counted once for each version.

Names that a listing leaves out (:mod:`~broker_core.names.system_topics`) are not counted, so that a count is the length
of the listing. A namespace is counted again only if its change log does not lead from the last count.

A summary of one namespace counts its topics too, without reading its names.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, TypeAlias

from broker_core.catalog.store.file_watch import FileWatch
from broker_core.catalog.store.log_rows import read_catalog_id, read_changes, when
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.change_log import CatalogVersion, Changes, Gap
from broker_core.compact_json import compact_json
from broker_core.names import DOMAINS, ListedNames, NamespaceName, SystemTopics, system_topics_rule

__all__ = [
    "ALL_NAMES",
    "NamespaceCount",
    "NamespaceCounts",
    "NamespaceFilter",
    "NamespaceState",
    "NamespaceSummary",
    "summarize",
]


#: Counts that are kept, as many as the largest page has, and names with their states: some ten megabytes in all.
_KEPT: Final = 10_000
#: The most changes with which a kept count is brought up to date by the change log.
_MOVED: Final = 5000
#: Names that are counted in the time of a change, and the fewest changes for which the log is read: after many imports,
#: moving each count took twenty times as long as counting all anew.
_A_CHANGE: Final = 30
_FEWEST: Final = 4
_MEANT: Final = (
    " FROM namespaces n WHERE name > ? AND name >= ? AND name < ?{contains}"
    " AND EXISTS (SELECT 1 FROM topics WHERE namespace = n.id)"
)
#: The time of each namespace's last change, if the log has it.
_CHANGED: Final = (
    "SELECT n.name, (SELECT time FROM changes WHERE namespace = n.id ORDER BY version DESC, id DESC LIMIT 1)"
    " FROM json_each(?) asked JOIN namespaces n ON n.name = asked.value"
)
#: A namespace's name, the catalogue's id, the namespace's number in the file, its version, and the version's stamp.
NamespaceState: TypeAlias = tuple[str, str, int, int, str]
_STATE: Final = (
    "SELECT n.name, (SELECT catalog_id FROM meta), n.id, n.version,"
    " coalesce((SELECT stamp FROM stamps s WHERE s.namespace = n.id AND s.version = n.version), '')"
)
_STATES: Final = f"{_STATE} FROM json_each(?) asked JOIN namespaces n ON n.name = asked.value"
#: In the order of the table, so that nothing is sorted; with the number of topics that need a closer look.
_ROWS: Final = (
    "SELECT namespace, domain, count(*), total(listed <> '*' OR instr(base, ?)) FROM topics"
    " WHERE namespace IN (SELECT value FROM json_each(?)) GROUP BY namespace, domain"
)
_LISTED: Final = (
    "SELECT listed, count(*) FROM topics WHERE namespace = ? AND domain = ?"
    " AND base NOT IN (SELECT value FROM json_each(?)) AND substr(base, -length(?)) <> ?"
    " AND NOT EXISTS (SELECT 1 FROM json_each(?) WHERE substr(base, 1, length(value)) = value) GROUP BY listed"
)


@dataclass(frozen=True, slots=True)
class NamespaceCount:
    """The names that a namespace lists at one version, partitions one by one, in the order of ``DOMAINS``.

    ``changed`` is when a topic changed last, in UTC in the form of ISO 8601, to the millisecond: a text, since pages
    write it thousands of times and nothing computes with it; ``None`` if the change log had nothing.
    """

    namespace: NamespaceName
    version: CatalogVersion
    names: tuple[int, ...]
    changed: str | None = None


@dataclass(frozen=True, slots=True)
class NamespaceFilter:
    """A filter of names of namespaces that begin with ``prefix`` and contain each of some texts, in any
    case."""

    prefix: str = ""
    contains: tuple[str, ...] = ()

    def has(self, name: str) -> bool:
        """Whether a name passes the filter."""
        return name.startswith(self.prefix) and all(part.lower() in name.lower() for part in self.contains)

    def clause(self, after: str) -> tuple[str, tuple[str, ...]]:
        """The rest of a statement for the names after ``after``, with its values."""
        # Names are ASCII: nothing that begins with the prefix sorts after the prefix followed by 0x7f.
        clause = _MEANT.format(contains=" AND instr(lower(name), lower(?))" * len(self.contains))
        return clause, (after, self.prefix, f"{self.prefix}\x7f", *self.contains)


ALL_NAMES: Final = NamespaceFilter()


class NamespaceCounts:
    """Counts the namespaces of one catalogue. Synchronous, and safe to call from any thread.

    Read errors are raised as :exc:`~broker_core.catalog.CatalogError`.
    """

    def __init__(self, catalog: SqliteCatalog) -> None:
        self._catalog = catalog
        #: Counts by name, with the state that each was made in.
        self._kept: dict[str, tuple[NamespaceState, NamespaceCount]] = {}
        #: States read in one state of the file (``FileWatch.state``), by the arguments of :meth:`states`.
        self._read: dict[tuple[str, int, NamespaceFilter], dict[str, NamespaceState]] = {}
        self._read_in: int | None = None
        self._watch: FileWatch | None = None
        self._lock = threading.Lock()

    def close(self) -> None:
        """Close the connection that detects changes of the file; a later call opens it again."""
        with self._lock:
            if self._watch is not None:
                self._watch.close()
            self._watch = None

    def states(
        self, after: str, most: int, wanted: NamespaceFilter = ALL_NAMES
    ) -> Mapping[str, NamespaceState]:
        """The states of the next ``most`` namespaces after the name ``after`` that hold a topic, by name.

        They are read once as long as nothing is committed, since their rows are all over the file.
        """
        key = (after, most, wanted)
        with self._lock:
            state = self._state_of_file()
            if state != self._read_in:
                self._read.clear()
                self._read_in = state
            elif (known := self._read.get(key)) is not None:
                return known
        clause, values = wanted.clause(after)
        with self._catalog.reading() as connection:
            rows = connection.execute(f"{_STATE}{clause} ORDER BY name LIMIT ?", (*values, most))
            found: dict[str, NamespaceState] = {row[0]: row for row in rows}
        with self._lock:
            # A commit since that look is another state for the next call, which forgets this one.
            if state is not None and state == self._read_in:
                if sum(map(len, self._read.values())) + len(found) > _KEPT:
                    self._read.clear()
                self._read[key] = found
        return found

    def _state_of_file(self) -> int | None:
        """The number of the file's state, after a look at it; ``None`` if it cannot be read."""
        if self._watch is None:
            self._watch = FileWatch(self._catalog)
        elif self._watch.replaced:
            self._catalog.notice()
            self._watch.reopen()
        return self._watch.state if self._watch.look() else None

    def total(self, wanted: NamespaceFilter = ALL_NAMES) -> int:
        """The number of namespaces that hold a topic. With 100,000 that takes some 0.1 s, less with a filter."""
        clause, values = wanted.clause("")
        with self._catalog.reading() as connection:
            (count,) = connection.execute(f"SELECT count(*){clause}", values).fetchone()
        return int(count)

    def count(
        self,
        namespaces: Iterable[NamespaceName],
        states: Mapping[str, NamespaceState] = MappingProxyType({}),
    ) -> list[NamespaceCount]:
        """The counts of namespaces, in their order: the current ones, or those in the given ``states``."""
        wanted = {str(namespace): namespace for namespace in namespaces}
        with self._lock:
            kept = {name: pair for name in wanted if (pair := self._kept.get(name)) is not None}
        found = {name: count for name, (state, count) in kept.items() if state == states.get(name)}
        if len(found) < len(wanted):
            rest = {name: namespace for name, namespace in wanted.items() if name not in found}
            found |= self._counted_again(rest, kept)
        return [found[name] for name in wanted]

    def _counted_again(
        self, wanted: Mapping[str, NamespaceName], kept: Mapping[str, tuple[NamespaceState, NamespaceCount]]
    ) -> dict[str, NamespaceCount]:
        """Counts of the current versions: kept, or moved by the change log, or else counted."""
        as_it_was: dict[str, NamespaceCount] = {}
        counts: dict[str, NamespaceCount] = {}
        missing: dict[NamespaceName, NamespaceState] = {}
        with self._catalog.reading() as connection:
            never = read_catalog_id(connection), 0, 0, ""
            rows = connection.execute(_STATES, (compact_json([*wanted]),))
            states: dict[str, NamespaceState] = {row[0]: row for row in rows}
            for name, namespace in wanted.items():
                state = states.setdefault(name, (name, *never))
                before, count = kept.get(name, (None, None))
                if count is None:
                    missing[namespace] = state
                elif before == state:
                    as_it_was[name] = count
                elif (most := min(_MOVED, sum(count.names) // _A_CHANGE)) < _FEWEST or isinstance(
                    changes := read_changes(connection, namespace, count.version, most=most), Gap
                ):
                    missing[namespace] = state
                else:
                    counts[name] = _after(count, changes)
            if missing:
                counts |= {str(count.namespace): count for count in _counted(connection, missing)}
            times = dict(connection.execute(_CHANGED, (compact_json([*counts]),)))
        counts = {name: replace(count, changed=_time_text(times.get(name))) for name, count in counts.items()}
        with self._lock:
            # The oldest ones go; clients may request any name that holds nothing.
            for name, count in counts.items():
                self._kept.pop(name, None)
                if any(count.names):
                    self._kept[name] = states[name], count
            while len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
        return as_it_was | counts


def _time_text(milliseconds: int | None) -> str | None:
    return None if milliseconds is None else when(milliseconds).isoformat(timespec="milliseconds")


def _after(count: NamespaceCount, changes: Changes) -> NamespaceCount:
    if not changes:
        return count
    names = dict(zip(DOMAINS, count.names, strict=True))
    for change in changes:
        if not change.name.is_system:
            names[change.name.domain] += len(change.listed_after) - len(change.listed_before)
    return NamespaceCount(count.namespace, changes.version, tuple(names[domain] for domain in DOMAINS))


def _counted(
    connection: sqlite3.Connection, states: Mapping[NamespaceName, NamespaceState]
) -> Iterator[NamespaceCount]:
    """Count namespaces within the caller's transaction."""
    rule = system_topics_rule()
    rows: dict[tuple[int, int], tuple[int, bool]] = {}
    numbers = compact_json([number for _, _, number, _, _ in states.values()])
    for number, code, count, others in connection.execute(_ROWS, (rule.mark or "%", numbers)):
        rows[number, code] = count, bool(others)
    for namespace, (_, catalog_id, number, version, stamp) in states.items():
        names = []
        for code, domain in enumerate(DOMAINS):
            count, others = rows.get((number, code), (0, False))
            prefixes = rule.local_prefixes(namespace, domain)
            if count and (others or prefixes or not rule.mark):
                count = _looked_at(connection, number, code, rule, prefixes)
            names.append(count)
        yield NamespaceCount(namespace, CatalogVersion(catalog_id, version, stamp), tuple(names))


def _looked_at(
    connection: sqlite3.Connection, number: int, code: int, rule: SystemTopics, prefixes: Sequence[str]
) -> int:
    """The number of names of one domain of a namespace, by the forms that its topics are listed in."""
    own, suffix = compact_json(sorted(rule.local_names)), rule.local_suffix
    rows = connection.execute(_LISTED, (number, code, own, suffix, suffix, compact_json(prefixes)))
    return sum(len(ListedNames.parse(listed)) * count for listed, count in rows)


_COUNTS = (
    "SELECT listed, count(*), count(coalesce(nullif(properties, '{}'), nullif(configs, '{}'), replication)) FROM topics"
    " WHERE namespace = (SELECT id FROM namespaces WHERE name = ?) GROUP BY listed"
)


@dataclass(frozen=True, slots=True)
class NamespaceSummary:
    """The size of a namespace: ``topics``, and their listed ``names`` (partitions one by one, system topics too).

    ``with_details`` counts topics with properties, or with configs or replicas of Kafka.
    """

    namespace: NamespaceName
    version: CatalogVersion
    topics: int
    names: int
    with_details: int


def summarize(catalog: SqliteCatalog, namespace: NamespaceName) -> NamespaceSummary:
    """Count a namespace; all is 0 if it never had a topic."""
    version = catalog.version(namespace)
    with catalog.reading() as connection:
        rows = connection.execute(_COUNTS, (str(namespace),)).fetchall()
    return NamespaceSummary(
        namespace,
        version,
        topics=sum(count for _, count, _ in rows),
        names=sum(len(ListedNames.parse(listed)) * count for listed, count, _ in rows),
        with_details=sum(count for _, _, count in rows),
    )
