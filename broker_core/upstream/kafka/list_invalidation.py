"""The changes of requests to the topics that a cluster lists, and the nodes that do not show them yet."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
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

__all__ = ["ChangedTopics", "UnshownChanges", "changed_topics"]

#: The least number of partitions of each topic after a change, ``None`` for a deleted one.
ChangedTopics = dict[str, int | None]
#: Requests that may change a listing, or which clients may see it.
_CHANGING: Final = frozenset(
    {ALTER_PARTITION_REASSIGNMENTS, CREATE_ACLS, CREATE_PARTITIONS, CREATE_TOPICS, DELETE_ACLS, DELETE_TOPICS}
)
#: Seconds for which nodes are waited for to show a change that was made through this gateway, and between two looks.
_SHOWN_WITHIN: Final = 5.0
_LOOK: Final = 0.05


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


@dataclass(slots=True, eq=False)
class UnshownChanges:
    """The changes made through this gateway that nodes may not show yet: nodes get them one after another."""

    #: By topic its number of partitions since a change (``None``: deleted), and the time until which nodes may lag.
    _changed: dict[str, tuple[int | None, float]] = field(default_factory=dict)

    def note(self, changed: ChangedTopics) -> None:
        """Wait from now on for nodes to show that topics were changed."""
        until = asyncio.get_running_loop().time() + _SHOWN_WITHIN
        self._changed |= {name: (partitions, until) for name, partitions in changed.items()}

    async def wait(self, ask: Callable[[Fields], Awaitable[Fields]]) -> None:
        """Wait until a node shows the changes; ``ask`` gives its answer to a request for Metadata."""
        while True:
            now = asyncio.get_running_loop().time()
            self._changed = {name: each for name, each in self._changed.items() if each[1] > now}
            if not self._changed:
                return
            wanted = dict(self._changed)
            shown = await ask(
                {"topics": [{"name": name} for name in wanted], "allow_auto_topic_creation": False}
            )
            has = {row["name"]: len(row["partitions"]) for row in shown["topics"] if not row["error_code"]}
            if all(_shows(has.get(name), partitions) for name, (partitions, _) in wanted.items()):
                return
            await asyncio.sleep(_LOOK)


def _shows(has: int | None, partitions: int | None) -> bool:
    return has is None if partitions is None else has is not None and has >= partitions
