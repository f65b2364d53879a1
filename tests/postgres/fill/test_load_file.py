from __future__ import annotations

import asyncio
import io
import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from broker_core.catalog import SqliteCatalog, creation, export_topics, topic_id_text
from broker_core.catalog.catalog_errors import ImportRefused
from broker_core.catalog.topic_files import topic_file_reader as lines_module
from broker_core.names import NamespaceName, TopicName
from broker_core.names.partitions import partitioned_local_name
from broker_core_postgres.fill import load_file as load_module
from broker_core_postgres.fill.filling_failed import FillingFailed
from broker_core_postgres.fill.load_file import LoadReport, load_topics
from broker_core_postgres.fill.storage_limits import longest_local_name
from tests.support.postgres_server import Database
from tests.support.vectors import pattern_vectors

NAMESPACE = NamespaceName("a", "b")
_ROWS = """SELECT CASE domain WHEN 'persistent' THEN local_name ELSE 'np:' || local_name END, properties::text
    FROM broker_core.topics WHERE namespace = 'a/b'"""


class EndedByUser(Exception):
    """What a progress callback may raise."""


async def load(connection: Any, data: bytes | str, **options: Any) -> LoadReport:
    source = io.BytesIO(data.encode() if isinstance(data, str) else data)
    return await load_topics(connection, NAMESPACE, source, **options)


async def rows(connection: Any) -> dict[str, dict[str, str]]:
    return {name: json.loads(text) for name, text in await connection.fetch(_ROWS)}


async def test_a_namespace_holds_exactly_the_file(connection: Any) -> None:
    report = await load(
        connection, "orders\nbills\nnon-persistent://a/b/chat\npersistent://a/b/x-partition-3\norders\n"
    )
    assert report == LoadReport(lines=5, names=4, added=4, changed=0, removed=0, version=1)
    assert (await rows(connection)).keys() == {"orders", "bills", "np:chat", "x-partition-3"}
    report = await load(connection, "orders\nnew\n")
    assert (report.added, report.removed, report.unchanged, report.version) == (1, 3, 1, 2)
    assert (await rows(connection)).keys() == {"orders", "new"}


async def test_json_lines_have_partitions_and_properties(connection: Any) -> None:
    await load(
        connection,
        '{"name": "x", "partitions": 3, "properties": {"k": "v"}}\n{"name": "y"}\n{"name": "x-partition-7"}\n',
    )
    own = {"k": "v"}
    every = {f"x-partition-{index}": own for index in (0, 1, 2, 7)} | {"y": {}}
    assert await rows(connection) == every
    # Topics keep their properties, and new partitions get those of their topic.
    report = await load(connection, '{"name": "x", "partitions": 9}\n{"name": "y", "properties": {"k": "y"}}')
    assert (report.added, report.changed, report.removed) == (5, 1, 0)
    assert await rows(connection) == {f"x-partition-{index}": own for index in range(9)} | {"y": {"k": "y"}}
    report = await load(connection, '{"name": "x", "properties": {}}')
    assert await rows(connection) == {"x": {}}


async def _configs(connection: Any) -> dict[str, tuple[dict[str, str] | None, int | None]]:
    rows = await connection.fetch("SELECT local_name, configs::text, replication FROM broker_core.topics")
    return {name: (json.loads(text or "null"), replication) for name, text, replication in rows}


async def test_an_export_keeps_configs_and_replicas(connection: Any, tmp_path: Path) -> None:
    name = TopicName("persistent", NAMESPACE, "x")
    with SqliteCatalog(tmp_path / "topics.sqlite") as catalog:
        catalog.edit(name, creation(name, 2, configs={"retention.ms": "1"}, replication=3))
        catalog.create(TopicName("persistent", NAMESPACE, "y"))
        file = io.BytesIO()
        export_topics(catalog, NAMESPACE, file, "json")
    report = await load(connection, file.getvalue())
    assert (report.added, report.changed) == (3, 0)
    own = ({"retention.ms": "1"}, 3)
    assert await _configs(connection) == {"x-partition-0": own, "x-partition-1": own, "y": (None, None)}
    again = await load(connection, file.getvalue())
    assert (again.added, again.changed, again.unchanged, again.version) == (0, 0, 3, report.version)


