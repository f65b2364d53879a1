"""One change of a namespace as a transaction: its version, its log entries, and the bounds of the log.

The log of a namespace holds the last versions up to a count of versions and of rows. A transaction that changes more
topics than that leaves no rows but a gap: readers at an older version see it (:class:`~broker_core.change_log.Gap`) and
read anew.

Ids of deleted topics are known for a while after the deletion, so that no import gives one to another topic meanwhile.
A deletion is in the change log. Deletions that the log drops too early are kept in a table of their own, in the order
of the deletions; each addition removes the ones that were kept for long enough, so that it does not grow. Both are read
as a whole, by imports with ids and for people: not by listings, nor by look-ups of a topic by its id.
"""

from __future__ import annotations

import secrets
import sqlite3
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from broker_core.change_log import CatalogVersion, Operation
from broker_core.names import DOMAINS, NamespaceName, TopicName

__all__ = [
    "DELETED_IDS",
    "DeletedTopic",
    "LogBounds",
    "LoggedTexts",
    "NamespaceChange",
    "deleted_topic",
    "forget_deleted",
    "keep_deleted",
    "keep_trimmed",
]


#: How many more ids are removed than are added, so that the table becomes smaller again.
_SPARE: Final = 1_000
_KEEP: Final = "INSERT INTO main.deleted_topics (topic_id, namespace, domain, base, deleted) "
_TRIMMED: Final = (
    f"{_KEEP} SELECT topic_id, namespace, domain, base, time FROM main.changes WHERE namespace = ? AND version <= ?"  # noqa: S608
    " AND operation = 'delete' AND time >= ? ORDER BY id"
)
#: The ids that were deleted at the time ``:since`` (milliseconds since 1970) or later.
DELETED_IDS: Final = (
    "SELECT topic_id FROM main.changes WHERE operation = 'delete' AND time >= :since"
    " UNION ALL SELECT topic_id FROM main.deleted_topics WHERE deleted >= :since"
)
_DELETED: Final = (
    "SELECT n.name, d.domain, d.base, d.deleted FROM (SELECT namespace, domain, base, topic_id, time AS deleted"
    " FROM changes WHERE operation = 'delete' AND topic_id = :id AND time >= :since"
    " UNION ALL SELECT namespace, domain, base, topic_id, deleted FROM deleted_topics"
    " WHERE topic_id = :id AND deleted >= :since) d JOIN namespaces n ON n.id = d.namespace"
    " ORDER BY d.deleted DESC LIMIT 1"
)


class DeletedTopic(NamedTuple):
    """A topic that is gone; ``deleted`` is in milliseconds since 1970."""

    name: TopicName
    topic_id: uuid.UUID
    deleted: int


def keep_trimmed(connection: sqlite3.Connection, namespace: int, version: int, since: int) -> None:
    """Keep the ids of deletions since a time that the log is about to drop: up to and with ``version``."""
    kept = connection.execute(_TRIMMED, (namespace, version, since)).rowcount
    if kept:
        forget_deleted(connection, since, kept)


def keep_deleted(connection: sqlite3.Connection, topics: str, values: Mapping[str, int], since: int) -> None:
    """Keep the ids of deletions that are not logged.

    ``topics`` selects them: id, number of the namespace and of the domain, local name, time.
    """
    kept = connection.execute(_KEEP + topics, values).rowcount
    forget_deleted(connection, since, kept)


def forget_deleted(connection: sqlite3.Connection, until: int, added: int) -> None:
    """Remove the ids that were deleted before ``until`` (milliseconds since 1970), the oldest first."""
    connection.execute(
        "DELETE FROM deleted_topics WHERE deleted < ? AND id IN"
        " (SELECT id FROM deleted_topics ORDER BY id LIMIT ?)",
        (until, added + _SPARE),
    )


def deleted_topic(connection: sqlite3.Connection, topic_id: uuid.UUID, since: int) -> DeletedTopic | None:
    """The topic that had this id, if it was deleted at ``since`` (milliseconds since 1970) or later."""
    row = connection.execute(_DELETED, {"id": topic_id.bytes, "since": since}).fetchone()
    if row is None:
        return None
    namespace, domain, base, deleted = row
    return DeletedTopic(TopicName(DOMAINS[domain], NamespaceName.parse(namespace), base), topic_id, deleted)


#: The texts of a topic's listed names (compact form), of its properties, and of its configs.
LoggedTexts: TypeAlias = "tuple[str, str | None, str | None]"
_NOTHING: Final[LoggedTexts] = ("", None, None)
_LOG: Final = (
    "INSERT INTO changes (namespace, version, operation, domain, base, topic_id, listed_before, listed_after,"
    " properties_before, properties_after, time, configs_before, configs_after)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


@dataclass(frozen=True, slots=True)
class LogBounds:
    """The bounds of the log: the most versions and the most changed topics of each namespace.

    ``deleted`` is for how many milliseconds the id of a deleted topic is kept.
    """

    versions: int = 10_000
    rows: int = 50_000
    deleted: int = 4 * 60 * 60 * 1000


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
        """Most changes that one transaction can leave in the log; more are a gap."""
        return self._bounds.rows if self._bounds.versions > 0 else 0

    @property
    def deleted_since(self) -> int:
        """The time (milliseconds since 1970) from which on ids of deleted topics are kept."""
        return self.time - self._bounds.deleted

    def keep_deleted(self, topics: str, values: Mapping[str, int]) -> None:
        """Keep the ids of topics that this version deletes and does not log: :func:`keep_deleted`."""
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
