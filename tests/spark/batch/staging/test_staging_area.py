"""The staging area of a build, which tasks get by pickle."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.store import open_store
from broker_core_spark.store.publishing import BuildRun


def test_staging_travels_to_executors(tmp_path: Path) -> None:
    staging = StagingArea(
        str(tmp_path), "temporary/test", ("k",), 4096, {"region": "x"}, key_ranges=((b"a", b"b"),)
    )
    again = pickle.loads(pickle.dumps(staging))
    assert again == staging
    assert again.open().uri == str(tmp_path)


def test_what_a_killed_task_leaves_is_staged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = BuildRun()
    store = StagingArea(str(tmp_path), run.staged, (), 4096).open()
    assert open_store(str(tmp_path)).put_new("segments/y", b"")  # the driver checks the folder
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)  # a killed process runs no more
    store.put_new("segments/x", b"")
    monkeypatch.undo()
    (left,) = (tmp_path / "temporary").iterdir()
    run.remove_staged(open_store(str(tmp_path)))
    assert not left.exists()
    assert (tmp_path / "segments" / "x").exists()
