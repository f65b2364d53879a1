"""The operator's own relation: its name is quoted, and each of its columns is checked."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core_postgres.listing.own_relation import OwnRelation, RelationRefused, check_relation
from tests.support.postgres_server import Database

GOOD = (
    'namespace text COLLATE "C", domain varchar(20) COLLATE "C", local_name text COLLATE "C",'
    ' matched text COLLATE "C", properties jsonb, more int'
)


@pytest.mark.parametrize(
    ("text", "schema", "name", "sql"),
    [
        ("topics", None, "topics", '"topics"'),
        ("own.topics", "own", "topics", '"own"."topics"'),
        ('"a.b"."c""d"', "a.b", 'c"d', '"a.b"."c""d"'),
        ("Topics", None, "Topics", '"Topics"'),
        ("x; DROP TABLE y", None, "x; DROP TABLE y", '"x; DROP TABLE y"'),
        ('"x"" UNION SELECT"', None, 'x" UNION SELECT', '"x"" UNION SELECT"'),
    ],
)
def test_names(text: str, schema: str | None, name: str, sql: str) -> None:
    found = OwnRelation.parse(text)
    assert (found.schema, found.name, found.sql) == (schema, name, sql)


@pytest.mark.parametrize(
    "text", ["", ".", "a.", ".b", "a.b.c", '"', '""', '"a', "a\0b", 'x" UNION', "x" * 64, "é" * 32]
)
def test_no_names(text: str) -> None:
    with pytest.raises(RelationRefused, match=r"^relation: "):
        OwnRelation.parse(text)


@pytest.mark.parametrize("kind", ["TABLE own (%s)", "TABLE base (%s); CREATE VIEW own AS SELECT * FROM base"])
async def test_a_relation_that_fits(connection: Any, kind: str) -> None:
    await connection.execute("CREATE " + kind % GOOD)
    assert await check_relation(connection, OwnRelation.parse("own"), properties=True)
    await check_relation(connection, OwnRelation.parse("public.own"), properties=True)
    await check_relation(connection, OwnRelation.parse("broker_core.topics"), properties=True)


async def test_only_tables_and_views_can_be_locked(connection: Any) -> None:
    await connection.execute(
        f"CREATE TABLE base ({GOOD}); CREATE MATERIALIZED VIEW own AS SELECT * FROM base"
    )
    assert not await check_relation(connection, OwnRelation.parse("own"))
    await connection.execute("CREATE VIEW above AS SELECT * FROM own; CREATE ROLE reader_of_above")
    try:
        await connection.execute("GRANT SELECT ON above TO reader_of_above; SET ROLE reader_of_above")
        assert await check_relation(connection, OwnRelation.parse("above"))
        async with connection.transaction():
            await connection.execute("LOCK TABLE above IN ACCESS SHARE MODE")
    finally:
        await connection.execute("RESET ROLE; DROP OWNED BY reader_of_above; DROP ROLE reader_of_above")


async def test_properties_may_be_missing_where_they_do_not_select(connection: Any) -> None:
    await connection.execute(f"CREATE TABLE own ({GOOD.replace('properties jsonb, ', '')})")
    await check_relation(connection, OwnRelation.parse("own"))
    with pytest.raises(RelationRefused, match="properties is missing, and property_keys is set"):
        await check_relation(connection, OwnRelation.parse("own"), properties=True)


async def test_each_column_that_is_wrong_is_named(connection: Any) -> None:
    await connection.execute(
        'CREATE TABLE own (namespace text, domain int, local_name text COLLATE "C", properties json,'
        " topic_id text)"
    )
    with pytest.raises(RelationRefused) as refused:
        await check_relation(connection, OwnRelation.parse("own"), properties=True)
    assert str(refused.value) == (
        'relation: own has not the columns that are needed: namespace has the collation default, not "C"; '
        "domain is integer, not text; matched is missing; properties is json, not jsonb; topic_id is text, not uuid"
    )


@pytest.mark.parametrize(
    "text", ["nowhere", "public.nowhere", "x'; DROP TABLE broker_core.topics; --", "own; SELECT 1"]
)
async def test_what_is_not_there(connection: Any, text: str) -> None:
    with pytest.raises(RelationRefused, match="there is no table or view"):
        await check_relation(connection, OwnRelation.parse(text))
    assert await connection.fetchval("SELECT count(*) FROM broker_core.topics") == 0


async def test_what_is_no_table_or_may_not_be_read(connection: Any, database: Database) -> None:
    await connection.execute(f"CREATE SEQUENCE numbers; CREATE TABLE own ({GOOD})")
    with pytest.raises(RelationRefused, match="numbers is no table and no view"):
        await check_relation(connection, OwnRelation.parse("numbers"))
    await connection.execute("CREATE ROLE no_reader LOGIN")
    stranger = await database.connect("no_reader")
    try:
        with pytest.raises(RelationRefused, match='may not read own: GRANT SELECT ON "own" TO'):
            await check_relation(stranger, OwnRelation.parse("own"))
    finally:
        await stranger.close()
        await connection.execute("DROP ROLE no_reader")
