from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from broker_core_postgres.fill.staging_table import StagingTables, copy_rows
from tests.support.postgres_server import Database

_ROWS = """SELECT domain, topic, local_name, properties::text, part, stated
    FROM pg_temp.broker_core_staged ORDER BY part, local_name"""


async def blocks(*lines: bytes) -> AsyncIterator[bytes]:
    for line in lines:
        yield line


HOSTILE = [
    "a\tb",
    "a\nb",
    "a\r",
    "\\N",
    "\\.",
    "back\\slash",
    "'; DROP TABLE x; --",
    "日本",
    "😀",
    "$1",
    "\x01",
    "%s",
]


async def test_names_and_properties_come_through_copy_as_they_are(empty_database: Database) -> None:
    async with empty_database.connected() as connection:
        staging = StagingTables(connection).names
        await staging.create(keep=True)
        texts = ['{"k": "\\\\ \\t \\n"}', None] * (len(HOSTILE) // 2)
        await staging.copy(
            blocks(
                copy_rows("a/b", "persistent", HOSTILE),
                copy_rows(
                    "a/b", "non-persistent", HOSTILE, ["t\t\\" for _ in HOSTILE], texts, part=1, stated=False
                ),
                copy_rows("a/b", "persistent", []),
            )
        )
        rows = [tuple(row) for row in await connection.fetch(_ROWS)]
        key = {name: name.encode() for name in HOSTILE}
        names = sorted(HOSTILE, key=key.__getitem__)
        assert rows[: len(names)] == [("persistent", None, name, None, 0, True) for name in names]
        stated = dict(zip(HOSTILE, texts, strict=True))
        assert rows[len(names) :] == [
            ("non-persistent", "t\t\\", name, stated[name], 1, False) for name in names
        ]
        await staging.drop()


async def test_what_parts_say_about_a_topic_is_merged(empty_database: Database) -> None:
    async with empty_database.connected() as connection:
        async with connection.transaction():
            staging = StagingTables(connection).names
            await staging.create()
            both = ["x-partition-0", "x-partition-1"]
            await staging.copy(
                blocks(
                    copy_rows("a/b", "persistent", ["x", "y"], None, ['{"v": "1"}', None], stated=False),
                    copy_rows("a/b", "persistent", both, ["x", "x"], ['{"v": "2"}'] * 2, part=1),
                    copy_rows("a/b", "persistent", both[:1], ["x"], ['{"v": "3"}'], part=2, stated=False),
                    copy_rows("a/b", "persistent", ["x"], None, ['{"v": "4"}'], part=3, stated=False),
                    copy_rows("a/b", "persistent", ["y"], part=4),
                )
            )
            await staging.keep_each_once()
            await staging.analyze()
            rows = [tuple(row) for row in await connection.fetch(_ROWS)]
        assert rows == [
            ("persistent", None, "x", '{"v": "4"}', 0, False),
            ("persistent", "x", "x-partition-0", '{"v": "3"}', 0, True),
            ("persistent", "x", "x-partition-1", '{"v": "3"}', 0, True),
            ("persistent", None, "y", None, 0, True),
        ]


async def test_what_the_source_raises_is_raised_and_leaves_nothing(empty_database: Database) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield copy_rows("a/b", "persistent", ["x"])
        raise LookupError("no more")

    async with empty_database.connected() as connection:
        staging = StagingTables(connection).names
        await staging.create(keep=True)
        with pytest.raises(LookupError, match="no more"):
            await staging.copy(broken())
        assert await connection.fetchval("SELECT count(*) FROM pg_temp.broker_core_staged") == 0
