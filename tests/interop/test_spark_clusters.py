"""Wherever the tasks of a build run, and however many there are, a generation has the same bytes.

So it has if it is an increment, also one during which an executor of a standalone cluster is killed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import distribution
from pathlib import Path

import pytest

from broker_core_spark.batch.spark.java_home import find_java_home
from tests.support.eventually import eventually_sync
from tests.support.ports import free_port
from tests.support.quick_java import quick_java_options
from tests.support.spark_increments import BeforeAndAfter

pytestmark = pytest.mark.interop

SEGMENT_BYTES = 8192
PARTITIONS = (2, 7, 31)
#: Python of the executors imports this at its start. While the file ``kill`` is there, the first worker that has
#: written a segment kills the executor that it works for, and leaves the executor's command in the file ``killed``.
_KILL = """
import os, signal
from pathlib import Path
from broker_core_spark.store.folder_store import FolderStore
put_all_new = FolderStore.put_all_new
folder = Path(__file__).parent
def killing(self, files):
    result = put_all_new(self, files)
    if any(path.startswith("segments/") for path, _ in files):
        try:
            (folder / "kill").unlink()
        except FileNotFoundError:
            return result
        fields = Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()
        executor = int(fields[1])  # the parent of the daemon that starts workers
        (folder / "killed").write_bytes(Path(f"/proc/{executor}/cmdline").read_bytes())
        os.kill(executor, signal.SIGKILL)
    return result
FolderStore.put_all_new = killing
"""
_JOB = """
import json, sys
from pathlib import Path
from broker_core_spark.batch.job import build
from broker_core_spark.batch.spark.spark_session import spark_session
folder, master, size, partitions = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), json.loads(sys.argv[4])
def built(at, number):
    result = build(spark, catalogue=str(folder / at / "catalogue.sqlite"), store=str(folder / f"store-{number}"),
                   patterns=str(folder / at / "patterns.jsonl"), segment_bytes=size, partitions=number,
                   incremental=True)
    print(json.dumps(result.record()))
with spark_session(master=master, conf=json.loads(sys.argv[5])) as spark:
    for number in partitions:
        built("before", number)
    for number in partitions:
        if str(number) == sys.argv[6]:
            (folder / "site" / "kill").touch()
        built("after", number)
    print(json.dumps(spark.sparkContext.master))
"""


@pytest.fixture
def standalone(tmp_path: Path) -> Iterator[str]:
    """The address of a standalone cluster: a master and two workers, with one core each."""
    # Not by an import: another file of tests in this process may have imported another release, and a master of 4.1
    # does not answer a driver of 4.3.
    start = [str(distribution("pyspark").locate_file("pyspark/bin/spark-class"))]
    master = f"spark://127.0.0.1:{free_port()}"
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java_home()),
        "SPARK_DAEMON_JAVA_OPTS": quick_java_options(),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
        "PYSPARK_PYTHON": sys.executable,
    }
    deploy = "org.apache.spark.deploy"
    at = ["--host", "127.0.0.1", "--webui-port", "0"]
    worker = [f"{deploy}.worker.Worker", *at, "--cores", "1", "--memory", "1g"]
    commands = [
        [f"{deploy}.master.Master", *at, "--port", master.rpartition(":")[2]],
        *([*worker, "--work-dir", str(tmp_path / f"work-{number}"), master] for number in range(2)),
    ]
    with ExitStack() as stack:
        logs = [stack.enter_context((tmp_path / f"log-{number}").open("w")) for number in range(3)]
        for command, log in zip(commands, logs, strict=True):
            process = stack.enter_context(
                subprocess.Popen([*start, *command], stdout=log, stderr=subprocess.STDOUT, env=environment)
            )
            stack.callback(process.kill)
        for log in logs[1:]:
            said = Path(log.name)
            eventually_sync(
                lambda said=said: "Successfully registered" in said.read_text(),  # type: ignore[misc]
                timeout=180,
                what="a worker is registered",
            )
        yield master


@contextmanager
def _logs_shown(folder: Path) -> Iterator[None]:
    """Print how the logs of master, workers and executors end: pytest shows it if the test fails."""
    try:
        yield
    finally:
        for log in [*sorted(folder.glob("log-*")), *sorted(folder.glob("work*/*/*/stderr"))]:
            print(log, log.read_text(errors="replace")[-4000:], sep="\n")


@pytest.mark.parametrize("kind", ["local[2]", "local-cluster[2,1,1024]", "standalone"])
def test_a_generation_has_the_same_bytes(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    master = request.getfixturevalue("standalone") if kind == "standalone" else kind
    # The increment in so many tasks during which an executor is killed.
    killed_in = PARTITIONS[1] if kind == "standalone" else 0
    builds = BeforeAndAfter.below(tmp_path, topics=4000)
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(_KILL, encoding="utf-8")
    conf = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": quick_java_options(),
        "spark.executorEnv.PYTHONPATH": str(site),
    }
    with _logs_shown(tmp_path):
        done = subprocess.run(
            [
                *(sys.executable, "-c", _JOB, str(tmp_path), master),
                *(str(SEGMENT_BYTES), json.dumps(PARTITIONS), json.dumps(conf), str(killed_in)),
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
        assert (done.returncode, done.stderr) == (0, "")  # no progress bars either
    if killed_in:
        assert b"CoarseGrainedExecutorBackend" in (site / "killed").read_bytes()
    *built, ran_at = map(json.loads, done.stdout.splitlines())
    assert ran_at == master
    full, increments = built[: len(PARTITIONS)], built[len(PARTITIONS) :]
    assert len({record["partitions"] for record in full}) == len(PARTITIONS)
    stores = [tmp_path / f"store-{number}" for number in PARTITIONS]
    builds.check(
        dict(zip(stores, zip(full, increments, strict=True), strict=True)), segment_bytes=SEGMENT_BYTES
    )
