"""Ids of deleted topics: known for a while after the deletion, so that no import gives one to another topic meanwhile.

A deletion is in the change log. Deletions that the log drops too early are kept in a table of their own, in the order
of the deletions; each addition removes the ones that were kept for long enough, so that it does not grow. Both are read
as a whole, by imports with ids and for people: not by listings, nor by look-ups of a topic by its id.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Mapping
from typing import Final, NamedTuple

from broker_core.names import DOMAINS, NamespaceName, TopicName

__all__ = ["DELETED_IDS", "DeletedTopic", "deleted_topic", "forget_deleted", "keep_deleted", "keep_trimmed"]

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
