"""Rows of full and local names are staged by namespace, or refused with what is wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from broker_core_spark.batch.errors import InvalidCatalogue
from broker_core_spark.batch.sources.stage_rows import stage_rows
from broker_core_spark.batch.staging.order_keys import name_of_key
from broker_core_spark.batch.staging.sorted_runs import joined_names, read_blocks
from broker_core_spark.batch.staging.staging_area import StagingArea

Found = set[tuple[str, str, str, str | None]]
TEXT = pa.large_string()


def texts(*values: str | None) -> pa.LargeStringArray:
    return pa.array(values, TEXT)


def found_in(place: StagingArea, runs: list[Any]) -> Found:
    count = len(place.property_keys)
    store = place.open()
    rows = joined_names(
        [read_blocks(store, run.path, run.blocks, count) for run in runs if run.blocks], count
    )
    values = rows.properties[0].to_pylist() if count else [None] * len(rows)
    return {(*name_of_key(key), value) for key, value in zip(rows.keys.to_pylist(), values, strict=True)}


def staged(tmp_path: Path, *columns: Any, default: str | None = None) -> Found:
    place = StagingArea(str(tmp_path / "store"), "temporary/test", ("k",), 1 << 20)
    writer = place.writer()
    names, namespaces, domains, *values = columns
    runs = [*stage_rows(writer, names, namespaces, domains, values, default), *writer.finish()]
    return found_in(place, runs)


def test_full_and_local_names_side_by_side(tmp_path: Path) -> None:
    found = staged(
        tmp_path,
        texts("persistent://a/b/x", "local", "non-persistent://a/c/y", "other", "persistent://a/b/z"),
        texts("a/b", "d/e", None, None, None),
        texts(None, "non-persistent", None, None, None),
        texts("1", "2", None, "4", "5"),
        default="f/g",
    )
    assert found == {
        ("a/b", "persistent", "x", "1"),
        ("a/b", "persistent", "z", "5"),
        ("a/c", "non-persistent", "y", None),
        ("d/e", "non-persistent", "local", "2"),
        ("f/g", "persistent", "other", "4"),
    }


@pytest.mark.parametrize(
    ("name", "namespace", "domain", "message"),
    [
        ("persistent://a/b", None, None, "expected domain"),
        ("persistent://a/b/c/d", None, None, "no '/'"),
        ("kafka://a/b/c", None, None, "domain"),
        ("persistent://a/b/", None, None, "empty"),
        ("persistent://a/b/x", "a/c", None, "is not in namespace a/c"),
        ("local", None, None, "without a namespace"),
        ("local", "nowhere", None, "expected domain"),
        ("local", "a/b", "kafka", "domain"),
        ("", "a/b", None, "empty"),
        (None, "a/b", None, "null"),
    ],
    ids=range(10),
)
def test_what_is_no_topic_is_refused(
    tmp_path: Path, name: str | None, namespace: str | None, domain: str | None, message: str
) -> None:
    with pytest.raises(InvalidCatalogue, match=message):
        staged(
            tmp_path,
            texts("persistent://a/b/fine", name),
            texts(None, namespace),
            texts(None, domain),
            texts(None, None),
        )
