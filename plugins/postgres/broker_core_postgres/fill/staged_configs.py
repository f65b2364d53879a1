"""Kafka's configs and numbers of replicas that a source gives: a temporary table with a row for each such topic."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from broker_core_postgres.fill.copy_text import escape_names
from broker_core_postgres.fill.filling_failed import FillingFailed

__all__ = ["StagedConfigs", "copy_configs"]

_CREATE: Final = """CREATE TEMPORARY TABLE broker_core_staged_configs (
    namespace text COLLATE "C" NOT NULL,
    domain text COLLATE "C" NOT NULL,
    topic text COLLATE "C" NOT NULL,
    configs jsonb,
    replication smallint,
    part integer NOT NULL
)"""
_COLUMNS: Final = ("namespace", "domain", "topic", "configs", "replication", "part")
_DROP: Final = "DROP TABLE IF EXISTS pg_temp.broker_core_staged_configs"

# A topic that several parts of a file name: the last configs, and the last number.
_ONCE: Final = """WITH every AS (DELETE FROM pg_temp.broker_core_staged_configs RETURNING *)
    INSERT INTO pg_temp.broker_core_staged_configs
    SELECT namespace, domain, topic, (array_agg(configs ORDER BY part DESC) FILTER (WHERE configs IS NOT NULL))[1],
        (array_agg(replication ORDER BY part DESC) FILTER (WHERE replication IS NOT NULL))[1], 0
    FROM every GROUP BY namespace, domain, topic"""
_NULL: Final = r"\N"


class StagedConfigs:
    """The table of a connection. It has no rows where the source has no configs and replicas."""

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
        """Add the rows of :func:`copy_configs`. If ``blocks`` raises, none are added."""
        await self._connection.copy_to_table(
            "broker_core_staged_configs",
            schema_name="pg_temp",
            columns=_COLUMNS,
            source=blocks,
            format="text",
        )

    async def keep_each_once(self) -> None:
        """Merge the rows of several parts about the same topics."""
        await self._connection.execute(_ONCE)

    async def analyze(self) -> None:
        """Collect statistics for the planner; autovacuum does not see temporary tables."""
        await self._connection.execute("ANALYZE pg_temp.broker_core_staged_configs")


def copy_configs(
    namespace: str, domain: str, given: Mapping[str, tuple[str | None, int | None]], *, part: int = 0
) -> bytes:
    """Rows in COPY's text format, UTF-8: by each local name of a topic its configs as JSON, and its replicas.

    ``None``: the source does not say. Raises :exc:`FillingFailed` for a text that PostgreSQL cannot hold.
    """
    head, tail = f"{namespace}\t{domain}\t", f"\t{part}\n"
    names = escape_names(list(given))
    return "".join(
        [
            f"{head}{name}\t{_text(name, configs)}\t{_NULL if replication is None else replication}{tail}"
            for name, (configs, replication) in zip(names, given.values(), strict=True)
        ]
    ).encode()


def _text(name: str, configs: str | None) -> str:
    if configs is None:
        return _NULL
    if "\\u0000" in configs and any("\0" in word for pair in json.loads(configs).items() for word in pair):
        raise FillingFailed(f"A config of {name!r} has a NUL character, which PostgreSQL cannot hold")
    # JSON escapes tabs and line feeds itself.
    return configs.replace("\\", "\\\\")
