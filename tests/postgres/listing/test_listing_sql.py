"""The statements and their results; ``test_query_plans`` has the indexes that they use."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core.names import Mode, NamespaceName
from broker_core.patterns import compile_pattern
from broker_core_postgres.listing.listing_sql import (
    PAGE_NAMES,
    RowSource,
    Statement,
    first_page_statement,
    next_page_statement,
    search_statement,
    version_statement,
)
from broker_core_postgres.listing.row_conditions import RowConditions, make_row_conditions
from tests.support.postgres_server import Database

NS = NamespaceName.parse("acme/orders")
QUESTIONS: dict[str, tuple[str | None, dict[str, str]]] = {
    "prefix": ("acme/orders/topic-0004.*", {}),
    "properties": (None, {"team": "t7"}),
}


def plan_of(question: str, mode: Mode = Mode.PERSISTENT) -> RowConditions:
    pattern, properties = QUESTIONS[question]
    compiled = None if pattern is None else compile_pattern(pattern)
    return make_row_conditions(NS, mode, compiled, properties, trigrams=True)


@pytest.fixture
def filled(database: Database) -> Database:
    """5,000 topics of the namespace, and as many with the same names of another one."""
    database.sql(
        """
        INSERT INTO broker_core.topics (namespace, local_name, properties)
        SELECT n, 'topic-' || lpad(g::text, 5, '0'), jsonb_build_object('team', 't' || g % 100)
        FROM unnest(ARRAY['acme/orders', 'b/c']) n, generate_series(1, 5000) g
        """
    )
    return database


async def test_a_page_says_how_much_it_has_and_is_withheld_where_that_is_too_much(filled: Database) -> None:
    async with filled.connected() as connection:
        row_conditions = plan_of("prefix")
        row = await fetched(connection, first_page_statement(row_conditions, RowSource(), 1 << 20))
        assert (row["names"], row["size"], row["version"]) == (10, 10 * 11 + 9, 1)
        assert row["persistent"].startswith(b"/topic-00040/topic-00041/")
        assert row["other"] is None
        withheld = await fetched(connection, first_page_statement(row_conditions, RowSource(), 100))
        assert (withheld["names"], withheld["size"], withheld["persistent"]) == (10, 119, None)
        few = await fetched(
            connection, first_page_statement(row_conditions, RowSource(), 1 << 20, most_names=3)
        )
        assert few["names"] == 3
        nothing = await fetched(
            connection,
            first_page_statement(make_row_conditions(NS, Mode.NON_PERSISTENT), RowSource(), 1 << 20),
        )
        assert (nothing["names"], nothing["size"], nothing["other"]) == (0, 0, None)
        assert await fetched(connection, version_statement("a/b")) is None
        async with connection.transaction():
            statement = search_statement(plan_of("properties"), RowSource(), 200)
            pages = await connection.fetch(statement.text, *statement.arguments)
            assert len(pages) > 2
            assert all(page["size"] <= 211 for page in pages)
            assert sum(page["names"] for page in pages) == 50


async def fetched(connection: Any, statement: Statement) -> Any:
    return await connection.fetchrow(statement.text, *statement.arguments)


def test_a_page_is_far_from_the_largest_value_of_postgresql() -> None:
    assert PAGE_NAMES * (32_767 + 1) < 2**30 - 1


def test_nothing_from_outside_is_in_a_text() -> None:
    hostile = "x'; DROP TABLE t; --"
    row_conditions = RowConditions(
        hostile, ("persistent",), ((hostile, hostile + "z"),), (hostile,), {hostile: hostile}
    )
    for statement in (
        first_page_statement(row_conditions, RowSource(), 1),
        next_page_statement(
            row_conditions, RowSource(), row_conditions.bounds[0], (hostile, hostile, hostile), 1
        ),
        search_statement(row_conditions, RowSource(own_index=False), 1),
        version_statement(row_conditions.namespace),
    ):
        assert "DROP" not in statement.text
        assert any("DROP" in str(argument) for argument in statement.arguments)
