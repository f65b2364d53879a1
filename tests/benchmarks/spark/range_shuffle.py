"""``python -m tests.benchmarks.spark.range_shuffle``: two ways of bringing sorted names to the tasks of a build.

``runs`` is the batch's own way: sorted runs in the store, of which a task reads its range. ``shuffle`` is Spark's:
``repartitionByRange`` and ``sortWithinPartitions`` by the same keys. Both end with the names of a task in memory, in
order; what the task does with them is the same, and left out. Names come from a Parquet file by namespace, from one in
no order, or from an embedded catalogue, which Spark cannot read: for its own way the names are first written as a
Parquet file, in one transaction as in the batch.

Each way runs in a process of its own, with a Spark session of its own, and is repeated: the least seconds count.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from broker_core import EncodedNames
from broker_core.catalog import SqliteCatalog
from broker_core.names import NamespaceName
from broker_core_spark.batch.progress.progress import SparkJob
from broker_core_spark.batch.segments.staged_selectors import StagedSelectors
from broker_core_spark.batch.segments.task_assignment import TaskAssignment, assign_tasks, blocks_within
from broker_core_spark.batch.sources.open_catalogue import open_catalogue
from broker_core_spark.batch.sources.stage_rows import rows_by_place
from broker_core_spark.batch.spark.run_on_partitions import run_on_partitions
from broker_core_spark.batch.spark.spark_session import spark_session
from broker_core_spark.batch.staging.numbered_work import run_numbered
from broker_core_spark.batch.staging.order_keys import order_key
from broker_core_spark.batch.staging.sorted_runs import joined_names, keyed_names, read_blocks
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.store import Store
from tests.benchmarks.spark.catalogue import NAMESPACES, namespace, write_catalogue
from tests.benchmarks.spark.resident import PeakOfTree, tree_cpu

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WAYS: Final = ("runs", "shuffle")
#: A table by namespace, its rows in no order, and an embedded catalogue.
SOURCES: Final = ("topics.parquet", "unsorted.parquet", "topics.sqlite")
_GIB: Final = 1024**3
_TARGET: Final = 8 * 1024 * 1024
_TURNS: Final = 2
_ROW_GROUP: Final = 500_000
_MODULE: Final = "tests.benchmarks.spark.range_shuffle"
_NAMES: Final = tuple(namespace(number) for number in range(NAMESPACES))
_KEY: Final = pa.schema([("key", pa.binary())])


def _said(keys: pa.LargeBinaryArray) -> bytes:
    """What a task says of its names: their number, and that they are in order."""
    ordered = len(keys) < 2 or pc.all(pc.less_equal(keys[:-1], keys[1:])).as_py()
    return json.dumps([len(keys), bool(ordered)]).encode()


def read_runs(_staging: StagingArea, store: Store, _number: int, assignment: TaskAssignment) -> bytes:
    """The work of a numbered task that reads its ranges of the runs, and sorts them."""
    low, high = assignment.segments[0].low, assignment.segments[-1].high
    parts: list[pa.RecordBatch] = []
    for path, blocks in assignment.blocks.items():
        wanted = blocks_within(blocks, low, high)
        if wanted:
            keys = read_blocks(store, path, wanted, 0)["key"]
            inside = pc.greater_equal(keys, low)
            parts.append(keyed_names(keys.filter(pc.and_(inside, pc.less(keys, high)) if high else inside)))
    keys = joined_names(parts, 0)["key"]
    return _said(keys.take(pa.array(EncodedNames.sorted_rows(keys))))


def _keys_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The keys of full names."""
    for batch in batches:
        names = batch.column(0).cast(pa.large_string())
        nothing = pa.nulls(len(names), pa.large_string())
        for place, domain, local, _ in rows_by_place(names, nothing, nothing, []):
            yield pa.record_batch([order_key(place, domain, local).cast(pa.binary())], schema=_KEY)


