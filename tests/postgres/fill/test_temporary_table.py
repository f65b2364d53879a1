"""A temporary table that a source fills: what it keeps, for how long, and what a source that fails leaves."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import asyncpg
import pytest

from broker_core_postgres.fill.temporary_table import NAME, StagedTable

ROWS = "SELECT name, n FROM pg_temp.staged_of_a_test ORDER BY n"


def table(connection: Any) -> StagedTable:
    columns = {"name": f"{NAME} NOT NULL", "n": "integer"}
    return StagedTable(
        connection, "staged_of_a_test", columns, "DELETE FROM pg_temp.staged_of_a_test WHERE n > 1"
    )


async def blocks(*texts: str) -> AsyncIterator[bytes]:
    for text in texts:
        if text == "fails":
            raise OSError("the source fails")
        yield text.encode()


async def test_it_is_created_empty_each_time_and_dropped(connection: Any) -> None:
    staged = table(connection)
    await staged.create(keep=True)
    await staged.copy(blocks("b\t1\na\t", "2\n"))
    await staged.analyze()
    assert [tuple(row) for row in await connection.fetch(ROWS)] == [("b", 1), ("a", 2)]
    await staged.keep_each_once()
    assert [tuple(row) for row in await connection.fetch(ROWS)] == [("b", 1)]
    await staged.create(keep=True)
    assert await connection.fetch(ROWS) == []
    await staged.drop()
    with pytest.raises(asyncpg.UndefinedTableError):
        await connection.fetch(ROWS)


async def test_it_ends_with_its_transaction(connection: Any) -> None:
    async with connection.transaction():
        await table(connection).create()
        assert await connection.fetch(ROWS) == []
    with pytest.raises(asyncpg.UndefinedTableError):
        await connection.fetch(ROWS)


async def test_a_source_that_fails_adds_no_row(connection: Any) -> None:
    staged = table(connection)
    await staged.create(keep=True)
    with pytest.raises(OSError, match="the source fails"):
        await staged.copy(blocks("a\t1\n", "fails"))
    assert await connection.fetch(ROWS) == []
    await staged.drop()
