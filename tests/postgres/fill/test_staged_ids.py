"""The ids that a source gives: each topic once, and only those that nobody else has."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Mapping
from typing import Any

from broker_core_postgres.fill.staged_ids import copy_ids, keep_free_ids, staged_ids
from broker_core_postgres.fill.temporary_table import StagedTable

A, B, C = (uuid.UUID(int=number << 64) for number in (7, 8, 9))


async def put(ids: StagedTable, *parts: Mapping[str, uuid.UUID]) -> None:
    async def blocks() -> AsyncIterator[bytes]:
        for number, part in enumerate(parts):
            yield copy_ids(
                "a/b", "persistent", {name: each.bytes for name, each in part.items()}, part=number
            )

    await ids.create(keep=True)
    await ids.copy(blocks())
    await ids.analyze()


async def kept(connection: Any) -> dict[str, uuid.UUID]:
    return dict(await connection.fetch("SELECT topic, topic_id FROM pg_temp.broker_core_staged_ids"))


async def test_the_last_id_of_a_topic_counts(connection: Any) -> None:
    ids = staged_ids(connection)
    await put(ids, {"x": A, "y\\\t\n": B}, {"x": C})
    await ids.keep_each_once()
    assert await kept(connection) == {"x": C, "y\\\t\n": B}
    await ids.drop()


async def test_only_new_topics_take_an_id_and_only_a_free_one(connection: Any) -> None:
    insert = "INSERT INTO broker_core.topics (namespace, local_name, topic_id) VALUES ($1, $2, $3)"
    await connection.execute(insert, "a/b", "there-partition-3", A)
    await connection.execute(insert, "other/ns", "x", B)
    await connection.execute(insert, "a/b", "gone", C)
    await connection.execute("DELETE FROM broker_core.topics WHERE local_name = 'gone'")
    free = uuid.UUID(int=10 << 64)
    ids = staged_ids(connection)
    await put(ids, {"there": free, "new": free, "of-other": B, "of-gone": C, "twice": free})
    # `there` stays what it is, so that its id is still free for the others, of which the first has it.
    assert await keep_free_ids(connection, "a/b") == 3
    assert await kept(connection) == {"new": free}
