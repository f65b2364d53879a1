"""A whole build of many groups of patterns: the bytes are those of one process, and the totals those of the names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker_core.listing.listing_hash import topics_hash
from broker_core_spark.batch.job import build
from broker_core_spark.batch.segments import task_assignment
from broker_core_spark.serving.opened.generation import Generation
from broker_core_spark.store import open_store
from tests.support.narrowed import present
from tests.support.spark_catalogues import expected_generation, fill, generation_files, write_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_groups_of_patterns_are_joined_to_the_same_bytes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A task may have fewer selectors than the namespace has.
    monkeypatch.setattr(task_assignment, "_MOST_SELECTORS", 60)
    catalogue = tmp_path / "catalogue.sqlite"
    fill(
        catalogue,
        {
            "public/large": [f"orders-{number}" for number in range(3000)],
            "public/small": [f"users-{number}" for number in range(50)],
        },
    )
    rows = [{"namespace": "public/large", "pattern": f".*{number}.*"} for number in range(250)]
    rows += [{"namespace": "public/small", "pattern": pattern} for pattern in (".*", ".*7")]
    patterns = write_patterns(tmp_path / "patterns.jsonl", rows)
    expected = expected_generation(catalogue, patterns, tmp_path / "expected", segment_bytes=16 * 1024)
    store = tmp_path / "store"
    result = build(
        spark,
        catalogue=str(catalogue),
        patterns=str(patterns),
        store=str(store),
        partitions=9,
        segment_bytes=16 * 1024,
    )
    assert result.tasks >= 5
    assert len(result.task_seconds) == result.tasks
    assert generation_files(store, result.manifest) == generation_files(tmp_path / "expected", expected)
    assert not list((store / "temporary").iterdir())
    generation = Generation.open(open_store(str(store)), result.generation)
    for total in result.totals[::20]:
        answer = present(generation.lookup(total.question))
        names = answer.selection.names.to_pylist()
        assert (total.count, total.topics_hash) == (len(names), topics_hash(names))
