"""The record that a build leaves in the store, and the differences of the next build to it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from broker_core_spark.batch.job import BuildResult, build
from broker_core_spark.store import open_store
from broker_core_spark.store.build_and_gc_marks import user_name
from broker_core_spark.store.build_records import read_build_record
from tests.support.spark_catalogues import fill, write_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    record = read_build_record(open_store(store), second.generation)
    assert record is not None
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
