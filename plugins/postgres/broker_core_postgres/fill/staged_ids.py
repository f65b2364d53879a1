"""The ids that a source gives for topics: a temporary table with a row for each such topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from broker_core_postgres.fill.copy_text import escape_names
from broker_core_postgres.fill.temporary_table import NAME, StagedTable

__all__ = ["copy_ids", "keep_free_ids", "staged_ids"]

_COLUMNS: Final = {
    "namespace": f"{NAME} NOT NULL",
    "domain": f"{NAME} NOT NULL",
    "topic": f"{NAME} NOT NULL",
    "topic_id": "uuid NOT NULL",
    "part": "integer NOT NULL",
}

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


def staged_ids(connection: Any) -> StagedTable:
    """The table, of rows of :func:`copy_ids`. It has none if the source has no ids. The last id of a topic is kept."""
    return StagedTable(connection, "broker_core_staged_ids", _COLUMNS, _ONCE)


async def keep_free_ids(connection: Any, namespace: str) -> int:
    """Keep the ids of new topics of a namespace, unless another topic has the id, or had it a while ago.

    Returns how many new topics get another id than the given one. No other writer may change the namespace until the
    end of the transaction.
    """
    await connection.execute(_ONLY_NEW, namespace)
    status = await connection.execute(_ONLY_FREE)
    return int(status.rpartition(" ")[2])


def copy_ids(namespace: str, domain: str, ids: Mapping[str, bytes], *, part: int = 0) -> bytes:
    """Rows in COPY's text format, UTF-8, of 16 bytes for each local name of a topic."""
    head, tail = f"{namespace}\t{domain}\t", f"\t{part}\n"
    names = escape_names(list(ids))
    return "".join(
        [f"{head}{name}\t{each.hex()}{tail}" for name, each in zip(names, ids.values(), strict=True)]
    ).encode()
