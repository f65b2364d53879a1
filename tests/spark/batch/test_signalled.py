"""Builds that a signal ends at random moments: one line, the exit code of shells, and nothing is left.

``BROKER_CORE_TEST_SIGNALS=40`` ends more builds than five.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from broker_core_spark.store import open_store
from broker_core_spark.store.published_pointers import readable_pointers
from tests.support.eventually import eventually_sync
from tests.support.forked_run import seed_of_the_run
from tests.support.spark_catalogues import fill, questions_about, write_patterns

SIGNALS = int(os.environ.get("BROKER_CORE_TEST_SIGNALS", "5"))
_PATIENCE = 300  # seconds; a JVM starts in this time


def of_session(leader: int) -> list[str]:
    """The command lines of the processes of a session that have not ended."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, _, _, session = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(session) == leader and state != "Z":
                    found.append((entry / "cmdline").read_text().replace("\0", " ")[:200])
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def is_sum(path: Path) -> bool:
    """Whether a file has the sum of another one, which is there."""
    return path.suffix == ".crc" and path.with_name(path.name[1:].removesuffix(".crc")).is_file()


def left_by(folder: Path) -> list[str]:
    """Files of a build that is not under way any more, which none may leave."""
    out = folder / "out"
    # Spark keeps a sum of each file on a disk beside it, and what it writes in `_temporary` until a table is whole. An
    # interrupted export may leave that folder: docs/reference/spark.md#exported-table
    found = [path for path in out.rglob(".*") if "_temporary" not in path.parts]
    left = [str(path) for path in found if not is_sum(path)]
    for part in ("marks", "temporary"):
        left += [str(path) for path in (out / "store" / part).glob("*")]
    return left


@pytest.mark.long
def test_a_signal_at_any_moment_leaves_nothing(tmp_path: Path) -> None:
    catalogue, out = tmp_path / "catalogue.sqlite", tmp_path / "out"
    out.mkdir()
    fill(catalogue, {"public/large": [f"orders-{number}" for number in range(2000)]})
    rows = [row for row in questions_about("public/large") if row["pattern"] != "(?=ahead)"]
    patterns = write_patterns(tmp_path / "patterns.jsonl", rows)
    command = [
        sys.executable,
        "-m",
        "broker_core.cli",
        "spark",
        "build",
        "--master",
        "local[2]",
        "--incremental",
    ]
    command += [f"--catalogue={catalogue}", f"--patterns={patterns}", "--property-keys="]
    command += [f"--out={out}/store", f"--report={out}/report.html", f"--export-parquet={out}/totals.parquet"]
    command += [f"--export-matches={out}/matches", f"--history={out}/history", f"--metrics={out}/build.prom"]
    seed = seed_of_the_run()
    pick = random.Random(seed)
    longest, published = 0.0, 0
    for turn in range(SIGNALS + 1):
        fill(catalogue, {"public/large": [f"later-{turn}-{number}" for number in range(100)]})
        began = time.monotonic()
        job = subprocess.Popen(
            command,
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        number, to_all, moment = (
            pick.choice((signal.SIGTERM, signal.SIGINT)),
            pick.random() < 0.5,
            pick.random(),
        )
        said = f"seed {seed}, turn {turn}: {number.name} after {moment * longest:.2f} s"
        try:
            # The first one shows how long a build takes.
            outputs = job.communicate(timeout=moment * longest if turn else _PATIENCE)
        except subprocess.TimeoutExpired:
            (os.killpg if to_all else os.kill)(job.pid, number)
            outputs = job.communicate(timeout=_PATIENCE)
        longest = longest or time.monotonic() - began
        pointers = (
            list(readable_pointers(open_store(f"{out}/store"))) if out.joinpath("store").exists() else []
        )
        assert published <= len(pointers) <= published + 1, said
        is_published = len(pointers) == published + 1
        published = len(pointers)
        # The first build has nothing to keep, and says so.
        lines = [line for line in outputs[1].splitlines() if "built in full: no generation" not in line]
        result = f"{pointers[0].generation[:12]} is published" if is_published else "nothing was published"
        by_signal = (f": spark build: ended by {number.name}: {result}", f": ended by {number.name}")
        if job.returncode == 0:
            assert (outputs[0].count("\n"), lines, is_published) == (1, [], True), said
        elif job.returncode == -number:
            assert lines == [], said  # the interpreter starts, or has ended: nobody is there to say a line
        else:
            assert job.returncode == 128 + number, (said, outputs)
            assert lines in [[f"broker-core{line}"] for line in by_signal], said
        assert left_by(tmp_path) == [], said
        eventually_sync(lambda job=job: not of_session(job.pid), timeout=_PATIENCE)  # type: ignore[misc]
