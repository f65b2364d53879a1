"""Java for the many small jobs of tests: a JVM that starts in little processor time.

``python -m tests.support.quick_java`` stores the classes of Spark as a JVM has loaded them (class data sharing). A JVM
that finds them starts, and builds a small generation, in three fifths of the time. With another Java, or other jars, it
loads its own.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from typing import Final

from tests.support.distributions import ROOT

__all__ = ["QUICK_JAVA", "quick_java_options"]

_ARCHIVE: Final = ROOT / ".venv" / "spark-classes.jsa"
#: A job of a test is over before the slower compiler of Java makes up for its own time.
QUICK_JAVA: Final = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_OPTIONS: Final = " ".join(QUICK_JAVA)
_JOB: Final = """
import sys
from pathlib import Path
from broker_core_spark.batch.job import build
from broker_core_spark.batch.spark.spark_session import spark_session
from tests.support.spark_catalogues import fill, questions_about, write_patterns
folder = Path(sys.argv[1])
fill(folder / "c.sqlite", {"public/large": [f"orders-{number}" for number in range(2000)]})
patterns = write_patterns(folder / "p.jsonl", questions_about("public/large"))
with spark_session(master="local[2]", conf={"spark.driver.memory": "512m"}) as spark:
    build(spark, catalogue=str(folder / "c.sqlite"), patterns=str(patterns), store=str(folder / "store"), partitions=3)
"""


def quick_java_options() -> str:
    """The value of ``SPARK_SUBMIT_OPTS``, from which the JVM of a job has its options."""
    if not _ARCHIVE.exists():
        return _OPTIONS
    # What does not fit is not said: it would stand in the output of programs.
    return f"{_OPTIONS} {shlex.quote(f'-XX:SharedArchiveFile={_ARCHIVE}')} -Xshare:auto -Xlog:disable"


def _make_archive() -> None:
    new = _ARCHIVE.with_suffix(".new")
    new.unlink(missing_ok=True)
    option = shlex.quote(f"-XX:ArchiveClassesAtExit={new}")
    with tempfile.TemporaryDirectory() as folder:
        # What is captured keeps this waiting until the JVM has ended too: it writes the file at last.
        done = subprocess.run(
            [sys.executable, "-c", _JOB, folder],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env=os.environ | {"SPARK_SUBMIT_OPTS": f"{_OPTIONS} {option}", "PYTHONPATH": str(ROOT)},
        )
    if done.returncode:
        sys.exit(done.stderr[-4000:])
    if new.exists():
        new.replace(_ARCHIVE)


if __name__ == "__main__":
    _make_archive()
