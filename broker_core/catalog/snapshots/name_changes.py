"""Changes of a namespace's names since a version, read from the change log: names that came and that went.

Objects for each change are not needed for that; for some hundred rows they would cost more than all else.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from broker_core.catalog.store.log_rows import read_span
from broker_core.catalog.topic_record import properties_of
from broker_core.change_log import CatalogVersion, Gap
from broker_core.listing import ListingChange
from broker_core.names import DOMAINS, ListedNames, Mode, NamespaceName

__all__ = ["LoggedNames", "LoggedRow", "read_name_changes"]

#: A changed topic: the number of its domain, its local name, the compact forms of its listed names before and after,
#: and the texts of its properties before and after.
LoggedRow: TypeAlias = "tuple[int, str, str, str, str | None, str | None]"
#: The columns to read, without and with properties.
_NO_PROPERTIES: Final = "domain, base, listed_before, listed_after, NULL, NULL"
_PROPERTIES: Final = "domain, base, listed_before, listed_after, properties_before, properties_after"
#: All topics whose names and properties change in the same way.
_Alike: TypeAlias = "tuple[int, str, str, str | None, str | None]"


@dataclass(frozen=True, slots=True)
class LoggedNames:
    """The rows of the log after ``since`` up to and with ``version``, oldest first.

    Their properties are there if they were read (:func:`read_name_changes`).
    """

    namespace: NamespaceName
    since: CatalogVersion
    version: CatalogVersion
    rows: Sequence[LoggedRow]

    def __len__(self) -> int:
        return len(self.rows)

    def count(self, mode: Mode = Mode.ALL) -> int:
        """Number of names that the rows are about; names that a topic has before and after count twice."""
        forms = Counter([(domain, before, after) for domain, _, before, after, _, _ in self.rows])
        return sum(
            times * (len(ListedNames.parse(before)) + len(ListedNames.parse(after)))
            for (domain, before, after), times in forms.items()
            if mode.lists(DOMAINS[domain])
        )

    def names(self, mode: Mode) -> Iterator[str]:
        """The full names that the rows are about."""
        for domain, base, before, after, _, _ in self.rows:
            if mode.lists(DOMAINS[domain]):
                for listed in (before, after):
                    yield from ListedNames.parse(listed).names(self._prefix(domain) + base)

    def changed(self, mode: Mode, property_keys: Sequence[str]) -> ListingChange:
        """The changes that turn a listing of the first version into one of the last version.

        It is the net effect: a topic that is deleted and made again leaves no trace, nor do versions between.
        """
        removed: list[str] = []
        added: list[str] = []
        values: dict[str, list[str | None]] = {key: [] for key in property_keys}
        for (domain, listed_before, listed_after, had, has), bases in self._alike().items():
            if not mode.lists(DOMAINS[domain]):
                continue
            before, after = ListedNames.parse(listed_before), ListedNames.parse(listed_after)
            properties = properties_of(has)
            fresh = after.without(before) if _same(properties_of(had), properties, property_keys) else after
            prefix = self._prefix(domain)
            tops = [prefix + base for base in bases]
            removed += [top + end for end in before.without(after).names("") for top in tops]
            names = [top + end for end in fresh.names("") for top in tops]
            added += names
            for key, column in values.items():
                column.extend([properties.get(key)] * len(names))
        if len(set(added)) < len(added):  # a partition of one topic, and the plain name of another
            last = {name: row for row, name in enumerate(added)}
            added = list(last)
            values = {key: [column[row] for row in last.values()] for key, column in values.items()}
        return ListingChange(removed, added, values)

    def _alike(self) -> dict[_Alike, list[str]]:
        """The local names of topics by their state before the first row and after the last one."""
        first: dict[tuple[int, str], tuple[str, str | None]] = {}
        last: dict[tuple[int, str], tuple[str, str | None]] = {}
        for domain, base, before, after, had, has in self.rows:
            topic = (domain, base)
            if topic not in last:
                first[topic] = (before, had)
            last[topic] = (after, has)
        alike: dict[_Alike, list[str]] = {}
        for (topic, (before, had)), (after, has) in zip(first.items(), last.values(), strict=True):
            alike.setdefault((topic[0], before, after, had, has), []).append(topic[1])
        return alike

    def _prefix(self, domain: int) -> str:
        return f"{DOMAINS[domain]}://{self.namespace}/"


def read_name_changes(
    connection: sqlite3.Connection,
    namespace: NamespaceName,
    since: CatalogVersion,
    *,
    most: int,
    properties: bool,
) -> LoggedNames | Gap:
    """The changes after ``since``, with the properties of topics if ``properties`` is set.

    ``connection`` is within a transaction. More than ``most`` rows are a :class:`~broker_core.change_log.Gap`.
    """
    span = read_span(connection, namespace, since, most=most)
    if isinstance(span, Gap):
        return span
    rows = span.rows(connection, _PROPERTIES if properties else _NO_PROPERTIES).fetchall()
    return LoggedNames(namespace, since, span.end, rows)


def _same(had: Mapping[str, str], has: Mapping[str, str], keys: Sequence[str]) -> bool:
    return all(had.get(key) == has.get(key) for key in keys)
