"""The staging area of a build, which tasks get by pickle."""

from __future__ import annotations

import pickle
from pathlib import Path

from broker_core_spark.batch.staging.staging_area import StagingArea


def test_staging_travels_to_executors(tmp_path: Path) -> None:
    staging = StagingArea(str(tmp_path), "temporary/test", ("k",), 4096, {"region": "x"}).within(
        ((b"a", b"b"),)
    )
    again = pickle.loads(pickle.dumps(staging))
    assert again == staging
    assert again.open().uri == str(tmp_path)
