"""Reads of the change log and of versions of namespaces, each within one transaction of its caller."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from broker_core.catalog.topic_record import properties_of
from broker_core.change_log import CatalogVersion, Change, Changes, Gap, Operation
from broker_core.names import DOMAINS, ListedNames, NamespaceName, TopicName

__all__ = [
    "LogSpan",
    "RecentRow",
    "RecentRows",
    "SpanBound",
    "SpanCut",
    "none_recreated",
    "read_catalog_id",
    "read_changes",
    "read_changes_of",
    "read_history",
    "read_recent",
    "read_recreated",
    "read_span",
    "read_version",
    "when",
]

_OPERATIONS: Final = {each.value: each for each in Operation}
#: The columns of the log that make a change.
_COLUMNS: Final = (
    "version, operation, domain, base, topic_id, listed_before, listed_after, properties_before,"
    " properties_after, time, configs_before, configs_after"
)


def when(milliseconds: int) -> datetime:
    """A stored time as a ``datetime``."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


def read_catalog_id(connection: sqlite3.Connection) -> str:
    """The id of the file that this connection reads, even if it was replaced."""
    (catalog_id,) = connection.execute("SELECT catalog_id FROM meta").fetchone()
    return str(catalog_id)


def read_version(connection: sqlite3.Connection, namespace: NamespaceName) -> CatalogVersion:
    """The namespace's version; number 0 if it never had a topic."""
    catalog_id, number, stamp = connection.execute(
        "SELECT m.catalog_id, n.version, s.stamp FROM meta m LEFT JOIN namespaces n ON n.name = ?"
        " LEFT JOIN stamps s ON s.namespace = n.id AND s.version = n.version",
        (str(namespace),),
    ).fetchone()
    return CatalogVersion(catalog_id, number or 0, stamp or "")


class SpanBound(NamedTuple):
    """Bound of what is read of a log at once: whole versions, and one at least, unless it has more than ``alone``.

    ``size`` and ``alone`` are in bytes of JSON that escapes all but ASCII, with some for each change.
    """

    changes: int
    size: int | None = None
    alone: int | None = None

    def cut(self, rows: Iterable[tuple[int, int]]) -> SpanCut:
        """The first versions that keep it: of the version and the size of each change, the oldest first."""
        first: int | None = None
        current, last = 0, 0
        size = whole = 0  # of the changes so far, and of those of the versions before the current one
        for count, (version, row) in enumerate(rows, 1):
            if version != current:
                current, last, whole = version, current, size
                first = first or version
            size += row
            if current != first and (count > self.changes or (self.size is not None and size > self.size)):
                return SpanCut(last, whole, more=True)
            if self.alone is not None and size > self.alone:
                return SpanCut(None, size, more=True)
        return SpanCut(current, size, more=False)


class SpanCut(NamedTuple):
    """The last version of those that keep a bound, the size of their changes, and whether there are more.

    ``last`` is ``None`` if the first version alone has too much.
    """

    last: int | None
    size: int
    more: bool


class LogSpan(NamedTuple):
    """The rows of the log after one version, up to ``end``. ``namespace`` is its number.

    Of a span within a bound, ``size`` is that of its changes, and ``more`` whether there are newer ones.
    """

    namespace: int
    since: CatalogVersion
    end: CatalogVersion
    size: int = 0
    more: bool = False

    def rows(self, connection: sqlite3.Connection, columns: str, condition: str = "") -> sqlite3.Cursor:
        """The given columns of the rows, oldest first; ``condition`` begins with ``AND``."""
        return connection.execute(
            f"SELECT {columns} FROM changes WHERE namespace = ? AND version > ? AND version <= ? {condition}"  # noqa: S608
            " ORDER BY version, id",
            (self.namespace, self.since.number, self.end.number),
        )


def read_changes(
    connection: sqlite3.Connection,
    namespace: NamespaceName,
    since: CatalogVersion,
    *,
    most: int | None = None,
    limit: int | None = None,
) -> Changes | Gap:
    """The changes after ``since``; ``connection`` is within a transaction, so that they lead to one version.

    ``most`` is as for :func:`read_span`, ``limit`` the changes of its bound.
    """
    within = None if limit is None else SpanBound(limit)
    span = read_span(connection, namespace, since, most=most, within=within)
    return span if isinstance(span, Gap) else _changes_of(connection, namespace, span)


def read_changes_of(connection: sqlite3.Connection, namespace: NamespaceName, span: LogSpan) -> Changes | Gap:
    """The changes of a span that was found before, or a gap if the log has them no longer."""
    ends = _read_ends(connection, namespace, span.since)
    reason = ends.gap_reason(span.since)
    if reason is not None:
        return Gap(span.since, ends.now, reason)
    return _changes_of(connection, namespace, span)


def _changes_of(connection: sqlite3.Connection, namespace: NamespaceName, span: LogSpan) -> Changes:
    rows = span.rows(connection, _COLUMNS)
    return Changes(span.since, span.end, tuple(_change(namespace, row) for row in rows))


