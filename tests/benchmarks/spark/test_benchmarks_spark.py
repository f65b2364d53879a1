"""The benchmark's own parts: its names and patterns are what they say, and memory is counted."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.parquet as pq

from broker_core.names import TopicName
from broker_core.patterns import compile_pattern
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
