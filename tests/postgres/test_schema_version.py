"""Which schemas fit this package."""

from __future__ import annotations

from typing import Any

import pytest

from broker_core_postgres.schema_version import (
    Applied,
    SchemaMismatch,
    check_applied,
    check_schema,
    migrations,
    read_applied,
)
from tests.support.postgres_server import Database

OURS = [Applied(each.number, each.name, each.checksum) for each in migrations()]
NEWEST = len(OURS)


def test_the_files_are_numbered() -> None:
    assert [each.number for each in migrations()] == list(range(1, len(OURS) + 1))
    assert all(each.sql.startswith("--") for each in migrations()), "each file says what it is"


def test_what_fits() -> None:
    check_applied(OURS)
    check_applied(OURS[:2], partly=True)
    check_applied([], partly=True)


@pytest.mark.parametrize(
    ("applied", "said"),
    [
        ([], f"has no schema broker_core, and schema {NEWEST} is needed: run `broker-core postgres migrate`"),
        (OURS[:2], f"has schema 2, and schema {NEWEST} is needed: run `broker-core postgres migrate`"),
        (
            [*OURS, Applied(NEWEST + 1, "next", "x")],
            f"has schema {NEWEST + 1}, .* knows {NEWEST} only: upgrade broker-core-postgres",
        ),
        ([OURS[0], Applied(2, "other", "x")], "Migration 0002 other was applied .* with other statements"),
    ],
    ids=["none", "old", "new", "changed"],
)
def test_what_does_not(applied: list[Applied], said: str) -> None:
    with pytest.raises(SchemaMismatch, match=said):
        check_applied(applied)


async def test_of_a_database(connection: Any, empty_database: Database) -> None:
    assert await check_schema(connection) == len(OURS)
    empty = await empty_database.connect()
    try:
        assert await read_applied(empty) == ()
        with pytest.raises(SchemaMismatch, match="run `broker-core postgres migrate`"):
            await check_schema(empty)
    finally:
        await empty.close()


async def test_who_may_not_look(database: Database) -> None:
    database.sql("DROP ROLE IF EXISTS nobody_yet; CREATE ROLE nobody_yet LOGIN")
    stranger = await database.connect("nobody_yet")
    try:
        with pytest.raises(SchemaMismatch, match="grant it the role broker_core_reader"):
            await check_schema(stranger)
    finally:
        await stranger.close()
        database.sql("DROP ROLE nobody_yet")
