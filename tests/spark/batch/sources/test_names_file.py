"""A file of names as a catalogue of a batch."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import pytest

from broker_core_spark.batch.errors import InvalidCatalogue
from broker_core_spark.batch.sources.catalogue_source import STATIC_ID
from broker_core_spark.batch.sources.names_file import NamesSource
from tests.support.spark_catalogues import staged_names, staging_area


def test_a_file_of_names_has_the_rules_of_an_import(tmp_path: Path) -> None:
    path = tmp_path / "names.jsonl"
    path.write_text(
        '{"name": "t", "partitions": 2, "properties": {"k": "v"}}\n{"name": "non-persistent://a/b/n"}\n',
        encoding="utf-8",
    )
    place = staging_area(tmp_path, "k")
    with NamesSource(path, "a/b").snapshot() as snapshot:
        assert (snapshot.catalogue_id, snapshot.version("t/n")) == (STATIC_ID, None)
        assert snapshot.unversioned == "a file of names has no versions"
        found = staged_names(place, snapshot.read(place, None))
    assert found == {
        ("a/b", "persistent", "t-partition-0"): "v",
        ("a/b", "persistent", "t-partition-1"): "v",
        ("a/b", "non-persistent", "n"): None,
    }
    path.write_text("fine\n\n", encoding="utf-8")
    with pytest.raises(InvalidCatalogue, match="line 2"), NamesSource(path, "a/b").snapshot():
        pass


@pytest.mark.parametrize("kind", ["names", "json"])
def test_refused_lines_are_put_aside_and_all_others_stay(tmp_path: Path, kind: str) -> None:
    names: list[str] = [f"t-{number}" for number in range(40)]
    bad = {1: "bad/name", 5: "x" * 70_000, 6: "y/z", 20: "persistent://c/d/e", 39: ""}
    lines = [bad.get(number, name) for number, name in enumerate(names)]
    lines[10] = lines[9]  # a repeated name
    encoded = [json.dumps({"name": line}) if kind == "json" else line for line in lines]
    data = [line.encode() for line in encoded]
    data[30] = b"\xff\xfe"
    path = tmp_path / "names.txt"
    path.write_bytes(b"\n".join(data) + b"\n")
    place = staging_area(tmp_path)
    with NamesSource(path, "a/b", quarantine=True).snapshot() as snapshot:
        found = {local for _, _, local in staged_names(place, snapshot.read(place, None))}
        rows = {row.line: row for row in snapshot.quarantined}
        assert snapshot.repeats == 1
    assert found == {name for number, name in enumerate(names) if number not in {*bad, 10, 30}}
    assert sorted(line for line in rows if line is not None) == sorted(number + 1 for number in {*bad, 30})
    assert rows[31].name == "\\xff\\xfe"
    assert all(row.reason and len(row.name or "") <= 1000 for row in rows.values())
    with pytest.raises(InvalidCatalogue), NamesSource(path, "a/b").snapshot():
        pass


@pytest.mark.parametrize("seed", range(5))
def test_repeated_names_are_those_of_the_same_file_without_the_refused_lines(
    tmp_path: Path, seed: int
) -> None:
    choose = Random(seed)
    names = ["a", "t-partition-0", "t-partition-1", "u", "non-persistent://a/b/a", "__change_events", "t"]
    good = [choose.choice(names) for _ in range(30)]
    mixed = [line for name in good for line in ([name, "bad/name"] if choose.random() < 0.3 else [name])]
    found = []
    for lines in (good, mixed):
        path = tmp_path / "names.txt"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        with NamesSource(path, "a/b", quarantine=True).snapshot() as snapshot:
            assert len(snapshot.quarantined) == len(lines) - len(good)
            found.append(snapshot.repeats)
    assert found == [len(good) - len(set(good))] * 2
