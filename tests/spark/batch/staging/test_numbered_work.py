"""Tasks get their work by number. Little work needs no Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from broker_core_spark.batch.progress.progress import SparkJob
from broker_core_spark.batch.staging.numbered_work import run_numbered
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.store import Store

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORK = ["zero", ("one",), b"two"]


def done(_staging: StagingArea, store: Store, number: int, work: Any) -> tuple[str, int, Any]:
    return store.uri, number, work


def test_each_task_does_its_own_work(spark: SparkSession, tmp_path: Path) -> None:
    staging = StagingArea(str(tmp_path), "temporary/test", (), 1 << 20)
    found = run_numbered(spark, staging, WORK, done, SparkJob("work"))
    assert sorted(found) == [(str(tmp_path), number, work) for number, work in enumerate(WORK)]


def test_little_work_is_done_without_a_job_of_spark(tmp_path: Path) -> None:
    staging = StagingArea(str(tmp_path), "temporary/test", (), 1 << 20)
    no_spark: Any = None
    found = run_numbered(no_spark, staging, WORK, done, SparkJob("work"), seconds=0.1)
    assert found == [(str(tmp_path), number, work) for number, work in enumerate(WORK)]
    with pytest.raises(AttributeError):
        run_numbered(no_spark, staging, WORK, done, SparkJob("work"), seconds=9)