@pytest.mark.parametrize("add", [False, True])
async def test_configs_and_replicas_stay_unless_the_file_gives_some(connection: Any, add: bool) -> None:
    await load(
        connection,
        '{"name": "x", "partitions": 2, "configs": {"retention.ms": "1"}, "replication": 2}\n{"name": "y"}',
    )
    await load(connection, '{"name": "x", "partitions": 2}\n{"name": "y", "properties": {"k": "v"}}', add=add)
    own = ({"retention.ms": "1"}, 2)
    assert await _configs(connection) == {"x-partition-0": own, "x-partition-1": own, "y": (None, None)}
    lines = (
        '{"name": "x", "partitions": 2, "configs": {"retention.ms": "2"}}\n'
        '{"name": "y", "properties": {"k": "w"}, "replication": 3}\n{"name": "new", "configs": {"retention.ms": "4"}}'
    )
    ahead = await load(connection, lines, add=add, dry_run=True)
    report = await load(connection, lines, add=add)
    assert (ahead.added, ahead.changed) == (report.added, report.changed) == (1, 3)
    other = ({"retention.ms": "2"}, 2)
    assert await _configs(connection) == {
        "x-partition-0": other,
        "x-partition-1": other,
        "y": (None, 3),
        "new": ({"retention.ms": "4"}, None),
    }
    # Configs alone, of a topic with the partitions that it has.
    less = '{"name": "x", "configs": {}}' + (
        "" if add else '\n{"name": "x", "partitions": 2}\n{"name": "y"}\n{"name": "new"}'
    )
    emptied = await load(connection, less, add=add)
    assert (emptied.added, emptied.changed, emptied.removed) == (0, 2, 0)
    assert emptied.version == report.version, "configs are in no version"
    assert {name: own for name, own in (await _configs(connection)).items() if name[0] == "x"} == {
        "x-partition-0": (None, 2),
        "x-partition-1": (None, 2),
    }


async def test_the_last_configs_of_a_large_file_count(
    connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines_module, "CHUNK_BYTES", 5_000)
    filler = [json.dumps({"name": f"{'x' * 80}-{number}"}) for number in range(100)]
    first, last = (
        json.dumps({"name": "x", "configs": {"retention.ms": text}, "replication": 2}) for text in ("1", "2")
    )
    await load(connection, "\n".join([first, *filler, last]))
    assert (await _configs(connection))["x"] == ({"retention.ms": "2"}, 2)


async def test_adding_removes_nothing(connection: Any) -> None:
    await load(connection, '{"name": "x", "partitions": 2, "properties": {"k": "v"}}')
    report = await load(connection, "y\nx-partition-2", add=True)
    assert (report.added, report.changed, report.removed) == (2, 0, 0)
    assert (await rows(connection))["x-partition-2"] == {"k": "v"}
    assert len(await rows(connection)) == 4
    assert (await load(connection, "", add=True)).added == 0


async def test_a_repeat_raises_no_version(connection: Any) -> None:
    data = '{"name": "x", "partitions": 2, "properties": {"k": "v"}}\n{"name": "y"}'
    first = await load(connection, data)
    again = await load(connection, data)
    assert (again.added, again.changed, again.removed) == (0, 0, 0)
    assert again.version == first.version
    assert again.unchanged == 3


@pytest.mark.parametrize("form", ["names", "json"])
async def test_a_bad_last_line_leaves_nothing_and_is_named(
    connection: Any, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines_module, "CHUNK_BYTES", 50_000)
    await load(connection, "before\n")
    count = 5_000
    lines = [f"topic-{'x' * 60}-{number}" for number in range(count)]
    if form == "json":
        lines = [json.dumps({"name": name}) for name in lines]
    data = "\n".join([*lines, "a//b" if form == "names" else '{"name": 1}']).encode()
    assert len(data) > 200_000
    with pytest.raises(ImportRefused, match=f"line {count + 1}: "):
        await load(connection, data)
    assert (await rows(connection)).keys() == {"before"}
    # The connection can be used again.
    assert (await load(connection, "after\n")).removed == 1


async def test_topics_may_come_again_in_later_parts_of_a_large_file(
    connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines_module, "CHUNK_BYTES", 50_000)
    filler = [json.dumps({"name": f"{'x' * 80}-{number}"}) for number in range(2_000)]
    first = [
        '{"name": "x", "properties": {"k": "1"}}',
        '{"name": "y", "properties": {"k": "1"}}',
        '{"name": "z"}',
    ]
    last = ['{"name": "x", "partitions": 2}', '{"name": "y", "properties": {"k": "2"}}', '{"name": "z"}']
    data = "\n".join([*first, *filler, *last])
    assert len(data) > 100_000
    report = await load(connection, data)
    assert report.names == report.added == len(filler) + 4
    found = await connection.fetch(_ROWS + " AND matched IN ('x', 'y', 'z')")
    assert {name: json.loads(text) for name, text in found} == {
        "x-partition-0": {"k": "1"},
        "x-partition-1": {"k": "1"},
        "y": {"k": "2"},
        "z": {},
    }


async def test_an_empty_file_empties_only_if_it_is_meant(connection: Any) -> None:
    await load(connection, "x\n")
    with pytest.raises(FillingFailed, match="--allow-empty"):
        await load(connection, "")
    assert await rows(connection) == {"x": {}}
    report = await load(connection, "", allow_empty=True)
    assert report.removed == 1
    assert await rows(connection) == {}
    assert (
        await connection.fetchval("SELECT count(*) FROM broker_core.namespaces WHERE namespace = 'a/b'") == 1
    )


