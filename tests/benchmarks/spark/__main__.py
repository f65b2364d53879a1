"""``make bench-spark``: time and memory of a batch, its ratio against an ``rlike`` cross join, and serving, in one run.

Options: ``--topics 5000000 --patterns 1020 --join-topics 200000 --no-join --no-order --no-increments --no-serving
--small --output FILE``. The
large cases are ``--topics 20000000 --patterns 200``, ``--topics 2000000 --questions 84000``, where all questions are
different, and ``--topics 2000000 --questions 4000 --segments 10000``, each with ``--no-join --no-serving``.

Seconds of the machine's processors stand beside those of the clock: on a machine that does other work too, only they
mean something. After the JSON comes, on
stderr, a table of what was measured beside its goals.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from broker_core_spark.batch.job import BuildResult, build
from broker_core_spark.batch.spark.spark_session import spark_session
from broker_core_spark.format.segment_boundaries import SEGMENT_BYTES
from tests.benchmarks.processes import machine
from tests.benchmarks.progress import say
from tests.benchmarks.spark import goals, increments, serving, table_order
from tests.benchmarks.spark.catalogue import distinct_rows, pattern_rows, write_catalogue, write_patterns
from tests.benchmarks.spark.cross_join import cross_join
from tests.benchmarks.spark.resident import PeakOfTree, tree_cpu

GIB = 1024**3
#: Bytes of a full name of the catalogue, on average.
_NAME_BYTES = 55


def main() -> None:
    """Measure and print."""
    options = _options()
    with tempfile.TemporaryDirectory(prefix="broker-core-bench-spark-") as folder:
        results = _measure(Path(folder), options)
    if options.serving:
        say("serving")
        results["serving"] = serving.measure(small=options.small)
    print(json.dumps(results, indent=2), flush=True)
    print("\n".join(goals.lines(goals.of(results))), file=sys.stderr)
    if options.output:
        options.output.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


def _measure(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    results: dict[str, Any] = {"machine": machine(), "load": os.getloadavg()[0]}
    catalogue, patterns = folder / "topics.parquet", folder / "patterns.jsonl"
    requested = options.questions or options.patterns
    say(f"making {options.topics:,} topics")
    write_catalogue(catalogue, options.topics)
    write_patterns(patterns, distinct_rows(requested) if options.questions else pattern_rows(requested))
    size = SEGMENT_BYTES if options.segments is None else options.topics * _NAME_BYTES // options.segments
    with spark_session(master=options.master) as spark:
        spark.range(1000).mapInArrow(_unchanged, "id long").count()  # the workers are there
        say(f"the batch: {options.topics:,} topics x {requested:,} patterns")
        began, worked = time.monotonic(), tree_cpu(os.getpid())
        # The watch takes 0.04 s of this process a look, so it ends before processor time of swaps is measured.
        with PeakOfTree() as memory:
            result = build(
                spark,
                catalogue=str(catalogue),
                patterns=str(patterns),
                store=str(folder / "store"),
                segment_bytes=size,
                partitions=options.partitions,
            )
        results["batch"] = {
            "topics": options.topics,
            "patterns": requested,
            "questions": len(result.totals),
            "matches": result.totals.matches,
            "generation": result.generation,
            "job_seconds": round(time.monotonic() - began, 1),
            "processor_seconds": round(tree_cpu(os.getpid()) - worked, 1),
            "seconds": result.record()["seconds"],
            "segments": len(result.manifest.segments),
            "tasks": result.tasks,
            "task_seconds": _spread(result.task_seconds),
            "resident_gib": round(memory.peak / GIB, 2),
            "driver_gib": round(memory.driver / GIB, 2),
            "jvm_gib": round(memory.jvm / GIB, 2),
            "worker_gib": round(memory.worker / GIB, 2),
        }
        if options.join:
            results["ratio"] = _ratio(folder, options, spark)
        if options.order:
            results["order"] = table_order.measure(
                spark, catalogue, patterns, folder, segment_bytes=size, partitions=options.partitions
            )
        if options.increments:
            results["increments"] = increments.measure(
                spark, catalogue, patterns, folder, segment_bytes=size, partitions=options.partitions
            )
    if options.increments:
        results["increments"] += increments.measure_commands(folder)
    return results


def _spread(seconds: Sequence[float]) -> dict[str, float]:
    """The median and the longest of the tasks that make segments, in seconds of a processor."""
    return {"median": round(statistics.median(seconds), 2), "longest": round(max(seconds), 2)}


def _unchanged(batches: Iterator[Any]) -> Iterator[Any]:
    yield from batches


def _ratio(folder: Path, options: argparse.Namespace, spark: Any) -> dict[str, Any]:
    """Both ways over the same small catalogue; pairs are names times the patterns of their namespace."""
    say(f"the cross join: {options.join_topics:,} topics x {options.join_patterns:,} patterns")
    catalogue, patterns = folder / "small.parquet", folder / "small.jsonl"
    write_catalogue(catalogue, options.join_topics)
    write_patterns(patterns, pattern_rows(options.join_patterns))
    seconds: list[float] = []
    result: BuildResult | None = None
    for turn in range(3):
        began = time.monotonic()
        result = build(
            spark, catalogue=str(catalogue), patterns=str(patterns), store=str(folder / f"small-{turn}")
        )
        seconds.append(time.monotonic() - began)
    assert result is not None
    joined, counts = cross_join(spark, catalogue, patterns)
    ours = {
        (total.question.namespace, total.question.selector.pattern or ".*"): total.count
        for total in result.totals
        if total.count
    }
    return {
        "topics": options.join_topics,
        "patterns": options.join_patterns,
        "cross_join_seconds": round(joined, 1),
        "batch_seconds": round(min(seconds), 2),
        "ratio": round(joined / min(seconds), 1),
        "same_counts": ours == counts,
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.spark", description=__doc__)
    parser.add_argument("--topics", type=int, default=5_000_000, help="names of the batch (%(default)s)")
    parser.add_argument("--patterns", type=int, default=1020, help="its patterns (%(default)s)")
    parser.add_argument("--questions", type=int, help="so many different patterns instead")
    parser.add_argument("--segments", type=int, help="about so many segments, smaller ones than usual")
    parser.add_argument("--partitions", type=int, help="the most tasks of a stage")
    parser.add_argument(
        "--join-topics",
        type=int,
        default=200_000,
        help="names of the comparison (%(default)s): with fewer the batch's own fixed costs, some 1.3 s, weigh more "
        "than its work, and the ratio is of them (19.6 at 100,000)",
    )
    parser.add_argument("--join-patterns", type=int, default=1020, help="its patterns (%(default)s)")
    parser.add_argument("--no-join", dest="join", action="store_false", help="without the comparison")
    parser.add_argument(
        "--no-increments", dest="increments", action="store_false", help="without increments and swaps"
    )
    parser.add_argument(
        "--no-order", dest="order", action="store_false", help="without an unsorted table beside a sorted one"
    )
    parser.add_argument("--no-serving", dest="serving", action="store_false", help="the batch alone")
    parser.add_argument("--small", action="store_true", help="serve less, to see that it works")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--output", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
