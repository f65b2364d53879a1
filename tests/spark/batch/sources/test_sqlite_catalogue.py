"""The embedded catalogue as a catalogue of a batch."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.change_log import CatalogVersion
from broker_core.names import TopicName
from broker_core_spark.batch.build_errors import InvalidCatalogue
from broker_core_spark.batch.sources.sqlite_catalogue import EmbeddedSource
from tests.support.files import file_with
from tests.support.spark_catalogues import fill, staged_names, staging_area


def test_the_embedded_catalogue_is_read_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "catalogue.sqlite"
    fill(path, {"a/b": [{"name": "t", "partitions": 2, "properties": {"k": "v"}}, "u"], "a/c": ["x"]})
    place = staging_area(tmp_path, "k")
    with EmbeddedSource(path).snapshot() as snapshot:
        fill(path, {"a/b": ["later"], "a/d": ["later"]})
        assert [str(snapshot.version(name)) for name in ("a/b", "a/c", "a/d")] == [
            f"{snapshot.catalogue_id}:1",
            f"{snapshot.catalogue_id}:1",
            "None",
        ]
        found = staged_names(place, snapshot.read(place))
        some = staged_names(place, snapshot.read(replace(place, namespaces=frozenset({"a/c"}))))
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

        def changed(since: int) -> Iterable[tuple[str, str]] | None:
            return snapshot.changes({"a/b": CatalogVersion(snapshot.catalogue_id, since)}, ())["a/b"]

        assert set(changed(1) or ()) == {
            ("persistent", "u"),
            ("persistent", "t-partition-0"),
            ("persistent", "t-partition-1"),
            ("non-persistent", "n"),
        }
        assert changed(4) == set()
        assert changed(99) is None  # of another history


def test_a_file_that_is_no_catalogue(tmp_path: Path) -> None:
    path = file_with(tmp_path / "other.sqlite", b"SQLite format 3\x00 and then nonsense" * 100)
    with pytest.raises(InvalidCatalogue), EmbeddedSource(path).snapshot():
        pass
