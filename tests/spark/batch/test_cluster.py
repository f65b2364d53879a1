"""A build on ``local-cluster[2,1,1024]``, with a dying worker and speculation, gives the same bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.quick_java import quick_java_options
from tests.support.spark_catalogues import (
    expected_generation,
    fill,
    generation_files,
    questions_about,
    write_patterns,
)

SEGMENT_BYTES = 8192

#: Python of the executors imports this at its start. The first worker dies after it has written a segment, and another
#: write fails once.
_FAULTS = """
import os
if os.environ.get("BATCH_FAULTS"):
    from broker_core_spark.store.folder_store import FolderStore
    put_all_new = FolderStore.put_all_new
    def first_time(what):
        try:
            os.close(os.open(os.path.join(os.environ["BATCH_FAULTS"], what), os.O_CREAT | os.O_EXCL))
            return True
        except FileExistsError:
            return False
    def faulty(self, files):
        are_segments = any(path.startswith("segments/") for path, _ in files)
        if are_segments and first_time("refused"):
            raise OSError("injected: the disk is full")
        result = put_all_new(self, files)
        if are_segments and first_time("died"):
            os._exit(9)
        return result
    FolderStore.put_all_new = faulty
"""

_JOB = """
import json, sys
from broker_core_spark.batch.job import build
from broker_core_spark.batch.spark.spark_session import spark_session
catalogue, patterns, store, conf = sys.argv[1:5]
with spark_session(master="local-cluster[2,1,1024]", conf=json.loads(conf)) as spark:
    result = build(spark, catalogue=catalogue, patterns=patterns, store=store, segment_bytes=int(sys.argv[5]),
                   partitions=4)
print(json.dumps(result.record()))
"""


@pytest.mark.long
def test_executors_that_fail_make_the_same_generation(tmp_path: Path) -> None:
    catalogue = tmp_path / "catalogue.sqlite"
    names = [f"orders-{number}" for number in range(4000)]
    fill(catalogue, {"public/large": names, "public/small": ["a", "b"]})
    patterns = write_patterns(tmp_path / "patterns.jsonl", questions_about("public/large"))
    faults = tmp_path / "faults"
    faults.mkdir()
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(_FAULTS, encoding="utf-8")
    conf = {
        "spark.executorEnv.PYTHONPATH": str(tmp_path / "site"),
        "spark.executorEnv.BATCH_FAULTS": str(faults),
        "spark.speculation": "true",
        "spark.speculation.interval": "100ms",
        "spark.speculation.quantile": "0.1",
        "spark.speculation.multiplier": "1.01",
        "spark.task.maxFailures": "4",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": quick_java_options(),
    }
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            _JOB,
            str(catalogue),
            str(patterns),
            str(tmp_path / "store"),
            json.dumps(conf),
            str(SEGMENT_BYTES),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={
            **os.environ,
            "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
            "SPARK_WORKER_DIR": str(tmp_path / "work"),
        },
    )
    assert done.returncode == 0, done.stderr[-3000:]
    record = json.loads(done.stdout.splitlines()[-1])
    assert sorted(path.name for path in faults.iterdir()) == ["died", "refused"]
    manifest = expected_generation(catalogue, patterns, tmp_path / "expected", segment_bytes=SEGMENT_BYTES)
    assert record["generation"] == manifest.id
    assert generation_files(tmp_path / "store", manifest) == generation_files(tmp_path / "expected", manifest)
