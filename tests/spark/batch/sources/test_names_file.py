"""A file of names as a catalogue of a batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core_spark.batch.build_errors import InvalidCatalogue
from broker_core_spark.batch.sources.catalogue_source import STATIC_ID
from broker_core_spark.batch.sources.names_file import NamesSource
from tests.support.files import file_with
from tests.support.spark_catalogues import staged_names, staging_area


def test_a_file_of_names_has_the_rules_of_an_import(tmp_path: Path) -> None:
    path = file_with(
        tmp_path / "names.jsonl",
        '{"name": "t", "partitions": 2, "properties": {"k": "v"}}\n{"name": "non-persistent://a/b/n"}\n',
    )
    place = staging_area(tmp_path, "k")
    with NamesSource(path, "a/b").snapshot() as snapshot:
        assert (snapshot.catalogue_id, snapshot.version("t/n")) == (STATIC_ID, None)
        assert snapshot.unversioned == "a list of names has no versions"
        found = staged_names(place, snapshot.read(place))
    assert found == {
        ("a/b", "persistent", "t-partition-0"): "v",
        ("a/b", "persistent", "t-partition-1"): "v",
        ("a/b", "non-persistent", "n"): None,
    }
    path.write_text("fine\n\n", encoding="utf-8")
    with pytest.raises(InvalidCatalogue, match="line 2"), NamesSource(path, "a/b").snapshot():
        pass
