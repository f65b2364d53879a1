"""PostgreSQL's plans: each question uses its index, in a table where most rows belong to another namespace.

Plans are checked with and without statistics of the table, with a plan for the values and with a generic one, which
PostgreSQL may use for prepared statements. No plan reads a row of another namespace, from the table or from an index.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pytest

from broker_core.names import Mode, NamespaceName
from broker_core.patterns import compile_pattern
from broker_core_postgres.listing.listing_sql import (
    RowSource,
    Statement,
    first_page_statement,
    next_page_statement,
    search_statement,
    version_statement,
)
from broker_core_postgres.listing.row_conditions import RowConditions, make_row_conditions
from broker_core_postgres.service import SESSION
from tests.support.postgres_server import Database, PostgresServer

# One statement with more rows than the log keeps, and with their versions: the fastest insert.
_FILL: Final = """INSERT INTO broker_core.topics
        (namespace, local_name, properties, topic_id, created_version, changed_version, trigram_part)
    SELECT n.name, 'topic-' || lpad(g::text, 6, '0') || CASE WHEN g % 10 = 0 THEN '-partition-0' ELSE '' END,
        CASE WHEN g % 3 = 0 THEN '{}' ELSE jsonb_build_object('team', 't' || g % 100, 'region', 'r' || g % 7) END,
        gen_random_uuid(), 1, 1, CASE WHEN g % 2 = 0 THEN n.part ELSE 0 END
    FROM (VALUES ('acme/huge', 60000, 1), ('acme/skewed', 40000, 2), ('acme/tiny', 5, 0), ('acme/small', 300, 0),
        ('b/other', 2000, 3)) n(name, size, part), LATERAL generate_series(1, n.size) g"""
_SKEWED: Final = "acme/skewed"
_SMALL: Final = "acme/small"

_MATCHED: Final = frozenset({"topics_matched"})
_PROPERTIES: Final = frozenset({"topics_properties"})
#: The index has parts, as after loads: one with half of the namespace, and the common one.
_PARTS: Final = tuple((number, number) for number in range(4))
_OF_PARTS: Final = "".join(
    f"SELECT broker_core.make_trigram_index('topics_trigrams_{number}', {number}, {number});"
    for number, _ in _PARTS[1:]
)
_TRIGRAMS: Final = frozenset({"topics_trigrams", *(f"topics_trigrams_{number}" for number, _ in _PARTS[1:])})
_SOURCE: Final = RowSource(parts=_PARTS)
_PRIMARY: Final = frozenset({"topics_pkey"})
_STATES: Final = {"loaded": None, "analyzed": "ANALYZE", "vacuumed": "VACUUM ANALYZE"}


@dataclass(frozen=True)
class QuestionKey:
    """A pattern (relative to the namespace) and properties, the indexes that may be read, and the most rows.

    The namespace has 40,002 rows. A row counts once for the index and, if it is read there too, once for the table.
    """

    pattern: str | None
    properties: Mapping[str, str]
    indexes: frozenset[str]
    most: int


_QUESTIONS: Final = {
    "literal": QuestionKey("NS/topic-000042", {}, _MATCHED, 1),
    "prefix": QuestionKey("NS/topic-00004.*", {}, _MATCHED, 10),
    "prefixes": QuestionKey("NS/(?:topic-00004|topic-00006|topic-00022).*", {}, _MATCHED, 30),
    "prefix and property": QuestionKey("NS/topic-000.*", {"team": "t7"}, _MATCHED | _PROPERTIES, 1000),
    "property": QuestionKey(None, {"team": "t7"}, _PROPERTIES, 267),
    "two properties": QuestionKey(None, {"team": "t7", "region": "r3"}, _PROPERTIES, 39),
    "infix": QuestionKey(".*c-00004.*", {}, _TRIGRAMS, 120),
    "two infixes": QuestionKey(".*c-00.*0042.*", {}, _TRIGRAMS, 120),
    "infix and property": QuestionKey(".*c-0000.*", {"team": "t7"}, _TRIGRAMS | _PROPERTIES, 1010),
}
#: All rows of the small namespace may be read: that is no more work than searching.
_ANY_OWN: Final = _MATCHED | _PROPERTIES | _TRIGRAMS | _PRIMARY


@pytest.fixture(scope="module")
def crowded(postgres_server: PostgresServer) -> Iterator[Database]:
    database = postgres_server.create_database()
    database.sql("ALTER TABLE broker_core.topics SET (autovacuum_enabled = off)")
    database.sql(f"INSERT INTO broker_core.trigram_parts VALUES {', '.join(map(str, _PARTS[1:]))}")
    database.sql(_FILL)
    database.sql(_OF_PARTS)
    yield database
    postgres_server.drop_database(database.name)


@pytest.fixture(scope="module", params=_STATES)
def state(request: pytest.FixtureRequest, crowded: Database) -> Database:
    """The table, in one state after the other; the order of the tests follows it."""
    command = _STATES[request.param]
    if command is not None:
        crowded.sql(f"{command} broker_core.topics")
    return crowded


@pytest.fixture
async def session(state: Database) -> AsyncIterator[Any]:
    """A session with the plugin's settings."""
    connection = await state.connect(server_settings=dict(SESSION))
    yield connection
    await connection.close()


