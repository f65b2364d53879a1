"""The files of a share of segments: parts of bounded size, the same bytes whenever the task runs again."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker_core_spark.batch.matches import matches_task
from broker_core_spark.batch.matches.match_rows import MATCH_SCHEMA
from broker_core_spark.batch.matches.matches_task import MatchesOfShares, WriteMatches
from tests.support.spark_catalogues import result_of

WHEN = datetime(2026, 3, 1, 10, 15, tzinfo=UTC)
NAMES = [f"t{number:04}" for number in range(3000)]


def task(tmp_path: Path, folder: str) -> WriteMatches:
    result = result_of(tmp_path / "store", [{"namespace": "a/b", "pattern": ".*"}], {"a/b": NAMES})
    shares = ((0, len(result.manifest.segments)), (0, 0))
    work = MatchesOfShares(result.store, {}, result.generation, WHEN, shares)
    return WriteMatches(work, str(tmp_path / folder))


def run(work: WriteMatches) -> list[dict[str, object]]:
    numbers = pa.record_batch([pa.array([0, 1])], ["id"])
    return [json.loads(result) for result in work(iter([numbers]))]


def test_files_and_what_the_driver_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matches_task, "_GROUP_ROWS", 500)
    monkeypatch.setattr(matches_task, "_FILE_BYTES", 1)
    monkeypatch.setattr("broker_core_spark.batch.matches.match_rows._ROWS", 400)
    work = task(tmp_path, "one")
    results = run(work)
    files = {path.name: path for path in (tmp_path / "one").iterdir()}
    assert results == [
        {
            "rows": 3000,
            "files": {
                f"part-00000-{n:05}.parquet": files[f"part-00000-{n:05}.parquet"].stat().st_size
                for n in range(4)
            },
        },
        {"rows": 0, "files": {"part-00001-00000.parquet": files["part-00001-00000.parquet"].stat().st_size}},
    ]
    assert len(files) == 5
    tables = [pq.read_table(files[name]) for name in sorted(files)]
    assert all(table.schema.equals(MATCH_SCHEMA) for table in tables)
    assert pa.concat_tables(tables).column("topic").to_pylist() == [
        f"persistent://a/b/{name}" for name in NAMES
    ]
    run(task(tmp_path, "two"))
    for name, path in files.items():
        assert (tmp_path / "two" / name).read_bytes() == path.read_bytes()


def test_small_batches_share_a_row_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core_spark.batch.matches.match_rows._ROWS", 7)
    run(task(tmp_path, "one"))
    assert pq.ParquetFile(tmp_path / "one" / "part-00000-00000.parquet").num_row_groups == 1
