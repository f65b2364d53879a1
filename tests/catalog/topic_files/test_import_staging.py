from __future__ import annotations

import contextlib
import io
import json
import sqlite3

import pytest

from broker_core.catalog.catalog_errors import PairRefused
from broker_core.catalog.topic_files.import_staging import Staged, stage_file
from broker_core.catalog.topic_files.topic_file_reader import UNSPECIFIED
from broker_core.names import NamespaceName

NAMESPACE = NamespaceName("a", "b")


def staged(
    *lines: object, partitioned: tuple[str, ...] = ()
) -> tuple[Staged, dict[str, tuple[str, str | None]]]:
    data = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines).encode()
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        report = stage_file(
            connection,
            NAMESPACE,
            io.BytesIO(data),
            has_partitions=lambda _, base: base in partitioned,
            cache=2**20,
        )
        rows = connection.execute("SELECT base, listed, properties FROM temp.staged").fetchall()
        return report, {base: (listed, properties) for base, listed, properties in rows}


def test_a_topic_is_one_row() -> None:
    report, rows = staged("x", "y-partition-3", "y-partition-1", "x", "z", "z-partition-0")
    assert rows == {"x": ("*", None), "y": ("1,3", None), "z": ("*,0", None)}
    assert report == Staged(lines=6, topics=3, repeats=1, properties_only=False, facts=False, names=6)


P = {"k": "v"}
TEXT = '{"k":"v"}'


@pytest.mark.parametrize("chunk", [40, 1 << 20])
@pytest.mark.parametrize(
    ("lines", "row"),
    [
        ([{"name": "x", "properties": P}], (UNSPECIFIED, TEXT)),
        ([{"name": "x", "properties": P}, {"name": "x"}], ("*", TEXT)),
        ([{"name": "x", "partitions": 0, "properties": P}], ("*", TEXT)),
        ([{"name": "x", "properties": P}, {"name": "x", "partitions": 2}], ("0-1", TEXT)),
        ([{"name": "x", "partitions": 2, "properties": {}}, {"name": "x", "properties": P}], ("0-1", TEXT)),
        ([{"name": "x-partition-4", "properties": P}, {"name": "x", "partitions": 2}], ("0-1,4", TEXT)),
        ([{"name": "x", "properties": P}, {"name": "x-partition-0", "properties": P}], ("*,0", TEXT)),
    ],
)
def test_lines_of_a_topic_and_of_its_partitions(
    monkeypatch: pytest.MonkeyPatch, chunk: int, lines: list[object], row: tuple[str, str | None]
) -> None:
    monkeypatch.setattr("broker_core.catalog.topic_files.topic_file_reader.CHUNK_BYTES", chunk)
    assert staged(*lines)[1] == {"x": row}


def test_properties_alone_are_for_what_the_catalogue_has() -> None:
    lines = [{"name": "x", "properties": P}, {"name": "x-partition-7"}]
    assert staged(*lines, partitioned=("x",))[1] == {"x": ("7", TEXT)}
    with pytest.raises(PairRefused):
        staged(*lines)


def test_many_alike_and_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core.catalog.topic_files.import_staging._ALIKE", 3)
    lines = [{"name": f"x{number}", "properties": {"k": str(number % 3)}} for number in range(8)]
    report, rows = staged(*lines, {"name": "p", "partitions": 2})
    assert rows == {
        "p": ("0-1", None),
        **{f"x{number}": (UNSPECIFIED, f'{{"k":"{number % 3}"}}') for number in range(8)},
    }
    assert report == Staged(lines=9, topics=9, repeats=0, properties_only=True, facts=False, names=10)
