"""The benchmark of the Postgres plugin: its topics give the matches it promises, and it runs from end to end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.benchmarks.postgres.devices import Devices


def test_devices_give_the_matches_that_questions_promise() -> None:
    devices = Devices(10_000, line=100)
    names = [devices.local_name(number) for number in range(devices.size)]
    assert len(set(names)) == devices.size
    assert {len(name) for name in names} == {40}
    for turn in (0, 1, 50):
        assert sum(name.startswith(devices.line_prefix(turn)) for name in names) == 100
        assert sum(name.startswith(devices.plant_prefix(turn)) for name in names) == 3_100
        assert sum(devices.tag(turn) in name for name in names) == 100
        assert devices.exact(turn).rpartition("/")[2] in names
    pairs = Counter(
        tuple(sorted(devices.properties(number).items() - {("owner", f"o{number % 7}")}))
        for number in range(devices.size)
    )
    assert set(pairs.values()) == {100}
    assert set(pairs) == {
        tuple(sorted(devices.team_and_region(turn).items())) for turn in range(devices.lines)
    }
    for question in (devices.line_prefix, devices.tag, devices.exact):
        assert len({question(turn) for turn in range(devices.lines)}) == devices.lines


@pytest.mark.long
def test_it_reports_a_short_run(tmp_path: Path) -> None:
    output, plot = tmp_path / "results.json", tmp_path / "growth.svg"
    command = [sys.executable, "-m", "tests.benchmarks.postgres", "--sizes", "1000,2000"]
    effort = [
        "--line",
        "10",
        "--quick-from",
        "2000",
        "--rounds",
        "1",
        "--seconds",
        "0.02",
        "--many-seconds",
        "0.1",
        "--no-peer",
    ]
    done = subprocess.run(
        [*command, *effort, "--output", str(output), "--plot", str(plot)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(output.read_text())
    assert list(results["sizes"]) == ["1000", "2000"]
    assert set(results["sizes"]["2000"]["questions"]) == {
        "exact name",
        "10 by prefix",
        "310 by prefix",
        "10 by two properties",
        "10 by infix",
        "unchanged hash of all",
        "all",
    }
    assert results["clients"]["pgbench"]["per_second"] > 0
    assert results["sizes"]["1000"]["load"]["load"] > 0
    for word in ("by infix", "COPY", "64 clients", "Resident"):
        assert word in done.stdout
    assert "topics in the namespace" in plot.read_text()
