"""The line of JSON about a build."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from broker_core.listing.listing_hash import topics_hash
from broker_core_spark.batch.build_result import HISTORY_SCHEMA, this_builder
from broker_core_spark.batch.job import BuildResult, build
from broker_core_spark.store import open_store
from broker_core_spark.store.build_and_gc_marks import user_name
from broker_core_spark.store.build_records import read_build_record
from tests.support.narrowed import present
from tests.support.spark_catalogues import fill, result_of, write_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS: list[dict[str, Any]] = [
    {"namespace": "a/b", "pattern": "persistent://a/b/t.*"},
    {"namespace": "a/b", "mode": "ALL", "properties": {"k": "v", "z": "0"}},
]
WHEN = datetime(2026, 3, 1, 10, 15, tzinfo=UTC)


def _row(namespace: str, pattern: str) -> dict[str, object]:
    return {"namespace": namespace, "mode": "PERSISTENT", "pattern": pattern, "properties": {}}


def test_the_line_has_what_a_program_asks_for(tmp_path: Path) -> None:
    rows = [_row("a/b", "a/b/x.*"), _row("a/b", "a/b/(?=y)"), _row("a/none", "a/none/.*")]
    result = result_of(tmp_path, rows, {"a/b": ["x1", "x2", "y"]})
    record = json.loads(json.dumps(result.record()))
    assert (record["generation"], record["number"], record["topics"]) == (result.generation, 1, 3)
    assert (record["questions"], record["matches"]) == (1, 2)
    assert record["refused"] == len(result.refused) == 1
    assert record["refused_patterns"][0]["pattern"] == "a/b/(?=y)"
    assert record["unknown_namespaces"] == ["a/none"]


def test_a_session_that_does_not_give_its_application() -> None:
    session: Any = SimpleNamespace(version="4.1.0")
    builder = this_builder(session, "run1")
    assert (builder["run"], builder["spark"], builder["application"]) == ("run1", "4.1.0", "")


def test_a_notebook_shows_a_table_without_markup_of_names(tmp_path: Path) -> None:
    result = result_of(tmp_path, [_row("a/b", "a/b/x.*"), _row("a/none", "x")], {"a/b": ["x1", "x2"]})
    shown = replace(result, catalogue="<script>")._repr_html_()
    assert "<script>" not in shown
    for said in ("<th>Matches</th><td>2</td>", "<td>50.0%</td>", "<th>Questions left out</th><td>1</td>"):
        assert said in shown


def test_one_row_a_question(spark: SparkSession, tmp_path: Path) -> None:
    result = replace(result_of(tmp_path / "store", ROWS, {"a/b": ["t1", "x"]}), published=WHEN)
    rows = {row["mode"]: row for row in result.totals_table().to_pylist()}
    assert rows["PERSISTENT"] == {
        "namespace": "a/b",
        "mode": "PERSISTENT",
        "pattern": "a/b/t.*",
        "properties": [],
        "count": 1,
        "hash": topics_hash(["persistent://a/b/t1"]),
        "version": 3,
        "generation": result.generation,
        "number": 1,
        "published": WHEN,
    }
    properties = [("k", "v")]
    assert (rows["ALL"]["pattern"], rows["ALL"]["properties"], rows["ALL"]["count"]) == (None, properties, 0)
    assert result.totals_frame(spark).toArrow().to_pylist() == result.totals_table().to_pylist()


def test_the_row_of_a_build(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"namespace": "a/b", "pattern": "a/b/x.*"}, {"namespace": "no/where", "pattern": "x"}]
    result = replace(
        result_of(tmp_path / "store", rows, {"a/b": ["x1"]}),
        published=WHEN,
        seconds={"total": 2.5},
    )
    table = result.history_table()
    assert table.schema.equals(HISTORY_SCHEMA)
    (row,) = table.to_pylist()
    assert (row["published"], row["seconds"], row["questions"], row["matches"]) == (WHEN, 2.5, 1, 1)
    assert (row["user"], row["left_out"], row["coverage"], row["added"]) == ("ann", 1, 0.5, None)
    assert result.history_frame(spark).toArrow().to_pylist() == [row]


def test_a_build_is_recorded_and_the_next_one_is_compared(spark: SparkSession, tmp_path: Path) -> None:
    catalogue, store = tmp_path / "topics.sqlite", str(tmp_path / "store")

    def built(*patterns: str) -> BuildResult:
        rows = [{"namespace": "a/b", "pattern": f"a/b/{pattern}"} for pattern in patterns]
        path = write_patterns(tmp_path / "patterns.jsonl", [*rows, {"namespace": "no/where", "pattern": "x"}])
        return build(spark, catalogue=str(catalogue), patterns=str(path), store=store, property_keys=())

    fill(catalogue, {"a/b": ["x1", "y1"]})
    first = built("x.*", "y.*")
    assert first.differences is None
    fill(catalogue, {"a/b": ["x2"]})
    second = built("x.*", "z.*", "(x|y).*")
    record = present(read_build_record(open_store(store), second.generation))
    assert record["builder"]["user"] == user_name()
    assert record["builder"]["pid"] == os.getpid()
    assert record["builder"]["application"] == spark.sparkContext.applicationId
    assert record["began"] < record["published"]
    assert record["patterns"] == str(tmp_path / "patterns.jsonl")
    assert record["seconds"]["total"] > 0
    assert record["coverage"] == 0.75
    assert record["differences"] == {
        "generation": first.generation,
        "added": 2,
        "removed": 1,
        "compared": True,
        "changed": 1,
        "with_more_topics": 1,
        "with_fewer_topics": 0,
    }
