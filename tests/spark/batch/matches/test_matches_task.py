"""The rows of shares of segments, as batches."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from broker_core_spark.batch.matches.match_rows import MATCH_SCHEMA
from broker_core_spark.batch.matches.matches_task import MatchesOf, MatchesOfShares
from tests.support.spark_catalogues import result_of

WHEN = datetime(2026, 3, 1, 10, 15, tzinfo=UTC)
NAMES = [f"t{number:04}" for number in range(3000)]


def test_a_share_has_the_rows_of_its_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker_core_spark.batch.matches.match_rows._ROWS", 400)
    result = result_of(tmp_path / "store", [{"namespace": "a/b", "pattern": ".*"}], {"a/b": NAMES})
    shares = ((0, len(result.manifest.segments)), (0, 0))
    work = MatchesOfShares(MatchesOf(result.store, {}, result.generation, WHEN), shares)
    batches = list(work(iter([pa.record_batch([pa.array([0, 1])], ["id"])])))
    assert max(batch.num_rows for batch in batches) <= 400
    assert all(batch.schema.equals(MATCH_SCHEMA) for batch in batches)
    topics = pa.Table.from_batches(batches).column("topic").to_pylist()
    assert topics == [f"persistent://a/b/{name}" for name in NAMES]
    assert list(work.rows(1)) == []
