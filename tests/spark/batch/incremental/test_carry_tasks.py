"""Keeping segments: selectors that are new, and what a task says of faulty segments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from broker_core.names import Mode
from broker_core_spark.batch.incremental import carry_tasks
from broker_core_spark.batch.incremental.carry_tasks import added_selectors, keep_share
from broker_core_spark.batch.job import build
from broker_core_spark.batch.segments.segment_puts import StoredSegments
from broker_core_spark.batch.segments.staged_selectors import stage_selectors
from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format.canonical_question import CanonicalQuestion, required_selectors
from broker_core_spark.format.manifest import manifest_name
from tests.support.generation_builder import build_generation
from tests.support.spark_catalogues import fill, questions_about, staging_area, write_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUESTIONS = [CanonicalQuestion.of("a/b", Mode.ALL, pattern) for pattern in (".*7", ".*8")]


def test_added_selectors_are_those_that_only_the_new_questions_have() -> None:
    before = required_selectors(QUESTIONS[:1])
    now = required_selectors([QUESTIONS[1], CanonicalQuestion.of("a/b", Mode.PERSISTENT, ".*7")])
    persistent, other = ("a/b", "persistent"), ("a/b", "non-persistent")
    assert {place: len(found) for place, found in now.items()} == {persistent: 2, other: 1}
    assert added_selectors(before, now) == {place: [QUESTIONS[1].selector] for place in (persistent, other)}
    assert added_selectors(now, before) == {other: [QUESTIONS[0].selector]}
    assert added_selectors(now, now) == {}


def test_a_task_says_which_generation_lies(tmp_path: Path) -> None:
    staging = staging_area(tmp_path)
    store = staging.open()
    made = build_generation(
        store,
        {"a/b": {"persistent": [f"t{number}" for number in range(99)]}},
        QUESTIONS,
        catalogue_id="c",
        versions={"a/b": 1},
    )
    ((namespace, domain, count),) = made.segments[0].runs
    lie = replace(made, segments=(replace(made.segments[0], runs=((namespace, domain, count - 1),)),))
    store.put_new(manifest_name(lie.id), lie.data)
    staged = stage_selectors(store, "temporary/asked", required_selectors(QUESTIONS))
    none = stage_selectors(store, "temporary/none", {})
    record = {
        "generation": made.id,
        "stretches": [(0, (), None, "")],
        "blocks": {},
        "compared": False,
        "selectors": [staged, staged, none],
    }
    assert len(keep_share(staging, store, 0, record).segments) == 1
    with pytest.raises(InvalidGeneration, match="its runs are not those that the manifest has"):
        keep_share(staging, store, 0, record | {"generation": lie.id})


@pytest.mark.parametrize("chosen", [None, "mimalloc"])
def test_an_increment_takes_memory_from_the_c_library_unless_the_environment_says_otherwise(
    chosen: str | None, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = pa.default_memory_pool().backend_name
    monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL", raising=False)
    if chosen is not None:
        monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", chosen)
    catalogue = tmp_path / "c.sqlite"
    fill(catalogue, {"a/b": [f"t-{number}" for number in range(99)]})
    patterns = write_patterns(tmp_path / "p.jsonl", questions_about("a/b"))
    used = []

    def noted(*arguments: Any) -> StoredSegments:
        used.append(pa.default_memory_pool().backend_name)
        return keep_share(*arguments)

    monkeypatch.setattr(carry_tasks, "keep_share", noted)
    for incremental in (False, True):
        build(
            spark,
            catalogue=str(catalogue),
            patterns=str(patterns),
            store=str(tmp_path / "store"),
            incremental=incremental,
        )
    assert set(used) == {"system" if chosen is None else pool}
    assert pa.default_memory_pool().backend_name == pool  # of the notebook, say
