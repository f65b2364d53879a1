"""Parts of the benchmark: its names and patterns are as described, and memory is counted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from broker_core.names import TopicName
from broker_core.patterns import compile_pattern
from tests.benchmarks.spark import goals, range_shuffle, serving
from tests.benchmarks.spark.catalogue import NAMESPACES, pattern_rows, write_catalogue
from tests.benchmarks.spark.resident import PeakOfTree, tree_cpu, tree_pss


def test_one_namespace_has_half_of_all_names(tmp_path: Path) -> None:
    write_catalogue(tmp_path / "topics.parquet", 2001)
    names = pq.read_table(tmp_path / "topics.parquet")["name"].to_pylist()
    assert len(set(names)) == 2001
    counts: dict[str, int] = {}
    for name in names:
        namespace = str(TopicName.parse(name).namespace)
        counts[namespace] = counts.get(namespace, 0) + 1
    assert len(counts) == NAMESPACES
    assert max(counts.values()) == 1000


def test_patterns_are_such_that_brokers_run_them() -> None:
    rows = list(pattern_rows(1020))
    assert all(compile_pattern(row["pattern"]).supported for row in rows)
    assert len({(row["namespace"], row["pattern"]) for row in rows}) > 900
    assert rows == list(pattern_rows(1020))


def test_memory_and_work_of_a_tree() -> None:
    with PeakOfTree() as memory:
        assert tree_pss(os.getpid()) > 10_000_000
    assert memory.peak >= 0
    assert tree_cpu(os.getpid()) > 0


def test_goals_stand_beside_what_was_measured() -> None:
    results: dict[str, Any] = {
        "batch": {"topics": 5_000_000, "patterns": 1020, "job_seconds": 44.0, "resident_gib": 3.6},
        "ratio": {"topics": 200_000, "patterns": 1020, "ratio": 20.0, "same_counts": True},
        "serving": [
            {"what": "errors", "value": 1.0, "unit": "", "at_most": 0},
            {"what": "opened", "value": 1.0, "unit": "s"},
        ],
    }
    rows = goals.of(results)
    assert [goals.met(row) for row in rows] == [True, False, True, True, False, None]
    table = goals.lines(rows)
    assert len(table) == 1 + len(rows)
    assert [line.rpartition(" ")[2] for line in table] == ["met", "yes", "NO", "yes", "yes", "NO", "s"]
    results["batch"]["topics"] = 1000
    assert goals.met(goals.of(results)[0]) is None


def test_serving_is_measured() -> None:
    rows = serving.measure(small=True)
    goal = [row["what"] for row in rows if goals.met(row) is not None]
    assert len(goal) >= 6
    # What no load of the machine changes.
    assert {row["what"]: goals.met(row) for row in rows}["wrong answers and errors meanwhile"]


@pytest.mark.long
def test_both_ways_bring_all_names_to_the_tasks() -> None:
    results = range_shuffle.measure(20_000, 3)
    assert [(result["source"], result["way"]) for result in results] == [
        (source, way) for source in range_shuffle.SOURCES for way in range_shuffle.WAYS
    ]
    assert all(result["most_names"] <= 20_000 for result in results)
