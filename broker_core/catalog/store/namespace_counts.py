"""How many names each namespace lists, by domain, for pages of namespaces: counted once for each version.

What a listing leaves out (:mod:`~broker_core.names.system_topics`) is not counted, so that a count is the length of the
listing. A namespace is counted again only where its change log does not lead from the last count.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, TypeAlias

from broker_core.catalog.store.namespace_change import read_catalog_id, read_changes, when
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.change_log import CatalogVersion, Changes, Gap
from broker_core.compact_json import compact_json
from broker_core.names import DOMAINS, NamespaceName
from broker_core.names.listed_names import ListedNames
from broker_core.names.system_topics import SystemTopics, system_topics_rule

__all__ = ["ALL_NAMES", "MeantNames", "NamespaceCount", "NamespaceCounts"]

#: Counts that are kept: those of the largest page, some four megabytes.
_KEPT: Final = 10_000
#: Changes up to which a count is moved.
_MOVED: Final = 5000
_MEANT: Final = (
    " FROM namespaces n WHERE name > ? AND name >= ? AND name < ?{contains}"
    " AND EXISTS (SELECT 1 FROM topics WHERE namespace = n.id)"
)
#: Of each namespace the time of its last change, if the log has it.
_CHANGED: Final = (
    "SELECT n.name, (SELECT time FROM changes WHERE namespace = n.id ORDER BY version DESC, id DESC LIMIT 1)"
    " FROM json_each(?) asked JOIN namespaces n ON n.name = asked.value"
)
_STATES: Final = (
    "SELECT n.name, n.id, n.version, coalesce(s.stamp, '') FROM json_each(?) asked"
    " JOIN namespaces n ON n.name = asked.value"
    " LEFT JOIN stamps s ON s.namespace = n.id AND s.version = n.version"
)
#: A namespace's number in the file, its version and the stamp of that.
_State: TypeAlias = list[Any]
#: That of one without a row: it never had a topic.
_NEVER: Final[_State] = [0, 0, ""]
#: In the order of the table, so that nothing is sorted; with how many topics have to be looked at once more.
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

    ``changed`` is when a topic changed last, in UTC; ``None`` if the change log had nothing.
    """

    namespace: NamespaceName
    version: CatalogVersion
    names: tuple[int, ...]
    changed: datetime | None = None


@dataclass(frozen=True, slots=True)
class MeantNames:
    """A filter of names of namespaces: those that begin with ``prefix`` and contain each of some texts."""

    prefix: str = ""
    contains: tuple[str, ...] = ()

    def has(self, name: str) -> bool:
        """Whether a name is meant."""
        return name.startswith(self.prefix) and all(part in name for part in self.contains)

    def clause(self, after: str) -> tuple[str, tuple[str, ...]]:
        """The rest of a statement for the names behind one, with its values."""
        # Names are ASCII: nothing that begins with the prefix sorts behind it and 0x7f.
        clause = _MEANT.format(contains=" AND instr(name, ?)" * len(self.contains))
        return clause, (after, self.prefix, f"{self.prefix}\x7f", *self.contains)


ALL_NAMES: Final = MeantNames()


