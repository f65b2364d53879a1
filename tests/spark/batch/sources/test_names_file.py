"""A file of names as a catalogue of a batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core_spark.batch.errors import InvalidCatalogue
from broker_core_spark.batch.sources.catalogue_source import STATIC_ID
from broker_core_spark.batch.sources.names_file import NamesSource
from broker_core_spark.batch.staging.order_keys import name_of_key
from broker_core_spark.batch.staging.sorted_runs import SortedRun, joined_names, read_blocks
from broker_core_spark.batch.staging.staging_area import StagingArea


def staging(tmp_path: Path, *keys: str) -> StagingArea:
    return StagingArea(str(tmp_path / "store"), "temporary/test", keys, 1 << 20)


def names(place: StagingArea, runs: list[SortedRun]) -> dict[tuple[str, str, str], str | None]:
    store, count = place.open(), len(place.property_keys)
    rows = joined_names(
        [read_blocks(store, run.path, run.blocks, count) for run in runs if run.blocks], count
    )
    values = rows.properties[0].to_pylist() if count else [None] * len(rows)
    return dict(zip(map(name_of_key, rows.keys.to_pylist()), values, strict=True))


def test_a_file_of_names_has_the_rules_of_an_import(tmp_path: Path) -> None:
    path = tmp_path / "names.jsonl"
    path.write_text(
        '{"name": "t", "partitions": 2, "properties": {"k": "v"}}\n{"name": "non-persistent://a/b/n"}\n',
        encoding="utf-8",
    )
    place = staging(tmp_path, "k")
    with NamesSource(path, "a/b").snapshot() as snapshot:
        assert (snapshot.catalogue_id, snapshot.versions) == (STATIC_ID, None)
        found = names(place, snapshot.read(place, None))
    assert found == {
        ("a/b", "persistent", "t-partition-0"): "v",
        ("a/b", "persistent", "t-partition-1"): "v",
        ("a/b", "non-persistent", "n"): None,
    }
    path.write_text("fine\n\n", encoding="utf-8")
    with pytest.raises(InvalidCatalogue, match="line 2"), NamesSource(path, "a/b").snapshot():
        pass
