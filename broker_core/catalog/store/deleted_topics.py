"""Ids of deleted topics: kept for a while after the deletion, so that no other topic gets one meanwhile.

Each deletion lets go of those that were kept for long enough, so that the table does not grow.
"""

from __future__ import annotations

import sqlite3
import uuid
from typing import NamedTuple

from broker_core.names import DOMAINS, NamespaceName, TopicName

__all__ = ["DeletedTopic", "deleted_topic", "forget_deleted", "keep_deleted"]

#: How many more ids a deletion lets go of than it adds, so that the table becomes smaller again.
_SPARE = 1_000


class DeletedTopic(NamedTuple):
    """A topic that is gone; ``deleted`` is in milliseconds since 1970."""

    name: TopicName
    topic_id: uuid.UUID
    deleted: int


def keep_deleted(
    connection: sqlite3.Connection, namespace: int, domain: int, base: str, topic_id: bytes, time: int
) -> None:
    """Keep the id of a topic that is deleted now."""
    connection.execute(
        "INSERT OR REPLACE INTO deleted_topics VALUES (?, ?, ?, ?, ?)",
        (topic_id, namespace, domain, base, time),
    )


def forget_deleted(connection: sqlite3.Connection, until: int, added: int = 1) -> None:
    """Let go of the ids that were deleted before ``until`` (milliseconds since 1970), the oldest first."""
    connection.execute(
        "DELETE FROM deleted_topics WHERE topic_id IN"
        " (SELECT topic_id FROM deleted_topics WHERE deleted < ? ORDER BY deleted LIMIT ?)",
        (until, added + _SPARE),
    )


def deleted_topic(connection: sqlite3.Connection, topic_id: uuid.UUID, since: int) -> DeletedTopic | None:
    """The topic that had this id, if it was deleted at ``since`` (milliseconds since 1970) or later."""
    row = connection.execute(
        "SELECT n.name, d.domain, d.base, d.deleted FROM deleted_topics d JOIN namespaces n ON n.id = d.namespace"
        " WHERE d.topic_id = ? AND d.deleted >= ?",
        (topic_id.bytes, since),
    ).fetchone()
    if row is None:
        return None
    namespace, domain, base, deleted = row
    return DeletedTopic(TopicName(DOMAINS[domain], NamespaceName.parse(namespace), base), topic_id, deleted)
