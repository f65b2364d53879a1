from __future__ import annotations

import json
from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from broker_core_postgres.fill.staging_table import StagingTables, copy_rows
from broker_core_postgres.fill.sync.differences import Difference, as_json, as_line, differences
from broker_core_postgres.fill.temporary_table import StagedTable

P = "persistent://a/b/"


async def put(connection: Any, **topics: str) -> None:
    for name, properties in topics.items():
        await connection.execute(
            "INSERT INTO broker_core.topics (namespace, local_name, properties) VALUES ('a/b', $1, $2)",
            name.replace("_", "-"),
            properties,
        )


async def found(connection: Any, **wanted: str | None) -> list[Difference]:
    staging = StagingTables(connection)
    await staging.each(partial(StagedTable.create, keep=True))
    names = [name.replace("_", "-") for name in wanted]

    async def block() -> AsyncIterator[bytes]:
        owners = [name.partition("-partition-")[0] for name in names]
        yield copy_rows("a/b", "persistent", names, owners, list(wanted.values()))

    await staging.names.copy(block())
    async with connection.transaction():
        return [difference async for difference in differences(connection, "a/b")]


async def test_exactly_the_topics_that_differ_are_named(connection: Any) -> None:
    await put(connection, same='{"k":"1"}', extra="{}", other='{"k":"1"}', kept='{"k":"1"}')
    await put(
        connection,
        p_partition_0="{}",
        p_partition_1="{}",
        q_partition_0='{"k":"1"}',
        q_partition_1='{"k":"1"}',
    )
    told = await found(
        connection,
        same='{"k":"1"}',
        missing="{}",
        other='{"k":"2"}',
        kept=None,
        p_partition_1="{}",
        p_partition_2="{}",
        q_partition_0='{"k":"2"}',
        q_partition_1='{"k":"2"}',
        new_partition_0=None,
        new_partition_1=None,
    )
    shown = {difference.topic.removeprefix(P): difference for difference in told}
    assert {name: difference.kind for name, difference in shown.items()} == {
        "extra": "extra",
        "missing": "missing",
        "new": "missing",
        "other": "different",
        "p": "different",
        "q": "different",
    }
    assert shown["new"].missing == (f"{P}new-partition-0", f"{P}new-partition-1")
    assert (shown["p"].missing, shown["p"].extra) == ((f"{P}p-partition-2",), (f"{P}p-partition-0",))
    (both,) = shown["q"].properties
    assert both.names == (f"{P}q-partition-0", f"{P}q-partition-1")
    assert (both.database, both.source) == ({"k": "1"}, {"k": "2"})


async def test_no_difference_is_none(connection: Any) -> None:
    await put(connection, x="{}")
    assert await found(connection, x="{}") == []
    assert [difference.kind for difference in await found(connection)] == ["extra"]


def test_a_line_says_what_and_is_no_order_to_a_terminal() -> None:
    assert as_line(Difference("missing", f"{P}x", (f"{P}x",)), "cluster") == f"missing   {P}x"
    many = tuple(f"{P}x-partition-{number}" for number in range(12))
    line = as_line(Difference("extra", f"{P}x", extra=many), "cluster")
    assert line.startswith(f"extra     {P}x: {P}x-partition-0, ")
    assert line.endswith(" and 2 more")
    assert "\x1b" not in as_line(Difference("missing", f"{P}\x1b[31m", (f"{P}\x1b[31m",)), "cluster")


async def test_both_forms_name_properties(connection: Any) -> None:
    await put(connection, x='{"k":"1"}')
    (difference,) = await found(connection, x='{"k":"2"}')
    assert as_line(difference, "cluster") == (
        f'different {P}x: properties {{"k": "1"}} in the database, {{"k": "2"}} in the cluster'
    )
    assert json.loads(json.dumps(as_json(difference))) == {
        "kind": "different",
        "topic": f"{P}x",
        "missing": [],
        "extra": [],
        "properties": [{"names": [f"{P}x"], "database": {"k": "1"}, "source": {"k": "2"}}],
        "topic_id": None,
        "configs": None,
    }
