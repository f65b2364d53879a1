"""Files about topics and their partitions, with the rules of the embedded catalogue's import."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.catalog.catalog_errors import PairRefused
from broker_core.catalog.topic_files import topic_file_reader as lines_module
from broker_core.names import NamespaceName
from broker_core.plugin_cli import Deletions
from broker_core_postgres.fill.load_file import LoadReport, load_topics
from tests.support.import_rules import LINES, Line, Model, after_import, as_rows, listed_names
from tests.support.postgres_server import Database

_NAMESPACE: Final = NamespaceName("a", "b")
_NAMES: Final = """SELECT domain || '://' || namespace || '/' || local_name, properties::text
    FROM broker_core.topics WHERE namespace = 'a/b'"""
_PLAIN: Final = {"name": "x", "properties": {"region": "eu"}}
_PARTITION: Final = {"name": "x-partition-0", "properties": {"region": "us"}}


async def load(connection: Any, *lines: object, **options: Any) -> LoadReport:
    data = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    return await load_topics(
        connection,
        _NAMESPACE,
        io.BytesIO(data.encode()),
        allow_empty=True,
        deletions=Deletions(mass=True),
        **options,
    )


async def names(connection: Any) -> dict[str, dict[str, str]]:
    return {name: json.loads(text) for name, text in await connection.fetch(_NAMES)}


async def version(connection: Any) -> int:
    return await connection.fetchval("SELECT max(version) FROM broker_core.namespaces") or 0


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("add", [False, True])
@pytest.mark.parametrize(
    "lines",
    [
        [_PLAIN, _PARTITION],
        [_PARTITION, _PLAIN],
        [{"name": "x"}, _PARTITION],
        [_PARTITION, {"name": "x", "partitions": 0}],
        [{"name": "x", "partitions": 2}, {"name": "x", "partitions": 0, "properties": {"region": "eu"}}],
    ],
)
async def test_a_file_with_a_pair_of_other_properties_is_refused(
    connection: Any, lines: list[object], add: bool, dry_run: bool
) -> None:
    await load(connection, "there")
    with pytest.raises(PairRefused, match="'x' and partition 'x-partition-0' cannot both be there"):
        await load(connection, *lines, {"name": "other"}, add=add, dry_run=dry_run)
    assert (await names(connection)).keys() == {"persistent://a/b/there"}
    assert await version(connection) == 1


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (_PLAIN, _PARTITION),
        (_PLAIN, "x-partition-0"),
        (_PLAIN, {"name": "x", "partitions": 2, "properties": {"region": "us"}}),
        (_PARTITION, {"name": "x", "partitions": 0, "properties": {"region": "eu"}}),
        (_PARTITION, "x"),
        ("x", _PARTITION),
    ],
)
async def test_a_pair_with_what_is_there_is_refused(connection: Any, first: object, then: object) -> None:
    await load(connection, first)
    before = await names(connection)
    for dry_run in (True, False):
        with pytest.raises(PairRefused, match="'x' and partition 'x-partition-0' cannot both be there"):
            await load(connection, then, add=True, dry_run=dry_run)
    assert await names(connection) == before
    assert await version(connection) == 1
    await load(connection, then)
    assert len(before.keys() & (await names(connection)).keys()) == 0, "the file is all that there is"


async def test_a_pair_without_other_properties_is_taken(connection: Any) -> None:
    own = {"k": "v"}
    await load(connection, "x\nx-partition-0")
    await load(
        connection, {"name": "y", "properties": own}, {"name": "y-partition-2", "properties": own}, add=True
    )
    pair: dict[str, dict[str, str]] = {f"persistent://a/b/{name}": {} for name in ("x", "x-partition-0")}
    assert await names(connection) == pair | {
        f"persistent://a/b/{name}": own for name in ("y", "y-partition-2")
    }
    await load(connection, {"name": "y", "properties": {"k": "w"}}, add=True)
    assert (await names(connection))["persistent://a/b/y-partition-2"] == {"k": "w"}
    with pytest.raises(PairRefused):
        await load(connection, {"name": "y-partition-2", "properties": own}, add=True)


async def test_properties_alone_change_properties(connection: Any) -> None:
    await load(connection, {"name": "o", "partitions": 3, "properties": {"region": "us"}}, '{"name": "p"}')
    line = {"name": "o", "properties": {"region": "eu"}}
    for dry_run in (True, False):
        report = await load(connection, line, add=True, dry_run=dry_run)
        assert (report.names, report.added, report.changed, report.unchanged) == (3, 0, 3, 0)
    partitions = {f"persistent://a/b/o-partition-{index}": {"region": "eu"} for index in range(3)}
    assert await names(connection) == partitions | {"persistent://a/b/p": {}}
    # The same file again changes nothing, but "partitions": 0 does.
    assert (await load(connection, line, add=True)).version == 2
    await load(connection, line | {"partitions": 0}, add=True)
    assert await names(connection) == partitions | {
        "persistent://a/b/o": {"region": "eu"},
        "persistent://a/b/p": {},
    }
    # Without --add the database's topics do not count.
    await load(connection, {"name": "o", "properties": {"region": "asia"}})
    assert await names(connection) == {"persistent://a/b/o": {"region": "asia"}}


async def test_properties_alone_of_partitions_in_the_same_file(
    connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, partitions = {"name": "o", "properties": {"k": "v"}}, {"name": "o", "partitions": 2}
    wanted = {f"persistent://a/b/o-partition-{index}": {"k": "v"} for index in range(2)}
    filler = [{"name": f"n{number}", "partitions": 0} for number in range(20)]
    for chunk in (1 << 20, 64):
        monkeypatch.setattr(lines_module, "CHUNK_BYTES", chunk)
        for lines in ([alone, *filler, partitions], [partitions, *filler, alone]):
            report = await load(connection, *lines)
            assert report.names == 22
            found = await names(connection)
            assert {name: found[name] for name in found if "/o" in name} == wanted


@pytest.mark.parametrize("examples", [15, pytest.param(150, marks=pytest.mark.long)])
def test_loads_are_what_the_rules_say(database: Database, examples: int) -> None:
    """The rules in Python, as the tests of the catalogue's import have them."""

    async def bring_all(files: list[tuple[list[Line], bool]]) -> None:
        model: dict[str, Model] = {}
        async with database.connected() as connection:
            await connection.execute("SELECT broker_core.forget_namespace('a/b')")
            for lines, exact in files:
                state, before = await names(connection), await version(connection)
                wanted = after_import(model, lines, exact=exact)
                if wanted is None:
                    with pytest.raises(PairRefused):
                        await load(connection, *as_rows(lines), add=not exact)
                    assert await names(connection) == state
                    assert await version(connection) == before
                    continue
                model = wanted
                told = await load(connection, *as_rows(lines), add=not exact, dry_run=True)
                assert await names(connection) == state
                report = await load(connection, *as_rows(lines), add=not exact)
                found = await names(connection)
                assert found == listed_names(model)
                kept = state.keys() & found.keys()
                assert (report.added, report.removed) == (len(found) - len(kept), len(state) - len(kept))
                assert (told.names, told.added, told.removed) == (report.names, report.added, report.removed)
                if state:
                    assert (await version(connection) > before) == (found != state)

    @settings(max_examples=examples, deadline=None)
    @given(st.lists(st.tuples(LINES, st.booleans()), max_size=4), st.sampled_from([64, 1 << 20]))
    def loaded(files: list[tuple[list[Line], bool]], chunk: int) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lines_module, "CHUNK_BYTES", chunk)
            asyncio.run(bring_all(files))

    loaded()