@pytest.mark.parametrize("cached", ["force_custom_plan", "force_generic_plan"])
async def test_selective_questions(session: Any, cached: str) -> None:
    await session.execute(f"SET plan_cache_mode = {cached}")
    for namespace in (_SKEWED, _SMALL):
        for name, question in _QUESTIONS.items():
            for mode in (Mode.PERSISTENT, Mode.ALL) if namespace == _SKEWED else (Mode.ALL,):
                row_conditions = _row_filter(question, namespace, mode)
                statements = [first_page_statement(row_conditions, _SOURCE, 1 << 20)]
                if row_conditions.kind == "search":
                    statements.append(search_statement(row_conditions, _SOURCE, 1 << 20))
                else:
                    low = row_conditions.bounds[0][0]
                    last = (low, "persistent", low)
                    statements += [
                        next_page_statement(row_conditions, _SOURCE, row_conditions.bounds[0], after, 1 << 20)
                        for after in (None, last)
                    ]
                for statement in statements:
                    found = await _explained(session, statement)
                    allowed = question.indexes if namespace == _SKEWED else _ANY_OWN
                    most = question.most if namespace == _SKEWED else 300
                    _check(found, allowed, most, (namespace, name, mode))


@pytest.mark.parametrize("cached", ["force_custom_plan", "force_generic_plan"])
async def test_whole_namespaces(session: Any, cached: str) -> None:
    await session.execute(f"SET plan_cache_mode = {cached}")
    for namespace, size in ((_SKEWED, 40_000), (_SMALL, 300)):
        for mode in (Mode.PERSISTENT, Mode.ALL):
            # No index finds an ending, or without trigrams an infix.
            for pattern in (None, ".*[0-4]$", ".*c-00004.*"):
                row_conditions = make_row_conditions(
                    NamespaceName.parse(namespace),
                    mode,
                    None if pattern is None else compile_pattern(pattern),
                )
                _check(
                    await _explained(session, first_page_statement(row_conditions, _SOURCE, 1 << 20)),
                    _PRIMARY,
                    size,
                    pattern,
                )
            after = ("topic-000100", "persistent", "topic-000100")
            whole = make_row_conditions(NamespaceName.parse(namespace), mode)
            page = next_page_statement(whole, _SOURCE, None, after, 1 << 20)
            _check(await _explained(session, page), _PRIMARY, size - 99, "a later page")


@pytest.mark.parametrize("cached", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("mode", [Mode.PERSISTENT, Mode.ALL])
async def test_a_page_begins_where_the_one_before_ended(session: Any, cached: str, mode: Mode) -> None:
    """Its start is not found by skipping all names before it, which would take quadratic time in all."""
    await session.execute(f"SET plan_cache_mode = {cached}")
    whole = make_row_conditions(NamespaceName.parse(_SKEWED), mode)
    ranged = _row_filter(_QUESTIONS["prefix"], _SKEWED, mode)
    for row_conditions, bounds in ((whole, None), (ranged, ("topic-", "topic.")), (ranged, ("topic-", None))):
        read = []
        for last in ("topic-000001", "topic-039990"):
            page = next_page_statement(row_conditions, _SOURCE, bounds, (last, "persistent", last), 1 << 20)
            found = await _explained(session, page)
            (scan,) = (node for node in found if node.get("Index Name") in _ANY_OWN)
            read.append(int(scan["Shared Hit Blocks"] + scan["Shared Read Blocks"]))
        # Pages of the index; without its visibility map each row costs a page of the table too.
        assert read[1] < read[0] / 4, (bounds, read)


@pytest.mark.parametrize("cached", ["force_custom_plan", "force_generic_plan"])
async def test_the_version_is_one_row_by_its_key(session: Any, cached: str) -> None:
    await session.execute(f"SET plan_cache_mode = {cached}")
    row_conditions = make_row_conditions(NamespaceName.parse(_SMALL), Mode.ALL)
    found = await _explained(session, version_statement(row_conditions.namespace))
    read = {node["Relation Name"]: node for node in found if "Relation Name" in node}
    assert read["namespace_versions"]["Index Name"] == "namespace_versions_pkey"
    assert all(node["Actual Rows"] <= 1 and not _removed(node) for node in read.values()), found
    assert "topics" not in read


def _row_filter(question: QuestionKey, namespace: str, mode: Mode) -> RowConditions:
    compiled = (
        None if question.pattern is None else compile_pattern(question.pattern.replace("NS", namespace))
    )
    return make_row_conditions(
        NamespaceName.parse(namespace), mode, compiled, question.properties, trigrams=True
    )


async def _explained(connection: Any, statement: Statement) -> list[Mapping[str, Any]]:
    """The nodes of the plan of a prepared statement, after running it."""
    await connection.execute(f"PREPARE asked AS {statement.text}")
    try:
        given = ", ".join(map(_literal, statement.arguments))
        text = await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE asked({given})")
    finally:
        await connection.execute("DEALLOCATE asked")
    return list(_nodes(json.loads(text)[0]["Plan"]))


def _nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return f"ARRAY[{', '.join(map(_literal, value))}]"
    return str(value) if isinstance(value, int) else "'{}'".format(value.replace("'", "''"))


def _removed(node: Mapping[str, Any]) -> int:
    return int(node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0))


def _check(found: list[Mapping[str, Any]], indexes: frozenset[str], most: int, asked: object) -> None:
    used = {node["Index Name"] for node in found if str(node.get("Index Name")).startswith("topics_")}
    assert used, (asked, found)
    assert used <= indexes, (asked, found)
    for node in found:
        assert not (node["Node Type"].endswith("Seq Scan") and node.get("Relation Name") == "topics"), (
            asked,
            node,
        )
        if node.get("Index Name") in _ANY_OWN:
            # The index condition has the namespace, as first column or within the key, so no entry of another is read.
            condition = node["Index Cond"]
            assert "namespace = " in condition or "@>" in condition, (asked, node)
        if node.get("Index Name") in _ANY_OWN or node.get("Relation Name") == "topics":
            assert node["Actual Rows"] * node["Actual Loops"] + _removed(node) <= most, (asked, node)