class NamespaceCounts:
    """Counts the namespaces of one catalogue. Synchronous, and safe to call from any thread.

    What the catalogue cannot read is raised as a :exc:`~broker_core.catalog.errors.CatalogError`.
    """

    def __init__(self, catalog: SqliteCatalog) -> None:
        self._catalog = catalog
        self._kept: dict[NamespaceName, NamespaceCount] = {}
        self._lock = threading.Lock()

    def names(self, after: str, most: int, meant: MeantNames = ALL_NAMES) -> list[str]:
        """The next ``most`` namespaces that hold a topic, in order of their names, behind the name ``after``."""
        clause, values = meant.clause(after)
        with self._catalog.reading() as connection:
            rows = connection.execute(f"SELECT name{clause} ORDER BY name LIMIT ?", (*values, most))
            return [name for (name,) in rows]

    def total(self, meant: MeantNames = ALL_NAMES) -> int:
        """How many namespaces hold a topic. Of 100,000 that takes some 0.1 s, and less of those with a filter."""
        clause, values = meant.clause("")
        with self._catalog.reading() as connection:
            (count,) = connection.execute(f"SELECT count(*){clause}", values).fetchone()
        return int(count)

    def count(self, namespaces: Iterable[NamespaceName]) -> list[NamespaceCount]:
        """The counts of namespaces, in their order, all of one state of the catalogue."""
        asked = list(namespaces)
        with self._lock:
            found = {each: kept for each in asked if (kept := self._kept.get(each)) is not None}
        with self._catalog.reading() as connection:
            catalog_id = read_catalog_id(connection)
            rows = connection.execute(_STATES, (compact_json([str(namespace) for namespace in asked]),))
            states: dict[str, _State] = {name: state for name, *state in rows}
            stale: dict[NamespaceName, _State] = {}
            for namespace in asked:
                state, kept = states.get(str(namespace), _NEVER), found.get(namespace)
                if kept is None or not _is_of(kept.version, catalog_id, *state):
                    stale[namespace] = state
            if stale:
                found |= self._counted_again(connection, catalog_id, stale, found)
        return [found[namespace] for namespace in asked]

    def _counted_again(
        self,
        connection: sqlite3.Connection,
        catalog_id: str,
        stale: Mapping[NamespaceName, _State],
        known: Mapping[NamespaceName, NamespaceCount],
    ) -> dict[NamespaceName, NamespaceCount]:
        """Counts of namespaces that have changed: moved by the change log if that leads there, else counted."""
        counts: dict[NamespaceName, NamespaceCount] = {}
        for namespace in stale.keys() & known.keys():
            kept = known[namespace]
            changes = read_changes(connection, namespace, kept.version, most=_MOVED)
            if not isinstance(changes, Gap):
                counts[namespace] = _after(kept, changes)
        missing = {namespace: state for namespace, state in stale.items() if namespace not in counts}
        if missing:
            counts |= {count.namespace: count for count in _counted(connection, catalog_id, missing)}
        rows = connection.execute(_CHANGED, (compact_json([str(namespace) for namespace in counts]),))
        times = {name: when(time) for name, time in rows if time is not None}
        counts = {each: replace(count, changed=times.get(str(each))) for each, count in counts.items()}
        with self._lock:
            # Those that were kept for the longest time go; of what holds nothing clients may ask about any name.
            for namespace, count in counts.items():
                self._kept.pop(namespace, None)
                if any(count.names):
                    self._kept[namespace] = count
            while len(self._kept) > _KEPT:
                del self._kept[next(iter(self._kept))]
        return counts


def _is_of(version: CatalogVersion, catalog_id: str, _: int, number: int, stamp: str) -> bool:
    return version.number == number and version.stamp == stamp and version.catalog_id == catalog_id


def _after(count: NamespaceCount, changes: Changes) -> NamespaceCount:
    if not changes:
        return count
    names = dict(zip(DOMAINS, count.names, strict=True))
    for change in changes:
        if not change.name.is_system:
            names[change.name.domain] += len(change.listed_after) - len(change.listed_before)
    return NamespaceCount(count.namespace, changes.version, tuple(names[domain] for domain in DOMAINS))


def _counted(
    connection: sqlite3.Connection, catalog_id: str, states: Mapping[NamespaceName, _State]
) -> Iterator[NamespaceCount]:
    """Count namespaces within the caller's transaction."""
    rule = system_topics_rule()
    rows: dict[tuple[int, int], tuple[int, bool]] = {}
    numbers = compact_json([number for number, *_ in states.values()])
    for number, code, count, others in connection.execute(_ROWS, (rule.mark or "%", numbers)):
        rows[number, code] = count, bool(others)
    for namespace, (number, version, stamp) in states.items():
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
    """The names of one domain of a namespace by the forms that its topics are listed in."""
    own, suffix = compact_json(sorted(rule.local_names)), rule.local_suffix
    rows = connection.execute(_LISTED, (number, code, own, suffix, suffix, compact_json(prefixes)))
    return sum(len(ListedNames.parse(listed)) * count for listed, count in rows)