#: A changed topic: the numbers of the version and of its domain, its local name, the compact forms of its listed names
#: before and after, and the texts of its properties before and after.
RecentRow: TypeAlias = "tuple[int, int, str, str, str, str | None, str | None]"


class RecentRows(NamedTuple):
    """A few rows of the log, oldest first, and the version that they lead to."""

    version: CatalogVersion
    rows: list[RecentRow]


#: The first and last version of a namespace's log, and the stamp of a version.
_ENDS: Final = (
    "SELECT m.catalog_id, n.id, n.log_from, n.version, now.stamp, past.stamp{columns} FROM meta m"
    " LEFT JOIN namespaces n ON n.name = :name"
    " LEFT JOIN stamps now ON now.namespace = n.id AND now.version = n.version"
    " LEFT JOIN stamps past ON past.namespace = n.id AND past.version = :since{more}"
)
_ENDS_ALONE: Final = _ENDS.format(columns="", more="")
# Without an order: sorting a long log would read all of it.
_ENDS_AND_ROWS: Final = _ENDS.format(
    columns=", c.id, c.version, c.domain, c.base, c.listed_before, c.listed_after, c.properties_before,"
    " c.properties_after",
    more=" LEFT JOIN changes c ON c.namespace = n.id AND c.version > :since LIMIT :most",
)

#: The version and the id in a row of :data:`_ENDS_AND_ROWS`.
_AGE: Final = itemgetter(7, 6)


class _Ends(NamedTuple):
    """A row of :data:`_ENDS`."""

    catalog_id: str
    namespace: int | None
    log_from: int | None
    version: int | None
    stamp: str | None
    past_stamp: str | None

    @property
    def now(self) -> CatalogVersion:
        """The newest version; number 0 if there never was a topic."""
        return CatalogVersion(self.catalog_id, self.version or 0, self.stamp or "")

    def gap_reason(self, since: CatalogVersion) -> str | None:
        """Why the log does not lead from ``since`` to now."""
        if since.catalog_id != self.catalog_id:
            return "the version is of another catalogue"
        if since.number > (self.version or 0):
            return "the catalogue is older than the version: a copy of it was restored"
        if since.number < (self.log_from or 0):
            return f"the log reaches back to version {self.log_from} only"
        if since.stamp and since.number and self.past_stamp != since.stamp:
            return f"version {since.number} came again with other topics: a copy was restored"
        return None


def _read_ends(connection: sqlite3.Connection, namespace: NamespaceName, since: CatalogVersion) -> _Ends:
    values = {"name": str(namespace), "since": since.number}
    return _Ends(*connection.execute(_ENDS_ALONE, values).fetchone())


def read_recent(
    connection: sqlite3.Connection, namespace: NamespaceName, since: CatalogVersion, most: int
) -> RecentRows | None:
    """The changes after ``since``, read by one statement: for readers that do so after each commit.

    ``None`` if the log does not lead from there to now, or there are more than ``most``.
    """
    values = {"name": str(namespace), "since": since.number, "most": most + 1}
    found = connection.execute(_ENDS_AND_ROWS, values).fetchall()
    ends = _Ends(*found[0][:6])
    logged = [row for row in found if row[6] is not None]
    if len(logged) > most or ends.gap_reason(since) is not None:
        return None
    logged.sort(key=_AGE)
    return RecentRows(ends.now, [row[7:] for row in logged])


def read_span(
    connection: sqlite3.Connection,
    namespace: NamespaceName,
    since: CatalogVersion,
    *,
    most: int | None = None,
    within: SpanBound | None = None,
) -> LogSpan | Gap:
    """The span of the changes after ``since``; a :class:`Gap` if the log does not lead from there to now.

    More than ``most`` changes are a :class:`Gap`, too. ``within`` a bound they end at the last version up to which they
    keep it.
    """
    ends = _read_ends(connection, namespace, since)
    now, number = ends.now, ends.namespace or 0
    reason = ends.gap_reason(since)
    if reason is not None:
        return Gap(since, now, reason)
    if most is not None:
        counted = "SELECT count(*) FROM (SELECT 1 FROM changes WHERE namespace = ? AND version > ? LIMIT ?)"
        (found,) = connection.execute(counted, (number, since.number, most + 1)).fetchone()
        if found > most:
            return Gap(since, now, f"there are more than {most} changes")
    span = LogSpan(number, since, now)
    return span if within is None else _cut(connection, span, within)


#: Topics that were deleted and made again since given versions. ``:most`` bounds the rows.
_RECREATED = (
    "SELECT t.domain, t.base, t.listed FROM ("
    "SELECT domain, base FROM changes WHERE namespace = :id AND version > :since AND operation = 'create'"
    " INTERSECT "
    "SELECT domain, base FROM changes WHERE namespace = :id AND version > :gone AND operation = 'delete'"
    ") c JOIN topics t ON t.namespace = :id AND t.domain = c.domain AND t.base = c.base LIMIT :most"
)


