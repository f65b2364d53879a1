"""Tasks read their work by number, and say so where it is gone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from broker_core_spark.batch.errors import InvalidCatalogue
from broker_core_spark.batch.staging.numbered_work import numbered_work
from broker_core_spark.store import open_store


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
