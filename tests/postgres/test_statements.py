"""The statements, and how PostgreSQL runs them: by an index, whatever else is in the table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from broker_core.names import Mode, NamespaceName
from broker_core.patterns import compile_pattern
from broker_core_postgres.plan import Plan, make_plan
from broker_core_postgres.service import SESSION
from broker_core_postgres.statements import (
    PAGE,
    Source,
    Statement,
    first_page,
    next_page,
    pages_of_search,
    version_statement,
)
from tests.support.postgres_server import Database

NS = NamespaceName.parse("acme/orders")
QUESTIONS: dict[str, tuple[str | None, dict[str, str], str]] = {
    "exact": ("acme/orders/topic-00042", {}, "topics_matched"),
    "prefix": ("acme/orders/topic-0004.*", {}, "topics_matched"),
    "prefixes": ("acme/orders/(?:topic-0004|topic-0006).*", {}, "topics_matched"),
    "properties": (None, {"team": "t7"}, "topics_properties"),
    "infix": (".*c-0004.*", {}, "topics_trigrams"),
}


def plan_of(question: str, mode: Mode = Mode.PERSISTENT) -> Plan:
    pattern, properties, _ = QUESTIONS[question]
    compiled = None if pattern is None else compile_pattern(pattern)
    return make_plan(NS, mode, compiled, properties, trigrams=True)


@pytest.fixture
def filled(database: Database) -> Database:
    """5,000 topics of the namespace, and 15,000 like them of three others."""
    database.sql(
        """
        INSERT INTO broker_core.topics (namespace, local_name, properties)
        SELECT n, 'topic-' || lpad(g::text, 5, '0'), jsonb_build_object('team', 't' || g % 100)
        FROM unnest(ARRAY['acme/orders', 'acme/a', 'acme/z', 'b/c']) n, generate_series(1, 5000) g
        """
    )
    database.sql("VACUUM ANALYZE broker_core.topics")
    return database


def nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


async def explained(connection: Any, statement: Statement) -> list[Mapping[str, Any]]:
    text = await connection.fetchval(f"EXPLAIN (ANALYZE, FORMAT JSON) {statement.text}", *statement.arguments)
    return list(nodes(json.loads(text)[0]["Plan"]))


async def test_each_question_has_its_index_and_reads_no_row_of_others(filled: Database) -> None:
    connection = await filled.connect(server_settings=dict(SESSION))
    try:
        await connection.execute("SET plan_cache_mode = force_custom_plan")
        for question, (_, _, index) in QUESTIONS.items():
            for mode in (Mode.PERSISTENT, Mode.ALL):
                found = await explained(connection, first_page(plan_of(question, mode), Source(), 1 << 20))
                assert index in {node.get("Index Name") for node in found}, (question, found)
                check(found, most=250)
        whole = make_plan(NS, Mode.ALL)
        for statement in (
            first_page(whole, Source(), 1 << 20),
            next_page(whole, Source(), None, ("topic-00100", "persistent", "topic-00100"), 1 << 20),
        ):
            found = await explained(connection, statement)
            assert "topics_pkey" in {node.get("Index Name") for node in found}
            check(found, most=5_000)
        bounds = ("topic-0", "topic-1")
        after = ("topic-00100", "persistent", "topic-00100")
        found = await explained(connection, next_page(plan_of("prefix"), Source(), bounds, after, 1 << 20))
        check(found, most=5_000)
        found = await explained(connection, version_statement(whole))
        check(found, most=1)
    finally:
        await connection.close()


def check(found: list[Mapping[str, Any]], *, most: int) -> None:
    for node in found:
        assert not (node["Node Type"].endswith("Seq Scan") and node.get("Relation Name") == "topics"), found
        if node.get("Relation Name") == "topics":
            assert node["Actual Rows"] * node["Actual Loops"] <= most, node
            assert node.get("Rows Removed by Filter", 0) <= 250, node


async def test_a_page_says_how_much_it_has_and_is_withheld_where_that_is_too_much(filled: Database) -> None:
    connection = await filled.connect()
    try:
        plan = plan_of("prefix")
        row = await fetched(connection, first_page(plan, Source(), 1 << 20))
        assert (row["names"], row["size"], row["version"]) == (10, 10 * 11 + 9, 1)
        assert row["persistent"].startswith(b"/topic-00040/topic-00041/")
        assert row["other"] is None
        withheld = await fetched(connection, first_page(plan, Source(), 100))
        assert (withheld["names"], withheld["size"], withheld["persistent"]) == (10, 119, None)
        few = await fetched(connection, first_page(plan, Source(), 1 << 20, most_names=3))
        assert few["names"] == 3
        nothing = await fetched(connection, first_page(make_plan(NS, Mode.NON_PERSISTENT), Source(), 1 << 20))
        assert (nothing["names"], nothing["size"], nothing["other"]) == (0, 0, None)
        assert (
            await fetched(connection, version_statement(make_plan(NamespaceName.parse("a/b"), Mode.ALL)))
            is None
        )
        async with connection.transaction():
            statement = pages_of_search(plan_of("properties"), Source(), 200)
            pages = await connection.fetch(statement.text, *statement.arguments)
            assert len(pages) > 2
            assert all(page["size"] <= 211 for page in pages)
            assert sum(page["names"] for page in pages) == 50
    finally:
        await connection.close()


async def fetched(connection: Any, statement: Statement) -> Any:
    return await connection.fetchrow(statement.text, *statement.arguments)


def test_a_page_is_far_from_the_largest_value_of_postgresql() -> None:
    assert PAGE * (32_767 + 1) < 2**30 - 1


def test_nothing_from_outside_is_in_a_text() -> None:
    hostile = "x'; DROP TABLE t; --"
    plan = Plan(hostile, ("persistent",), ((hostile, hostile + "z"),), (hostile,), {hostile: hostile})
    for statement in (
        first_page(plan, Source(), 1),
        next_page(plan, Source(), plan.bounds[0], (hostile, hostile, hostile), 1),
        pages_of_search(plan, Source(own_index=False), 1),
        version_statement(plan),
    ):
        assert "DROP" not in statement.text
        assert any("DROP" in str(argument) for argument in statement.arguments)
