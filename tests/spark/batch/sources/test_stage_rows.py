"""Rows of full and local names are staged by namespace, or refused with the reason."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from broker_core_spark.batch.build_errors import InvalidCatalogue
from broker_core_spark.batch.sources.stage_rows import rows_by_place
from broker_core_spark.batch.staging.sorted_runs import SortedRunWriter
from broker_core_spark.batch.staging.staging_area import StagingArea
from tests.support.spark_catalogues import staged_names, staging_area

Found = set[tuple[str, str, str, str | None]]
TEXT = pa.large_string()


def texts(*values: str | None) -> pa.LargeStringArray:
    return pa.array(values, TEXT)


def found_in(place: StagingArea, runs: list[Any]) -> Found:
    return {(*name, value) for name, value in staged_names(place, runs).items()}


def staged(
    tmp_path: Path, *columns: Any, default: str | None = None, wanted: Collection[str] | None = None
) -> Found:
    place = staging_area(tmp_path, "k")
    writer = SortedRunWriter(place)
    names, namespaces, domains, *values = columns
    for part in rows_by_place(names, namespaces, domains, values, default, wanted):
        writer.add(*part)
    return found_in(place, writer.finish())


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
        ("persistent://a/b", "a/b", None, "expected domain"),
        ("persistent://a/b/c/d", "a/b", None, "no '/'"),
        ("x/y", "a/b", None, "expected domain"),
        ("local", None, None, "without a namespace"),
        ("local", "nowhere", None, "expected domain"),
        ("local", "a/b", "kafka", "domain"),
        ("", "a/b", None, "empty"),
        (None, "a/b", None, "null"),
        ("nul\0", "a/b", None, r"\(in persistent://a/b\)"),
        ("persistent://a/b/nul\0", None, None, r"\(in persistent://a/b\)"),
    ],
    ids=range(15),
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
