"""The changes of requests to the topics that a cluster lists."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from broker_core.wire.kafka import (
    ALTER_PARTITION_REASSIGNMENTS,
    CREATE_ACLS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_ACLS,
    DELETE_TOPICS,
    Api,
    Fields,
)

__all__ = ["ChangedTopics", "changed_topics"]

#: By topic how many partitions it has at least after a change, ``None`` of one that is gone.
ChangedTopics = dict[str, int | None]
#: Requests after which a listing is another one, or one for other clients.
_CHANGING: Final = frozenset(
    {ALTER_PARTITION_REASSIGNMENTS, CREATE_ACLS, CREATE_PARTITIONS, CREATE_TOPICS, DELETE_ACLS, DELETE_TOPICS}
)


def changed_topics(api: Api, body: Mapping[str, Any], answer: Fields | None) -> ChangedTopics | None:
    """The topics that were changed for sure, of which there may be none; ``None`` if the request changes no listing.

    Without an ``answer`` the result of the request is unknown.
    """
    if api not in _CHANGING or body.get("validate_only"):
        return None
    if answer is None:
        return {}
    if api is CREATE_TOPICS:
        done = (row for row in answer["topics"] if not row["error_code"])
        return {row["name"]: max(row.get("num_partitions", 1), 1) for row in done}
    if api is CREATE_PARTITIONS:
        counts = {row["name"]: row["count"] for row in body["topics"]}
        return {row["name"]: counts[row["name"]] for row in answer["results"] if not row["error_code"]}
    if api is DELETE_TOPICS:
        return {
            row["name"]: None
            for row in answer["responses"]
            if row["name"] is not None and not row["error_code"]
        }
    return {}