def _read_shuffled(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """The keys of one partition, which Spark has sorted."""
    parts = [batch.column(0).cast(pa.large_binary()) for batch in batches]
    yield _said(pa.concat_arrays(parts) if parts else pa.array([], pa.large_binary()))


def by_runs(spark: SparkSession, source: str, folder: Path, tasks: int) -> list[bytes]:
    """The batch's own way."""
    staging = StagingArea(str(folder / "store"), "temporary/bench", (), _TARGET, namespaces=frozenset(_NAMES))
    with open_catalogue(source, spark=spark).snapshot() as snapshot:
        runs = snapshot.read(staging)
    assignments = assign_tasks(runs, StagedSelectors("", {}), {}, tasks=tasks)
    return run_numbered(spark, staging, assignments, read_runs, SparkJob("read runs"))


def by_shuffle(spark: SparkSession, source: str, folder: Path, tasks: int) -> list[bytes]:
    """Spark's range partitioning and sort."""
    if source.endswith(".sqlite"):
        source = str(_as_parquet(Path(source), folder / "staged.parquet"))
    keys: DataFrame = spark.read.parquet(source).mapInArrow(_keys_of, "key binary")
    frame = keys.repartitionByRange(tasks, "key").sortWithinPartitions("key")
    return run_on_partitions(frame, _read_shuffled, SparkJob("read what is shuffled"))


_BY: Final[dict[str, Callable[[Any, str, Path, int], list[bytes]]]] = {"runs": by_runs, "shuffle": by_shuffle}


def _as_parquet(catalogue: Path, file: Path) -> Path:
    """Full names of an embedded catalogue, of one transaction."""
    schema = pa.schema([("name", pa.large_string())])
    with (
        SqliteCatalog(catalogue, create=False) as opened,
        opened.state() as state,
        pq.ParquetWriter(file, schema, compression="lz4") as writer,
    ):
        for name in state.versions:
            loaded = state.names(name, "persistent", ())
            head = pa.scalar(f"persistent://{name}/", pa.large_string())
            full = pc.binary_join_element_wise(head, loaded.names, pa.scalar("", pa.large_string()))
            writer.write_table(pa.table([full], schema=schema))
    return file


def _as_sqlite(parquet: Path, file: Path) -> None:
    """An embedded catalogue of the names of a Parquet file."""
    from broker_core.catalog import import_topics

    names = pq.read_table(parquet)["name"].combine_chunks()
    with SqliteCatalog(file, create=True) as catalog:
        for name in _NAMES:
            head = f"persistent://{name}/"
            own = names.filter(pc.starts_with(names, head)).to_pylist()
            lines = "".join(f'{{"name":"{full.removeprefix(head)}"}}\n' for full in own)
            import_topics(catalog, NamespaceName.parse(name), io.BytesIO(lines.encode()))


def measure_way(way: str, source: str, topics: int, tasks: int) -> dict[str, Any]:
    """Seconds of the clock and of processors, and GiB, of one way in this process."""
    seconds: list[tuple[float, float]] = []
    said: list[list[int]] = []
    with PeakOfTree() as memory, spark_session(master="local[2]") as spark:
        spark.range(1000).mapInArrow(_unchanged, "id long").count()  # the workers are there
        for _ in range(_TURNS):
            with tempfile.TemporaryDirectory(prefix="broker-core-bench-shuffle-") as folder:
                began, worked = time.monotonic(), tree_cpu(os.getpid())
                said = [json.loads(one) for one in _BY[way](spark, source, Path(folder), tasks)]
                seconds.append((time.monotonic() - began, tree_cpu(os.getpid()) - worked))
            assert sum(count for count, _ in said) == topics
            assert all(ordered for _, ordered in said)
    return {
        "way": way,
        "source": Path(source).name,
        "topics": topics,
        "tasks": len(said),
        "most_names": max(count for count, _ in said),
        "seconds": round(min(clock for clock, _ in seconds), 1),
        "processor_seconds": round(min(work for _, work in seconds), 1),
        "resident_gib": round(memory.peak / _GIB, 2),
        "jvm_gib": round(memory.jvm / _GIB, 2),
        "worker_gib": round(memory.worker / _GIB, 2),
    }


def _unchanged(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def measure(topics: int, tasks: int) -> list[dict[str, Any]]:
    """Both ways, from all sources."""
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="broker-core-bench-shuffle-") as folder:
        sources = [Path(folder) / name for name in SOURCES]
        write_catalogue(sources[0], topics)
        names = pq.read_table(sources[0])
        in_no_order = np.random.default_rng(3).permutation(len(names))
        pq.write_table(
            names.take(pa.array(in_no_order)), sources[1], compression="zstd", row_group_size=_ROW_GROUP
        )
        del names, in_no_order
        _as_sqlite(sources[0], sources[2])
        for source in sources:
            for way in WAYS:
                command = [sys.executable, "-m", _MODULE, "--way", way, "--source", str(source)]
                command += ["--topics", str(topics), "--tasks", str(tasks)]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                results.append(json.loads(done.stdout.splitlines()[-1]))
    return results


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--topics", type=int, default=2_000_000)
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--way", choices=WAYS, help="one way alone, in this process")
    parser.add_argument("--source", help="the file of names of this way")
    given = parser.parse_args()
    if given.way:
        print(json.dumps(measure_way(given.way, given.source, given.topics, given.tasks)))
        return
    print(json.dumps(measure(given.topics, given.tasks), indent=2))


if __name__ == "__main__":
    main()
