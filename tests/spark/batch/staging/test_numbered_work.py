"""Tasks read their work by number, and say so if it is gone. Little work needs no Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from broker_core_spark.batch.build_errors import InvalidCatalogue
from broker_core_spark.batch.progress.progress import SparkJob
from broker_core_spark.batch.staging.numbered_work import numbered_work, run_numbered
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.store import Store, open_store


def test_each_number_has_its_file(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    for number in (3, 4):
        store.put_new(f"temporary/work-{number}.json", b"%d" % number)
    batches = [pa.record_batch({"id": [4]}), pa.record_batch({"id": [3, 5]})]
    work = numbered_work(store, "temporary/work-", iter(batches))
    assert [next(work), next(work)] == [(4, b"4"), (3, b"3")]
    with pytest.raises(
        InvalidCatalogue, match=rf"work of task 5 is not in .*{tmp_path.name}.*executors share"
    ):
        next(work)


def test_little_work_is_done_without_a_job_of_spark(tmp_path: Path) -> None:
    staging = StagingArea(str(tmp_path), "temporary/test", (), 1 << 20)
    no_spark: Any = None

    def done(_staging: StagingArea, _store: Store, number: int, data: bytes) -> tuple[int, bytes]:
        return number, data

    work = [b"zero", b"one", b"two"]
    found = run_numbered(no_spark, staging, "work", work, done, SparkJob("work"), seconds=0.1)
    assert found == [(0, b"zero"), (1, b"one"), (2, b"two")]
    with pytest.raises(AttributeError):
        run_numbered(no_spark, staging, "more", work, done, SparkJob("work"), seconds=9)
