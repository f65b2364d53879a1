"""The ids that a source gives for topics: a temporary table with a row for each of these topics."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from broker_core_postgres.fill.copy_text import escape_names

__all__ = ["StagedIds", "copy_ids"]

_CREATE: Final = """CREATE TEMPORARY TABLE broker_core_staged_ids (
    namespace text COLLATE "C" NOT NULL,
    domain text COLLATE "C" NOT NULL,
    topic text COLLATE "C" NOT NULL,
    topic_id uuid NOT NULL,
    part integer NOT NULL
)"""
_COLUMNS: Final = ("namespace", "domain", "topic", "topic_id", "part")
_DROP: Final = "DROP TABLE IF EXISTS pg_temp.broker_core_staged_ids"

# A topic that several parts of a file name: the id of the last one.
_ONCE: Final = """DELETE FROM pg_temp.broker_core_staged_ids s USING pg_temp.broker_core_staged_ids later
    WHERE later.namespace = s.namespace AND later.domain = s.domain AND later.topic = s.topic AND later.part > s.part"""
# A topic that is there keeps its id.
_ONLY_NEW: Final = """DELETE FROM pg_temp.broker_core_staged_ids s
    WHERE s.namespace = $1 AND EXISTS (SELECT FROM broker_core.topics t
        WHERE t.namespace = $1 AND t.domain = s.domain AND t.matched = s.topic)"""
# Ids that another topic has, or had a while ago, or that are given to several.
_ONLY_FREE: Final = """DELETE FROM pg_temp.broker_core_staged_ids s
    WHERE s.topic_id IN (SELECT t.topic_id FROM broker_core.topics t)
        OR s.topic_id IN (SELECT d.topic_id FROM broker_core.tombstones d)
        OR EXISTS (SELECT FROM pg_temp.broker_core_staged_ids o
            WHERE o.topic_id = s.topic_id AND (o.domain, o.topic) < (s.domain, s.topic))"""


class StagedIds:
    """The table of a connection. It has no rows where the source has no ids."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def create(self, *, keep: bool = False) -> None:
        """Create the empty table, for the transaction or, with ``keep``, for the connection."""
        await self._connection.execute(_DROP)
        await self._connection.execute(_CREATE + ("" if keep else " ON COMMIT DROP"))

    async def drop(self) -> None:
        """Drop the table before the connection ends."""
        await self._connection.execute(_DROP)

    async def copy(self, blocks: AsyncIterator[bytes]) -> None:
        """Add the rows of :func:`copy_ids`. If ``blocks`` raises, none are added."""
        await self._connection.copy_to_table(
            "broker_core_staged_ids",
            schema_name="pg_temp",
            columns=_COLUMNS,
            source=blocks,
            format="text",
        )

    async def keep_each_once(self) -> None:
        """Keep the last id of each topic."""
        await self._connection.execute(_ONCE)

    async def keep_free_ones(self, namespace: str) -> int:
        """Keep the ids of new topics of a namespace, unless another topic has the id, or had it a while ago.

        Returns how many new topics get another id than the given one. No other writer may change the namespace until
        the end of the transaction.
        """
        await self._connection.execute(_ONLY_NEW, namespace)
        status = await self._connection.execute(_ONLY_FREE)
        return int(status.rpartition(" ")[2])

    async def analyze(self) -> None:
        """Collect statistics for the planner; autovacuum does not see temporary tables."""
        await self._connection.execute("ANALYZE pg_temp.broker_core_staged_ids")


def copy_ids(namespace: str, domain: str, ids: Mapping[str, bytes], *, part: int = 0) -> bytes:
    """Rows in COPY's text format, UTF-8, of 16 bytes for each local name of a topic."""
    head, tail = f"{namespace}\t{domain}\t", f"\t{part}\n"
    names = escape_names(list(ids))
    return "".join(
        [f"{head}{name}\t{each.hex()}{tail}" for name, each in zip(names, ids.values(), strict=True)]
    ).encode()
