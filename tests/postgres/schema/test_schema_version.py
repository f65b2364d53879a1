"""The schemas that fit this package."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from broker_core_postgres.schema.schema_version import (
    AppliedMigration,
    SchemaMigration,
    SchemaMismatch,
    check_applied,
    check_schema,
    migrations,
    read_applied,
)
from tests.support.postgres_server import Database

OURS = [AppliedMigration(each.number, each.name, each.checksum) for each in migrations()]
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
            [*OURS, AppliedMigration(NEWEST + 1, "next", "x")],
            f"has schema {NEWEST + 1}, .* knows {NEWEST} only: upgrade broker-core-postgres",
        ),
        (
            [OURS[0], AppliedMigration(2, "other", "x")],
            "Migration 0002 other was applied .* with other statements",
        ),
    ],
    ids=["none", "old", "new", "changed"],
)
def test_what_does_not(applied: list[AppliedMigration], said: str) -> None:
    with pytest.raises(SchemaMismatch, match=said):
        check_applied(applied)


FUTURE = AppliedMigration(NEWEST + 1, "next", "x", readable_from=NEWEST)
LATER = AppliedMigration(NEWEST + 2, "last", "x", readable_from=NEWEST + 1)


def test_a_newer_one_that_says_that_readers_of_this_one_may_go_on() -> None:
    check_applied([*OURS, FUTURE], reader=True)
    check_applied([*OURS, replace(FUTURE, readable_from=1)], reader=True)
    for newer in ([FUTURE, LATER], [replace(FUTURE, readable_from=None)]):
        with pytest.raises(SchemaMismatch, match="upgrade broker-core-postgres"):
            check_applied([*OURS, *newer], reader=True)
    with pytest.raises(SchemaMismatch, match=f"knows {NEWEST} only"):
        check_applied([*OURS, FUTURE])


def test_what_a_migration_says_of_its_readers() -> None:
    assert SchemaMigration(9, "x", "-- Some.\n--\n-- Readable from schema 7.\nSELECT 1").readable_from == 7
    assert SchemaMigration(9, "x", "-- Readable from schema 7, maybe.\nSELECT 1").readable_from is None


async def test_the_database_keeps_what_newer_ones_say(connection: Any) -> None:
    said = {each.number: each.readable_from for each in await read_applied(connection)}
    assert said == {each.number: each.readable_from for each in migrations()}
    await connection.execute(
        "INSERT INTO broker_core.migrations VALUES ($1, 'next', 'x', now(), $2)", NEWEST + 1, NEWEST
    )
    assert await check_schema(connection, reader=True) == NEWEST + 1
    with pytest.raises(SchemaMismatch, match="upgrade broker-core-postgres"):
        await check_schema(connection)


async def test_of_a_database(connection: Any, empty_database: Database) -> None:
    assert await check_schema(connection) == len(OURS)
    async with empty_database.connected() as empty:
        assert await read_applied(empty) == ()
        with pytest.raises(SchemaMismatch, match="run `broker-core postgres migrate`"):
            await check_schema(empty)


async def test_who_may_not_look(database: Database) -> None:
    database.sql("DROP ROLE IF EXISTS nobody_yet; CREATE ROLE nobody_yet LOGIN")
    stranger = await database.connect("nobody_yet")
    try:
        with pytest.raises(SchemaMismatch, match="grant it the role broker_core_reader"):
            await check_schema(stranger)
    finally:
        await stranger.close()
        database.sql("DROP ROLE nobody_yet")
