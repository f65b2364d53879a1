"""A build and an increment on ``local-cluster[2,1,1024]``, with a dying worker and speculation, give the same bytes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.quick_java import quick_java_options
from tests.support.spark_increments import BeforeAndAfter

SEGMENT_BYTES = 8192

#: Python of the executors imports this at its start. For each fault whose file is there, the first write of a segment
#: fails, and the first worker dies that has written one.
_FAULTS = """
import os
if os.environ.get("BATCH_FAULTS"):
    from broker_core_spark.store.folder_store import FolderStore
    put_all_new = FolderStore.put_all_new
    def first_time(what):
        try:
            os.unlink(os.path.join(os.environ["BATCH_FAULTS"], what))
            return True
        except FileNotFoundError:
            return False
    def faulty(self, files):
        are_segments = any(path.startswith("segments/") for path, _ in files)
        if are_segments and first_time("refuse"):
            raise OSError("injected: the disk is full")
        result = put_all_new(self, files)
        if are_segments and first_time("die"):
            os._exit(9)
        return result
    FolderStore.put_all_new = faulty
"""

_JOB = """
import json, sys
from pathlib import Path
from broker_core_spark.batch.job import build
from broker_core_spark.batch.spark.spark_session import spark_session
store, faults, conf = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
with spark_session(master="local-cluster[2,1,1024]", conf=conf) as spark:
    for folder in map(Path, sys.argv[5:]):
        for fault in ("refuse", "die"):
            (faults / fault).touch()
        result = build(spark, catalogue=str(folder / "catalogue.sqlite"), patterns=str(folder / "patterns.jsonl"),
                       store=str(store), segment_bytes=int(sys.argv[4]), partitions=4, incremental=True)
        print(json.dumps([result.record(), [path.name for path in faults.iterdir()]]))
"""


@pytest.mark.long
def test_executors_that_fail_make_the_same_generations(tmp_path: Path) -> None:
    builds = BeforeAndAfter.below(tmp_path, topics=4000)
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
            str(tmp_path / "store"),
            str(faults),
            json.dumps(conf),
            str(SEGMENT_BYTES),
            str(builds.before),
            str(builds.after),
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
    (full, left), (increment, left_then) = map(json.loads, done.stdout.splitlines()[-2:])
    assert (left, left_then) == ([], [])  # each fault came in each build
    builds.check({tmp_path / "store": (full, increment)}, segment_bytes=SEGMENT_BYTES)
