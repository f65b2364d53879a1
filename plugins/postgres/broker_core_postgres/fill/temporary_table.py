"""A temporary table of data from a source, filled by COPY. It belongs to one connection and locks nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

__all__ = ["NAME", "StagedTable"]

#: The type of names, which sort by their bytes.
NAME: Final = 'text COLLATE "C"'


class StagedTable:
    """The table ``name`` in the schema of temporary tables.

    ``columns``: the type of each column, in their order. ``once``: the SQL that merges rows about the same topics.
    """

    def __init__(self, connection: Any, name: str, columns: Mapping[str, str], once: str) -> None:
        self._connection = connection
        self._name = name
        self._columns = columns
        self._once = once
        self._drop = f"DROP TABLE IF EXISTS pg_temp.{name}"

    async def create(self, *, keep: bool = False) -> None:
        """Create it empty, for the transaction or, with ``keep``, for the connection."""
        columns = ", ".join(f"{name} {of}" for name, of in self._columns.items())
        await self._connection.execute(self._drop)
        await self._connection.execute(
            f"CREATE TEMPORARY TABLE {self._name} ({columns})" + ("" if keep else " ON COMMIT DROP")
        )

    async def drop(self) -> None:
        """Drop it before the connection ends."""
        await self._connection.execute(self._drop)

    async def copy(self, blocks: AsyncIterator[bytes]) -> None:
        """Add rows in COPY's text format. If ``blocks`` raises, none are added."""
        await self._connection.copy_to_table(
            self._name, schema_name="pg_temp", columns=tuple(self._columns), source=blocks, format="text"
        )

    async def analyze(self) -> None:
        """Collect statistics for the planner; autovacuum does not see temporary tables."""
        await self._connection.execute(f"ANALYZE pg_temp.{self._name}")

    async def keep_each_once(self) -> None:
        """Merge the rows of several parts of a file about the same topics, within a transaction."""
        await self._connection.execute(self._once)
