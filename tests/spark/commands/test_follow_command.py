"""`broker-core spark follow` on a real Spark: a line for each look, and errors that end it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker_core.cli.command_tree import run
from tests.support.spark_catalogues import write_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_look_is_a_line(spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert spark.version
    catalogue = tmp_path / "topics.parquet"
    pq.write_table(pa.table({"name": ["x", "y"], "version": [1, 2]}), catalogue)
    patterns = write_patterns(tmp_path / "patterns.jsonl", [{"namespace": "a/b"}])
    table = ["--catalogue", str(catalogue), "--namespace", "a/b", "--changes", "version"]
    table += ["--out", str(tmp_path / "store")]
    assert run(["spark", "follow", *table]) == 1
    assert "nothing is published there: build first" in capsys.readouterr().err
    assert run(["spark", "build", *table, "--patterns", str(patterns)]) == 0
    built = json.loads(capsys.readouterr().out.splitlines()[-1])
    pq.write_table(pa.table({"name": ["x", "y", "z"], "version": [1, 2, 3]}), catalogue)
    assert run(["spark", "follow", *table]) == 0
    look = json.loads(capsys.readouterr().out)
    assert (look["generation"], look["look"], look["changed"]) == (built["generation"], 1, 1)
    assert run(["spark", "follow", *table, "--every", "now"]) == 2
