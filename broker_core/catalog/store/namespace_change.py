"""One change of a namespace as a transaction: its version, its log entries, and the bounds of the log.

The log of a namespace holds the last versions up to a count of versions and of rows. A transaction that changes more
topics than that leaves no rows but a gap: readers at an older version see it (:class:`~.records.Gap`) and read anew.
"""

from __future__ import annotations

import secrets
import sqlite3
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from broker_core.catalog.properties import properties_of
from broker_core.catalog.store.deleted_topics import keep_deleted, keep_trimmed
from broker_core.change_log import CatalogVersion, Change, Changes, Gap, Operation
from broker_core.names import DOMAINS, ListedNames, NamespaceName, TopicName

__all__ = [
    "LogBounds",
    "LogSpan",
    "LoggedTexts",
    "NamespaceChange",
    "RecentRow",
    "RecentRows",
    "none_recreated",
    "read_catalog_id",
    "read_changes",
    "read_history",
    "read_recent",
    "read_span",
    "read_version",
    "when",
]

#: The texts of a topic's listed names (compact form), of its properties, and of its configs.
LoggedTexts: TypeAlias = "tuple[str, str | None, str | None]"
_NOTHING: Final[LoggedTexts] = ("", None, None)
_LOG: Final = (
    "INSERT INTO changes (namespace, version, operation, domain, base, topic_id, listed_before, listed_after,"
    " properties_before, properties_after, time, configs_before, configs_after)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_OPERATIONS: Final = {each.value: each for each in Operation}


@dataclass(frozen=True, slots=True)
class LogBounds:
    """The bounds of the log: the most versions and the most changed topics of each namespace.

    ``deleted`` is for how many milliseconds the id of a deleted topic is kept.
    """

    versions: int = 10_000
    rows: int = 50_000
    deleted: int = 4 * 60 * 60 * 1000


def when(milliseconds: int) -> datetime:
    """A stored time as a ``datetime``."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


class NamespaceChange:
    """The next version of a namespace, within a transaction that the caller began and will end.

    Call :meth:`log` for each changed topic (or fill the log by SQL and call :meth:`logged`), then :meth:`finish`;
    if :attr:`changed` is false there is nothing to finish, and the transaction is to be rolled back.
    """

    def __init__(self, connection: sqlite3.Connection, namespace: NamespaceName, bounds: LogBounds) -> None:
        self._connection = connection
        self._bounds = bounds
        self.namespace = namespace
        self.time = time.time_ns() // 1_000_000
        query = "SELECT id, version, log_from, log_rows FROM namespaces WHERE name = ?"
        row = connection.execute(query, (str(namespace),)).fetchone()
        if row is None:
            connection.execute(
                "INSERT INTO namespaces (name, version, log_from, log_rows) VALUES (?, 0, 0, 0)",
                (str(namespace),),
            )
            row = connection.execute(query, (str(namespace),)).fetchone()
        self.id: int = row[0]
        self.version: int = row[1] + 1
        self._log_from: int = row[2]
        self._log_from_before = self._log_from
        self._log_rows: int = row[3]
        self._stamp = secrets.token_hex(12)
        self._unwritten: list[tuple[object, ...]] = []
        self.changed = False

    @property
    def most_logged(self) -> int:
        """How many changes one transaction can leave in the log; more are a gap."""
        return self._bounds.rows if self._bounds.versions > 0 else 0

    @property
    def deleted_since(self) -> int:
        """The time (milliseconds since 1970) from which on ids of deleted topics are kept."""
        return self.time - self._bounds.deleted

    def keep_deleted(self, topics: str, values: Mapping[str, int]) -> None:
        """Keep the ids of topics that this version deletes and does not log: :func:`~.deleted_topics.keep_deleted`."""
        keep_deleted(self._connection, topics, values, self.deleted_since)

    def version_in(self, catalog_id: str) -> CatalogVersion:
        """The version that readers see after the commit."""
        return CatalogVersion(catalog_id, self.version, self._stamp)

    def log(
        self,
        operation: Operation,
        name: tuple[int, str],
        topic_id: bytes,
        before: LoggedTexts | None,
        after: LoggedTexts | None,
    ) -> None:
        """Log one changed topic: the number of its domain, its local name, its id, and its texts before and after.

        It is in the log after :meth:`flush`.
        """
        listed_before, properties_before, configs_before = before or _NOTHING
        listed_after, properties_after, configs_after = after or _NOTHING
        self._unwritten.append(
            (
                self.id,
                self.version,
                operation.value,
                *name,
                topic_id,
                listed_before,
                listed_after,
                properties_before,
                properties_after,
                self.time,
                configs_before,
                configs_after,
            )
        )
        self.changed = True

    def flush(self) -> None:
        """Write the entries of :meth:`log`."""
        if self._unwritten:
            self._connection.executemany(_LOG, self._unwritten)
            self.logged(len(self._unwritten))
            self._unwritten = []

    def logged(self, rows: int) -> None:
        """Count changes that were written to the log under :attr:`version`."""
        self._log_rows += rows
        self.changed = True

    def leave_gap(self, *, kept: bool = False) -> None:
        """Leave the changes of this version out of the log, so that followers cannot catch up across it.

        ``kept``: the ids of deleted topics were kept (:meth:`keep_deleted`); else they are in the log.
        """
        keep_trimmed(self._connection, self.id, self.version - kept, self.deleted_since)
        self._connection.execute("DELETE FROM changes WHERE namespace = ?", (self.id,))
        self._log_from = self.version
        self._log_rows = 0
        self.changed = True

    def finish(self) -> None:
        """Write the new version, and delete log entries beyond the bounds."""
        self.flush()
        self._trim(self.version - self._bounds.versions)
        if self._log_rows > self._bounds.rows:
            # Down to seven eighths, so that this look for the cut is not repeated with every small change.
            row = self._connection.execute(
                "SELECT version FROM changes WHERE namespace = ? ORDER BY version DESC LIMIT 1 OFFSET ?",
                (self.id, self._bounds.rows * 7 // 8),
            ).fetchone()
            # A version that alone exceeds seven eighths stays if it is the newest and fits.
            self._trim(row[0] if row[0] < self.version or self._bounds.rows == 0 else self.version - 1)
        self._connection.execute(
            "UPDATE namespaces SET version = ?, log_from = ?, log_rows = ? WHERE id = ?",
            (self.version, self._log_from, self._log_rows, self.id),
        )
        self._connection.execute(
            "INSERT INTO stamps (namespace, version, stamp) VALUES (?, ?, ?)",
            (self.id, self.version, self._stamp),
        )
        if self._log_from > self._log_from_before:
            self._connection.execute(
                "DELETE FROM stamps WHERE namespace = ? AND version < ?", (self.id, self._log_from)
            )

    def _trim(self, version: int) -> None:
        """Drop the changes up to and with ``version``."""
        if version > self._log_from:
            keep_trimmed(self._connection, self.id, version, self.deleted_since)
            gone = self._connection.execute(
                "DELETE FROM changes WHERE namespace = ? AND version <= ?", (self.id, version)
            ).rowcount
            self._log_from = version
            self._log_rows -= gone


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


class LogSpan(NamedTuple):
    """The rows of the log after one version, up to ``end``. ``namespace`` is its number."""

    namespace: int
    since: CatalogVersion
    end: CatalogVersion

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

    ``most`` and ``limit`` are as for :func:`read_span`.
    """
    span = read_span(connection, namespace, since, most=most, limit=limit)
    if isinstance(span, Gap):
        return span
    rows = span.rows(
        connection,
        "version, operation, domain, base, topic_id, listed_before, listed_after, properties_before,"
        " properties_after, time, configs_before, configs_after",
    )
    return Changes(since, span.end, tuple(_change(namespace, row) for row in rows))


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
    limit: int | None = None,
) -> LogSpan | Gap:
    """The span of the changes after ``since``; a :class:`Gap` if the log does not lead from there to now.

    More than ``most`` changes are a :class:`Gap`, too. With a ``limit``, they end at the last version with at most so
    many changes up to it, but include at least one version.
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
    end = now if limit is None else _version_within(connection, number, since, now, limit)
    return LogSpan(number, since, end)


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
    "SELECT version, operation, domain, base, topic_id, listed_before, listed_after, properties_before,"
    " properties_after, time, configs_before, configs_after FROM changes"
    " WHERE namespace = ? AND domain = ? AND base = ? ORDER BY version DESC, id DESC LIMIT ?"
)
#: The columns of it with texts that clients chose.
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
    asked = (ends.namespace or 0, DOMAINS.index(topic.domain), topic.local, most)
    begin = CatalogVersion(ends.catalog_id, ends.log_from or 0)
    changes: list[Change] = []
    for row in connection.execute(_HISTORY, asked):
        most_text -= sum(len(row[number] or "") for number in _HISTORY_TEXTS)
        if most_text < 0 and changes:
            return changes, begin, True
        changes.append(_change(topic.namespace, row))
    return changes, begin, len(changes) >= most


def _version_within(
    connection: sqlite3.Connection, namespace: int, since: CatalogVersion, now: CatalogVersion, limit: int
) -> CatalogVersion:
    """The last version with at most ``limit`` changes after ``since``, but at least the next one."""
    above = "FROM changes WHERE namespace = ? AND version > ? ORDER BY version, id"
    row = connection.execute(
        f"SELECT version {above} LIMIT 1 OFFSET ?", (namespace, since.number, limit)
    ).fetchone()
    if row is None:
        return now
    (first,) = connection.execute(f"SELECT version {above} LIMIT 1", (namespace, since.number)).fetchone()
    last = max(row[0] - 1, first)
    stamp = connection.execute(
        "SELECT stamp FROM stamps WHERE namespace = ? AND version = ?", (namespace, last)
    ).fetchone()
    return CatalogVersion(now.catalog_id, last, stamp[0] if stamp else "")


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