async def test_a_dry_run_counts_and_changes_nothing(connection: Any) -> None:
    assert await load(connection, "x\ny\n", dry_run=True) == LoadReport(2, 2, 2, 0, 0, None)
    assert await connection.fetchval("SELECT count(*) FROM broker_core.namespaces") == 0
    await load(connection, "x\ny\n")
    data = '{"name": "x", "properties": {"k": "v"}}\n{"name": "new"}'
    assert await load(connection, data, dry_run=True) == LoadReport(2, 2, 1, 1, 1, 1)
    assert await load(connection, data, dry_run=True, add=True) == LoadReport(2, 2, 1, 1, 0, 1)
    assert await rows(connection) == {"x": {}, "y": {}}


async def test_hostile_names_are_names(connection: Any) -> None:
    names = pattern_vectors()["stored_names"]
    hostile = [
        "'; DROP TABLE broker_core.topics; --",
        "\\N",
        "\\.",
        "a\tb",
        "a\\b",
        "$1",
        "%s",
        "{x}",
        "\x01",
    ]
    topics = {name: partitioned_local_name(name) for name in [*names, *hostile]}
    lines = [json.dumps({"name": name, "properties": {topic: topic}}) for name, topic in topics.items()]
    await load(connection, "\n".join(lines))
    assert await rows(connection) == {name: {topic: topic} for name, topic in topics.items()}


async def test_what_the_database_cannot_hold_is_refused_with_its_line(connection: Any) -> None:
    longest = longest_local_name(NAMESPACE)
    await load(connection, "x" * longest)
    with pytest.raises(ImportRefused, match=rf"line 2: .*at most {longest}"):
        await load(connection, "a\n" + "x" * (longest + 1))
    with pytest.raises(ImportRefused, match=r"line 2: .*NUL"):
        await load(connection, '{"name": "a"}\n{"name": "b", "properties": {"k": "\\u0000"}}')
    assert len(await rows(connection)) == 1


async def test_a_mistaken_number_of_partitions_fills_no_disk(
    connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(load_module, "MOST_NAMES", 100)
    with pytest.raises(FillingFailed, match="more than 100 names"):
        await load(connection, '{"name": "a", "partitions": 60}\n{"name": "b", "partitions": 60}')
    assert await rows(connection) == {}


async def test_progress_is_told_and_may_end_the_load(connection: Any) -> None:
    told: list[tuple[str, int]] = []
    await load(connection, "x\ny\n", progress=lambda phase, amount: told.append((phase, amount)))
    assert told == [("read", 4), ("write", 2)]

    def enough(phase: str, amount: int) -> None:
        raise EndedByUser

    with pytest.raises(EndedByUser):
        await load(connection, "z\n", progress=enough)
    assert (await rows(connection)).keys() == {"x", "y"}


_IDS = "SELECT local_name, topic_id FROM broker_core.topics WHERE namespace = 'a/b' ORDER BY 1"


def line(name: str, topic_id: uuid.UUID, **more: object) -> str:
    return json.dumps({"name": name, "topic_id": topic_id_text(topic_id), **more}) + "\n"


async def test_new_topics_have_the_ids_of_the_file(connection: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines_module, "CHUNK_BYTES", 64)  # several parts
    one, two, three = (uuid.UUID(int=number << 64) for number in (7, 8, 9))
    file = line("x", two) + line("p", one, partitions=2) + '{"name": "own"}\n' + line("x", three)
    report = await load(connection, file)
    assert (report.names, report.added, report.renewed_ids) == (4, 4, 0)
    first = dict(await connection.fetch(_IDS))
    assert first == {"own": first["own"], "p-partition-0": one, "p-partition-1": one, "x": three}
    # The same file once more, and other ids of the topics that are there: nothing changes.
    assert (await load(connection, file)).version == report.version
    assert (await load(connection, line("p", two, partitions=2), add=True)).version == report.version
    # An id that another topic has, or had, is not given again.
    again = line("p", one, partitions=3) + line("taken", three) + line("free", two)
    report = await load(connection, again, dry_run=True)
    assert (report.added, report.renewed_ids) == (3, 1)
    report = await load(connection, again)
    assert (report.added, report.removed, report.renewed_ids) == (3, 2, 1)
    now = dict(await connection.fetch(_IDS))
    assert {now[f"p-partition-{index}"] for index in range(3)} == {one}
    assert now["free"] == two
    assert now["taken"] not in {one, two, three}
    assert (await load(connection, line("x", three), add=True)).renewed_ids == 1


async def test_topics_without_ids_get_them_once_whoever_loads_at_once(
    database: Database, connection: Any
) -> None:
    file = "".join(f"t-{number % 500}-partition-{number % 3}\n" for number in range(1500))
    others = [await database.connect() for _ in range(2)]
    try:
        reports = await asyncio.gather(*(load(each, file) for each in others))
    finally:
        for each in others:
            await each.close()
    assert sorted(report.added for report in reports) == [0, 1500]
    before = await connection.fetch(_IDS)
    assert len({row["topic_id"] for row in before}) == 500
    await load(connection, file)
    assert await connection.fetch(_IDS) == before
