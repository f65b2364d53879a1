"""Builds killed at random or terminated: what is published stays whole, and the next build works."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker_core_spark.batch.job import build
from broker_core_spark.serving.opened.generation import Generation
from broker_core_spark.store import open_store
from broker_core_spark.store.build_and_gc_marks import read_marks
from broker_core_spark.store.garbage_collection import collect_garbage
from broker_core_spark.store.published_pointers import readable_pointers
from tests.support.eventually import eventually_sync
from tests.support.forked_run import seed_of_the_run
from tests.support.spark_catalogues import fill, questions_about, write_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PATIENCE = 300  # seconds; a JVM starts in this time


def files(store: Path) -> int:
    """The number of files in the store, finished or not."""
    return sum(1 for path in store.rglob("*") if path.is_file())


@pytest.mark.parametrize("kills", [1, pytest.param(5, marks=pytest.mark.long)])
def test_a_job_that_is_killed_publishes_nothing_wrong(
    spark: SparkSession, tmp_path: Path, kills: int
) -> None:
    catalogue, store = tmp_path / "catalogue.sqlite", tmp_path / "store"
    names = [f"orders-{number}" for number in range(2000)]
    fill(catalogue, {"public/large": names})
    patterns = write_patterns(tmp_path / "patterns.jsonl", questions_about("public/large"))
    script = """
import sys
from broker_core_spark.batch.job import build
from broker_core_spark.batch.spark.spark_session import spark_session
with spark_session(master="local[2]") as spark:
    build(spark, catalogue=sys.argv[1], patterns=sys.argv[2], store=sys.argv[3], segment_bytes=4096, partitions=3)
"""
    command = [sys.executable, "-c", script, str(catalogue), str(patterns), str(store)]
    pick = random.Random(seed_of_the_run())
    published = 0
    for turn in range(kills):
        fill(catalogue, {"public/large": [f"later-{turn}-{number}" for number in range(300)]})
        before = files(store)
        # A job makes some 50 files: the mark, runs, assignments, segments, the manifest, the pointer.
        wanted = before + pick.randint(1, 50)
        job = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL)
        try:
            eventually_sync(
                lambda job=job, wanted=wanted: files(store) >= wanted or job.poll() is not None,  # type: ignore[misc]
                timeout=_PATIENCE,
            )
        finally:
            try:
                os.killpg(job.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # the job was done
            job.wait()
        opened = open_store(str(store))
        pointers = list(readable_pointers(opened)) if store.exists() else []
        assert published <= len(pointers) <= published + 1
        published = len(pointers)
        if pointers:
            generation = Generation.open(opened, pointers[0].generation)
            lines = (store / generation.manifest.questions.name).read_bytes().splitlines()
            assert generation.manifest.question_count == len(lines)
    build(spark, catalogue=str(catalogue), patterns=str(patterns), store=str(store), segment_bytes=4096)
    opened = open_store(str(store))
    newest, *_ = readable_pointers(opened)
    whole = Generation.open(opened, newest.generation)
    assert whole.manifest.topics == len(names) + 300 * kills
    # Killed jobs left marks, which count until their leases end. Their files go when they are old. A file that a job
    # was writing when it was killed stays for ten minutes: it may belong to a build without a mark.
    quarter_ago = time.time() - 900
    for path in (store / "marks").glob("*"):
        os.utime(path, (quarter_ago, quarter_ago))
    assert collect_garbage(opened).kept
    (store / "temporary" / f"part-{'0' * 32}").write_bytes(b"half")
    hour_ago = time.time() - 3600
    for path in store.rglob("*"):
        os.utime(path, (hour_ago, hour_ago))
    assert read_marks(opened) == []
    collected = collect_garbage(opened, keep=1, grace=timedelta(0))
    assert collected.kept == (newest.generation,)
    needed = {*(file.name for file in whole.manifest.files), f"manifests/{newest.generation}.json"}
    needed |= {
        pointer.path for pointer in readable_pointers(opened) if pointer.generation == newest.generation
    }
    needed |= {f"builds/{newest.generation}.{kind}" for kind in ("json", "parquet")}
    left = {path.relative_to(store).as_posix() for path in store.rglob("*") if path.is_file()}
    assert left == needed
    assert Generation.open(opened, newest.generation).id == newest.generation


def test_a_terminated_build_says_one_line_and_holds_no_gc_up(tmp_path: Path) -> None:
    """SIGTERM for all processes of a build, as schedulers send it: its JVM and its workers have it too."""
    catalogue, store = tmp_path / "catalogue.sqlite", tmp_path / "store"
    fill(catalogue, {"public/large": [f"orders-{number}" for number in range(2000)]})
    patterns = write_patterns(tmp_path / "patterns.jsonl", questions_about("public/large"))
    command = [sys.executable, "-m", "broker_core.cli", "spark", "build", "--master", "local[2]"]
    command += [f"--catalogue={catalogue}", f"--patterns={patterns}", f"--out={store}", "--property-keys="]
    job = subprocess.Popen(
        command,
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )

    def has_staged() -> bool:
        return any(store.glob("temporary/stage-*")) or job.poll() is not None

    eventually_sync(has_staged, timeout=_PATIENCE)
    os.killpg(job.pid, signal.SIGTERM)
    out, err = job.communicate(timeout=_PATIENCE)
    assert (job.returncode, out, err) == (
        143,
        "",
        "broker-core: spark build: ended by SIGTERM: nothing was published\n",
    )
    opened = open_store(str(store))
    assert [*opened.list("marks"), *opened.list("temporary"), *opened.list("pointers")] == []
    assert collect_garbage(opened, grace=timedelta(0)).kept == ()


#: Sends itself a signal when a module is imported: the name and the number are the first arguments.
_SIGNALLED = """
import os, sys

class Signals:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), int(number))

sys.meta_path.insert(0, Signals())
_, module, number, *sys.argv[1:] = sys.argv
from broker_core.cli import main
main()
"""


@pytest.mark.parametrize(
    ("module", "number"),
    [("broker_core_spark.batch.job", signal.SIGTERM), ("pyspark.sql", signal.SIGINT)],
    ids=["imports", "session"],
)
def test_a_signal_before_spark_starts_ends_the_build(
    tmp_path: Path, module: str, number: signal.Signals
) -> None:
    catalogue, store = tmp_path / "catalogue.sqlite", tmp_path / "store"
    fill(catalogue, {"a/b": ["t"]})
    patterns = write_patterns(tmp_path / "patterns.jsonl", [{"namespace": "a/b"}])
    command = [sys.executable, "-c", _SIGNALLED, module, str(int(number)), "spark", "build", f"--out={store}"]
    ended = subprocess.run(
        [*command, f"--catalogue={catalogue}", f"--patterns={patterns}", "--property-keys="],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (128 + number, "")
    assert ended.stderr == f"broker-core: spark build: ended by {number.name}: nothing was published\n"
    assert not [path for path in store.rglob("*") if path.is_file()]
