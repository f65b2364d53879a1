"""Statements of many rows: they end, with or without statistics, and leave everything right.

The rows of a statement have no statistics. A plan with a nested loop over them takes a minute.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.postgres.schema.log_replay import check_everything

_ROWS = 8_000
_INSERT = f"""INSERT INTO broker_core.topics (namespace, local_name, properties)
    SELECT 'a/n' || i % 2, 'topic-' || i / 4 || CASE WHEN i % 8 < 4 THEN '-partition-' || i % 4 ELSE '-' || i END,
        jsonb_build_object('k', 'v' || i % 5)
    FROM generate_series(1, {_ROWS}) i"""
#: Many more rows than the triggers handle one by one.
_FEWER = _INSERT.replace(str(_ROWS), "4000")


@pytest.fixture
async def bounded(connection: Any) -> Any:
    """A statement that hangs fails, after much more time than it needs."""
    await connection.execute("SET statement_timeout = '40s'; SET plan_cache_mode = force_generic_plan")
    return connection


async def test_one_statement_after_the_other(bounded: Any) -> None:
    assert await bounded.execute(_INSERT) == f"INSERT 0 {_ROWS}"
    assert await check_everything(bounded) == {"a/n0": 1, "a/n1": 1}
    status = await bounded.execute(
        'UPDATE broker_core.topics SET properties = properties || \'{"more": "yes"}\''
    )
    assert status == f"UPDATE {_ROWS}"
    await bounded.execute("DELETE FROM broker_core.topics WHERE namespace = 'a/n0'")
    await bounded.execute(
        "INSERT INTO broker_core.topics (namespace, local_name) VALUES ('a/n0', 'topic-1-2')"
    )
    assert await check_everything(bounded) == {"a/n0": 4, "a/n1": 2}
    await bounded.execute("UPDATE broker_core.topics SET local_name = 'moved-' || local_name")
    assert await check_everything(bounded) == {"a/n0": 5, "a/n1": 3}


async def test_all_in_one_transaction(bounded: Any) -> None:
    async with bounded.transaction():
        await bounded.execute(_FEWER)
        await bounded.execute("UPDATE broker_core.topics SET properties = '{}' WHERE partition IS NULL")
        await bounded.execute("DELETE FROM broker_core.topics WHERE partition IS NOT NULL")
        await bounded.execute("UPDATE broker_core.topics SET namespace = 'a/n2' WHERE namespace = 'a/n1'")
        await bounded.execute(
            "INSERT INTO broker_core.topics (namespace, local_name, properties)"
            " SELECT 'a/n2', local_name, '{\"k\": \"copied\"}' FROM broker_core.topics WHERE namespace = 'a/n0'"
        )
    assert await check_everything(bounded) == {"a/n0": 1, "a/n1": 1, "a/n2": 1}


async def test_truncate(bounded: Any) -> None:
    await bounded.execute(_INSERT)
    await bounded.execute("TRUNCATE broker_core.topics")
    assert await check_everything(bounded) == {"a/n0": 2, "a/n1": 2}
    assert await bounded.fetchval("SELECT count(*) FROM broker_core.tombstones") == _ROWS


async def test_more_than_the_log_holds_leaves_a_gap_and_right_rows(bounded: Any) -> None:
    await bounded.execute("SELECT broker_core.set_retention(rows => 1000)")
    await bounded.execute(_FEWER)
    await bounded.execute("UPDATE broker_core.topics SET properties = '{}'")
    await bounded.execute("DELETE FROM broker_core.topics WHERE partition IS NULL")
    await bounded.execute("TRUNCATE broker_core.topics")
    found = await bounded.fetch(
        "SELECT version, log_floor, topics, log_rows FROM broker_core.namespaces ORDER BY namespace"
    )
    # Odd numbers are in the second namespace. Both have names without partitions, so all four statements change both.
    assert [tuple(row) for row in found] == [(4, 4, 0, 0), (4, 4, 0, 0)]
    assert await bounded.fetchval("SELECT count(*) FROM broker_core.changes") == 0
