from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from broker_core_postgres.fill.merge import MergeCounts, compare, merge, namespaces_of_database, version_of
from broker_core_postgres.fill.staging_table import StagingTables, copy_rows
from broker_core_postgres.fill.temporary_table import StagedTable
from tests.support.eventually import eventually
from tests.support.postgres_server import Database

_ROWS = (
    "SELECT local_name, properties::text, topic_id FROM broker_core.topics WHERE namespace = 'a/b' ORDER BY 1"
)


async def stage(connection: Any, topics: dict[str, str | None], namespace: str = "a/b") -> None:
    """Stage ``topics``: the text of the properties by listed name."""
    staging = StagingTables(connection)
    await staging.each(partial(StagedTable.create, keep=True))
    names = list(topics)
    owners = [name.partition("-partition-")[0] for name in names]

    async def block() -> AsyncIterator[bytes]:
        yield copy_rows(namespace, "persistent", names, owners, list(topics.values()))

    await staging.names.copy(block())
    await staging.each(StagedTable.analyze)


async def rows(connection: Any) -> dict[str, tuple[str, str]]:
    return {row[0]: (row[1], str(row[2])) for row in await connection.fetch(_ROWS)}


async def test_a_namespace_becomes_what_is_staged_by_one_version(connection: Any) -> None:
    await stage(connection, {"x": '{"k": "1"}', "y": None, "z": None})
    assert await compare(connection, "a/b") == MergeCounts(3, 0, 0, 0)
    first = await merge(connection, "a/b")
    assert (first.added, first.changed, first.removed) == (3, 0, 0)
    before = await rows(connection)
    assert {name: text for name, (text, _) in before.items()} == {"x": '{"k": "1"}', "y": "{}", "z": "{}"}

    await stage(connection, {"x": None, "y": '{"k": "2"}', "new": None})
    counts = await compare(connection, "a/b")
    assert counts == MergeCounts(added=1, changed=1, removed=1, there=3)
    assert counts
    second = await merge(connection, "a/b")
    assert (second.added, second.changed, second.removed) == (1, 1, 1)
    assert (first.version, second.version) == (1, 2)
    after = await rows(connection)
    assert after["x"] == before["x"], "properties that are not given stay"
    assert after["y"] == ('{"k": "2"}', before["y"][1])
    assert after.keys() == {"x", "y", "new"}


async def test_nothing_to_change_raises_no_version(connection: Any) -> None:
    await stage(connection, {"x": '{"k": "1"}'})
    first = await merge(connection, "a/b")
    assert not await compare(connection, "a/b")
    again = await merge(connection, "a/b")
    assert (again.added, again.changed, again.removed, again.version) == (0, 0, 0, first.version)


async def test_without_removing_all_that_is_there_stays(connection: Any) -> None:
    await stage(connection, {"x-partition-0": None, "x-partition-1": None, "y": None})
    await merge(connection, "a/b")
    # Properties belong to the topic: given for one partition, they go to all.
    await stage(connection, {"x-partition-1": '{"k": "1"}', "x-partition-2": '{"k": "1"}'})
    assert await compare(connection, "a/b", remove=False) == MergeCounts(
        added=1, changed=2, removed=0, there=3
    )
    merged = await merge(connection, "a/b", remove=False)
    assert (merged.added, merged.changed, merged.removed) == (1, 2, 0)
    texts = {name: text for name, (text, _) in (await rows(connection)).items()}
    own = '{"k": "1"}'
    assert texts == {"x-partition-0": own, "x-partition-1": own, "x-partition-2": own, "y": "{}"}


async def test_further_names_of_a_topic_have_its_id_and_properties(connection: Any) -> None:
    await stage(connection, {"x": '{"k": "1"}', "p-partition-0": None, "p-partition-1": None})
    await merge(connection, "a/b")
    before = await rows(connection)
    assert before["p-partition-0"][1] == before["p-partition-1"][1] != before["x"][1]
    # A topic gets partitions: none of its listed names stays.
    await stage(connection, {"x-partition-0": None, "x-partition-1": None, "p-partition-2": None})
    await merge(connection, "a/b")
    after = await rows(connection)
    assert after.keys() == {"x-partition-0", "x-partition-1", "p-partition-2"}
    assert after["x-partition-0"] == after["x-partition-1"] == before["x"]
    assert after["p-partition-2"] == before["p-partition-0"]


async def test_other_namespaces_are_left_alone(connection: Any) -> None:
    await stage(connection, {"x": None}, "other/one")
    other = await merge(connection, "other/one")
    await stage(connection, {"x": None})
    await merge(connection, "a/b")
    assert await version_of(connection, "other/one") == other.version
    assert await version_of(connection, "never/there") is None
    assert (await namespaces_of_database(connection)).keys() == {"other/one", "a/b"}


async def test_a_namespace_without_topics_is_filled_all_the_same(connection: Any) -> None:
    await stage(connection, {})
    merged = await merge(connection, "a/b")
    assert merged.added == 0
    assert await version_of(connection, "a/b") == merged.version
    assert (await merge(connection, "a/b")).version == merged.version


async def test_writers_come_one_after_the_other_and_readers_do_not_wait(
    database: Database, connection: Any
) -> None:
    await stage(connection, {"x": None})
    await merge(connection, "a/b")
    other = await database.connect()
    reader = await database.connect()
    try:
        await stage(other, {"y": None})
        transaction = connection.transaction()
        await transaction.start()
        await stage(connection, {"z": None})
        await merge(connection, "a/b")
        waiting = asyncio.create_task(merge(other, "a/b"))
        pid = other.get_server_pid()
        await eventually(
            lambda: reader.fetchval("SELECT cardinality(pg_blocking_pids($1)) > 0", pid), 60, what="it waits"
        )
        assert (await rows(reader)).keys() == {"x"}, "a reader sees the state before"
        await transaction.commit()
        merged = await waiting
        assert (merged.added, merged.removed) == (1, 1)
        assert (await rows(reader)).keys() == {"y"}
    finally:
        await other.close()
        await reader.close()


async def test_whoever_writes_by_sql_meanwhile_is_waited_for(database: Database, connection: Any) -> None:
    async with database.connected() as other:
        await stage(connection, {"x": '{"k": "1"}', "y": None})
        transaction = other.transaction()
        await transaction.start()
        await other.execute("INSERT INTO broker_core.topics (namespace, local_name) VALUES ('a/b', 'x')")
        merging = asyncio.create_task(merge(connection, "a/b"))
        pid = connection.get_server_pid()
        await eventually(
            lambda: other.fetchval("SELECT cardinality(pg_blocking_pids($1)) > 0", pid), 60, what="it waits"
        )
        await transaction.commit()
        await merging
        texts = {name: text for name, (text, _) in (await rows(connection)).items()}
        assert texts == {"x": '{"k": "1"}', "y": "{}"}
