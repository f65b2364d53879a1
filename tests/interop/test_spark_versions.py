"""The batch on each release of PySpark that it names, and the refusal of an older one."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker_core.testing import serve
from broker_core_spark.format.manifest import Manifest
from broker_core_spark.plugin import SparkPlugin
from broker_core_spark.store import open_store
from broker_core_spark.store.stored_manifest import read_manifest
from tests.support.spark_catalogues import expected_generation, fill, questions_about, write_patterns
from tests.support.spark_versions import PySparkUnavailable, environment_with, pyspark_release

pytestmark = pytest.mark.interop

NAMESPACE = "public/large"
#: The last release of each line that the batch runs on, but for the installed one.
SUPPORTED = ("4.0.5", "4.1.4", "4.2.1")
REFUSED = "3.5.9"
SEGMENT_BYTES = 8192
NAMES = [f"orders-{number}" for number in range(3000)]
ADDED = {"namespace": NAMESPACE, "mode": "ALL", "pattern": ".*-1[0-9]*5"}

#: Builds a catalogue, a Parquet file of the same names, and the catalogue once more after a change: incrementally.
_JOB = """
import json, sys
from pathlib import Path
from broker_core_spark.batch.job import build
from broker_core_spark.batch.spark.spark_session import spark_session
from tests.support.spark_catalogues import fill
folder, size = Path(sys.argv[1]), int(sys.argv[2])
def built(catalogue, patterns, store, **options):
    options |= {"partitions": 3, "segment_bytes": size, "property_keys": ()}
    return build(spark, catalogue=str(folder / catalogue), patterns=str(folder / patterns), store=str(folder / store),
                 **options).record()
with spark_session(master="local[2]", conf={"spark.driver.memory": "512m"}) as spark:
    records = [built("c.sqlite", "before.jsonl", "store"), built("c.parquet", "before.jsonl", "of-parquet")]
    fill(folder / "c.sqlite", {"public/large": ["orders-2000x"]})
    records.append(built("c.sqlite", "after.jsonl", "store", incremental=True))
    print(json.dumps({"version": spark.version, "records": records}))
"""


def environment(version: str) -> dict[str, str]:
    try:
        return environment_with(pyspark_release(version))
    except PySparkUnavailable as error:
        pytest.skip(str(error))


def expected(folder: Path, names: list[str], patterns: str) -> Manifest:
    """The generation that a process makes from names. Its id is of another catalogue."""
    folder.mkdir()
    fill(folder / "c.sqlite", {NAMESPACE: names})
    return expected_generation(
        folder / "c.sqlite", folder.parent / patterns, folder / "store", segment_bytes=SEGMENT_BYTES
    )


@pytest.mark.parametrize("version", SUPPORTED)
def test_builds_are_the_same_on_each_release_and_are_served(version: str, tmp_path: Path) -> None:
    fill(tmp_path / "c.sqlite", {NAMESPACE: NAMES})
    full = pa.array([f"persistent://{NAMESPACE}/{name}" for name in NAMES])
    pq.write_table(pa.table({"topic": full}), tmp_path / "c.parquet")
    questions = questions_about(NAMESPACE)
    write_patterns(tmp_path / "before.jsonl", questions)
    write_patterns(tmp_path / "after.jsonl", [*questions, ADDED])
    done = subprocess.run(
        [sys.executable, "-c", _JOB, str(tmp_path), str(SEGMENT_BYTES)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env=environment(version),
    )
    assert done.returncode == 0, done.stderr[-4000:]
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert said["version"] == version
    before, of_parquet, after = said["records"]
    assert after["segments_kept"] > 0
    changed = [*NAMES, "orders-2000x"]
    for record, names, patterns, store in (
        (before, NAMES, "before.jsonl", "store"),
        (of_parquet, NAMES, "before.jsonl", "of-parquet"),
        (after, changed, "after.jsonl", "store"),
    ):
        wanted = expected(tmp_path / f"{record['generation']}-expected", names, patterns)
        made = read_manifest(open_store(str(tmp_path / store)), record["generation"])
        assert made.segments == wanted.segments
    asyncio.run(check_served(tmp_path, changed))


async def check_served(folder: Path, names: list[str]) -> None:
    """A broker answers from the generation that was built last."""
    plugin = SparkPlugin()
    tables: dict[str, dict[str, Any]] = {
        "catalog": {"path": str(folder / "c.sqlite")},
        "plugins": {"spark": {"store": str(folder / "store"), "refresh": "1h"}},
    }
    async with serve({"spark": plugin}, settings=tables) as server:
        for mode in ("PERSISTENT", "ALL"):
            answer = await server.list(NAMESPACE, pattern=f"persistent://{NAMESPACE}/orders-.*", mode=mode)
            assert sorted(answer.topics) == sorted(f"persistent://{NAMESPACE}/{name}" for name in names)
        assert plugin.lister.counts.answers["served"] == 2


def test_an_older_release_is_refused_at_the_start(tmp_path: Path) -> None:
    fill(tmp_path / "c.sqlite", {NAMESPACE: ["a"]})
    patterns = write_patterns(tmp_path / "patterns.jsonl", questions_about(NAMESPACE))
    done = subprocess.run(
        [
            *(Path(sys.executable).with_name("broker-core"), "spark", "build"),
            *("--catalogue", str(tmp_path / "c.sqlite"), "--patterns", str(patterns)),
            *("--out", str(tmp_path / "store")),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=environment(REFUSED),
    )
    assert done.returncode == 1, done.stderr
    assert "PySpark is 3.5.9: the batch runs on 4.0 to 4.3." in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "store").exists()
