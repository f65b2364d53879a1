"""The embedded catalogue as a catalogue of a batch."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.change_log import CatalogVersion
from broker_core.names import TopicName
from broker_core_spark.batch.errors import InvalidCatalogue
from broker_core_spark.batch.sources.sqlite_catalogue import EmbeddedSource
from tests.support.spark_catalogues import fill, staged_names, staging_area


def test_the_embedded_catalogue_is_read_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.sqlite"
    fill(path, {"a/b": [{"name": "t", "partitions": 2, "properties": {"k": "v"}}, "u"], "a/c": ["x"]})
    place = staging_area(tmp_path, "k")
    with EmbeddedSource(path).snapshot() as snapshot:
        fill(path, {"a/b": ["later"], "a/d": ["later"]})
        assert snapshot.versions == {"a/b": 1, "a/c": 1}
        found = staged_names(place, snapshot.read(place, None))
        some = staged_names(place, snapshot.read(place, ["a/c"]))
    assert found == {
        ("a/b", "persistent", "t-partition-0"): "v",
        ("a/b", "persistent", "t-partition-1"): "v",
        ("a/b", "persistent", "u"): None,
        ("a/c", "persistent", "x"): None,
    }
    assert set(some) == {("a/c", "persistent", "x")}
    with SqliteCatalog(path, create=False) as catalog, EmbeddedSource(path).snapshot() as snapshot:
        assert snapshot.catalogue_id == catalog.catalog_id


def test_changes_of_every_kind_are_told(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.sqlite"
    fill(path, {"a/b": [{"name": "t", "partitions": 2}, "u", "stays"]})
    with SqliteCatalog(path, create=False) as catalog:
        catalog.delete(TopicName.parse("persistent://a/b/u"))
        catalog.set_properties(TopicName.parse("persistent://a/b/t"), {"k": "v"})
        catalog.create(TopicName.parse("non-persistent://a/b/n"))
    with EmbeddedSource(path).snapshot() as snapshot:
        changed = snapshot.changed("a/b", CatalogVersion(snapshot.catalogue_id, 1))
        assert changed is not None
        assert set(changed) == {
            ("persistent", "u"),
            ("persistent", "t-partition-0"),
            ("persistent", "t-partition-1"),
            ("non-persistent", "n"),
        }
        assert list(snapshot.changed("a/b", CatalogVersion(snapshot.catalogue_id, 4)) or ()) == []
        assert (
            snapshot.changed("a/b", CatalogVersion(snapshot.catalogue_id, 99)) is None
        )  # of another history


def test_a_file_that_is_no_catalogue(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    path.write_bytes(b"SQLite format 3\x00 and then nonsense" * 100)
    with pytest.raises(InvalidCatalogue), EmbeddedSource(path).snapshot():
        pass