def read_recreated(
    connection: sqlite3.Connection,
    namespace: NamespaceName,
    since: CatalogVersion,
    gone: CatalogVersion,
    most: int,
) -> list[str] | None:
    """The listed names of topics made after ``since`` whose names other topics had after ``gone``.

    ``None`` if the log does not reach back, or there are more than ``most``.
    """
    ends = _read_ends(connection, namespace, gone)
    if ends.gap_reason(gone) is not None:
        return None
    values = {"id": ends.namespace or 0, "since": since.number, "gone": gone.number, "most": most + 1}
    names: list[str] = []
    for domain, base, text in connection.execute(_RECREATED, values):
        listed = ListedNames.parse(text)
        if len(names) + len(listed) > most:
            return None
        names += listed.names(str(TopicName(DOMAINS[domain], namespace, base)))
    return names


#: Rows of the log in which topics that were made again are looked for at once.
_FEW: Final = 256
_NONE_RECREATED: Final = _ENDS.format(
    columns=", (SELECT count(*) FROM (SELECT 1 FROM changes WHERE namespace = n.id AND version > :since LIMIT :few))"
    " < :few AND NOT EXISTS (SELECT domain, base FROM (SELECT domain, base, operation FROM changes"
    " WHERE namespace = n.id AND version > :made LIMIT :few) WHERE operation = 'create'"
    " INTERSECT SELECT domain, base FROM (SELECT domain, base, operation FROM changes"
    " WHERE namespace = n.id AND version > :since LIMIT :few) WHERE operation = 'delete')",
    more="",
)


def none_recreated(
    connection: sqlite3.Connection, namespace: NamespaceName, since: CatalogVersion, gone: CatalogVersion
) -> bool:
    """Whether a few rows of the log are enough to know that :func:`read_recreated` has no names; one statement."""
    values = {"name": str(namespace), "since": gone.number, "made": since.number, "few": _FEW}
    *ends, is_none = connection.execute(_NONE_RECREATED, values).fetchone()
    return bool(is_none) and _Ends(*ends).gap_reason(gone) is None


_HISTORY = (
    f"SELECT {_COLUMNS} FROM changes"  # noqa: S608
    " WHERE namespace = ? AND domain = ? AND base = ? ORDER BY version DESC, id DESC LIMIT ?"
)
#: The columns of a topic's history with texts that clients chose.
_HISTORY_TEXTS: Final = (7, 8, 10, 11)


def read_history(
    connection: sqlite3.Connection, topic: TopicName, most: int, most_text: int
) -> tuple[list[Change], CatalogVersion, bool]:
    """The last changes of one topic, the newest first, the version after which the log has all, and whether older ones
    may be left out: there are ``most`` of them, or as many as have ``most_text`` characters of properties and configs,
    and one at least.

    The log of the namespace is read from its end, some 50,000 rows at most. Deleted topics that had this name are
    included, with their own ids.
    """
    ends = _read_ends(connection, topic.namespace, CatalogVersion("", 0))
    values = (ends.namespace or 0, DOMAINS.index(topic.domain), topic.local, most)
    begin = CatalogVersion(ends.catalog_id, ends.log_from or 0)
    changes: list[Change] = []
    for row in connection.execute(_HISTORY, values):
        most_text -= sum(len(row[number] or "") for number in _HISTORY_TEXTS)
        if most_text < 0 and changes:
            return changes, begin, True
        changes.append(_change(topic.namespace, row))
    return changes, begin, len(changes) >= most


def _size_of(column: str) -> str:
    """SQL of the bytes of a text in JSON, never too few: one for a character of ASCII, and more than the six or twelve
    of an escaped one, of two to four bytes.
    """
    return f"ifnull(5 * length(CAST({column} AS BLOB)) - 4 * length({column}), 0)"


#: The size of a row in JSON, with what was before. Ranges of partitions are arrays there.
_ROW_SIZE: Final = " + ".join(
    [
        "320 + 8 * (length(listed_before) + length(listed_after))",
        *map(_size_of, ("base", "properties_before", "properties_after", "configs_before", "configs_after")),
    ]
)


def _cut(connection: sqlite3.Connection, span: LogSpan, within: SpanBound) -> LogSpan | Gap:
    cut = within.cut(span.rows(connection, f"version, {_ROW_SIZE}"))
    if cut.last is None:
        reason = f"the next version alone has changes of more than {within.alone:,} bytes"
        return Gap(span.since, span.end, reason)
    if not cut.more:
        return span._replace(size=cut.size)
    stamp = connection.execute(
        "SELECT stamp FROM stamps WHERE namespace = ? AND version = ?", (span.namespace, cut.last)
    ).fetchone()
    end = CatalogVersion(span.end.catalog_id, cut.last, stamp[0] if stamp else "")
    return span._replace(end=end, size=cut.size, more=True)


def _change(namespace: NamespaceName, row: tuple[Any, ...]) -> Change:
    # In the order of the fields: naming each of them takes as long as the rest.
    return Change(
        row[0],
        _OPERATIONS[row[1]],
        TopicName(DOMAINS[row[2]], namespace, row[3]),
        uuid.UUID(bytes=row[4]),
        ListedNames.parse(row[5]),
        ListedNames.parse(row[6]),
        properties_of(row[7]),
        properties_of(row[8]),
        when(row[9]),
        properties_of(row[10]),
        properties_of(row[11]),
    )
