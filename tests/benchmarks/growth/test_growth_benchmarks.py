"""The benchmark of growth: its topics give the matches it promises, it runs from end to end, and it fails clearly."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from broker_core.catalog.store.schema import SCHEMA_VERSION
from tests.benchmarks.growth.__main__ import main
from tests.benchmarks.growth.asking import Asking, changed_topics
from tests.benchmarks.growth.catalogues import Catalogues
from tests.benchmarks.growth.figures import FIGURES, PARTS, best_of, shown
from tests.benchmarks.growth.names_columns import properties_of, write_names, write_properties
from tests.benchmarks.growth.process_usage import is_running, watched_growth
from tests.benchmarks.growth.report import draw, put_into_page, report
from tests.benchmarks.growth.trees import ROOT, BenchmarkFailed, Tree
from tests.benchmarks.names import local_name, local_names
from tests.benchmarks.processes import cpu_seconds, resident
from tests.benchmarks.wire_client import RawClient

SIZE = 10_000


@pytest.fixture(scope="module")
def catalogues(tmp_path_factory: pytest.TempPathFactory) -> Catalogues:
    folder = tmp_path_factory.mktemp("growth")
    return Catalogues(folder / "cache", folder / "work", print)


def test_names_made_as_columns_are_the_names_of_the_benchmark(tmp_path: Path) -> None:
    file = tmp_path / "names.txt"
    write_names(file, SIZE)
    assert file.read_text().splitlines() == list(local_names(SIZE))


def test_a_tenth_of_the_topics_has_properties(tmp_path: Path) -> None:
    file = tmp_path / "properties.jsonl"
    write_properties(file, SIZE)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == SIZE // 10
    assert lines[7] == {"name": local_name(70, SIZE), "properties": properties_of(70)}


def test_changes_are_made_where_no_range_is_asked_for() -> None:
    changed = changed_topics(SIZE)
    assert len(set(changed)) == len(changed)
    assert set(changed) <= set(local_names(SIZE))
    asking = Asking.__new__(Asking)
    asking.size, asking.server = SIZE, None  # type: ignore[assignment]
    asking.__post_init__()
    for turn in range(SIZE // 20):
        (prefix,) = re.findall(rb"device-\d{6}", asking.range_frame(turn))
        assert not any(name.startswith(prefix.decode()) for name in changed)


def test_the_processor_time_and_memory_of_a_process_are_read() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert is_running(process.pid)
        assert resident(process.pid) > 0
        begun = cpu_seconds(os.getpid())
        with watched_growth(os.getpid()) as grown:
            held = bytes(range(256)) * 200_000
        assert cpu_seconds(os.getpid()) > begun
        assert grown.most > len(held) // 2
        process.kill()
        process.wait()
    assert not is_running(process.pid)
    with pytest.raises(ProcessLookupError, match="has ended"):
        cpu_seconds(process.pid)
    with pytest.raises(ProcessLookupError, match="has ended"):
        resident(process.pid)


def test_of_several_rounds_times_are_the_least_and_memory_is_the_most() -> None:
    rounds = [{"create cpu": 0.002, "memory": 5e6}, {"create cpu": 0.001, "memory": 8e6}]
    best = best_of("changes", rounds)
    assert best == {"create cpu": 0.001, "memory": 8e6}
    assert [shown(FIGURES["changes", name], best[name]) for name in best] == ["1.00", "8.00"]
    assert shown(FIGURES["restart", "cold ready"], 12.3456) == "12,346"
    assert shown(FIGURES["restart", "cold ready"], None) == ""


def _results(*labels: str) -> dict[str, Any]:
    found = {
        label: {
            part: {figure.name: number / figure.scale for figure in figures}
            for part, figures in PARTS.items()
            if part != "namespaces"
        }
        for number, label in enumerate(labels, 1)
    }
    return {
        "machine": "a machine",
        "load_average": [[1.0, 1.0, 1.0], [2.0, 2.0, 2.0]],
        "trees": dict.fromkeys(labels, "c0ffee"),
        "sizes": {"10000": found, "1000000": found},
        "namespaces": {},
    }


def test_the_report_of_two_trees_has_their_ratios() -> None:
    text = report(_results("this tree", "against"))
    assert "| 10,000 topics, this tree | 10,000 topics, against | ratio |" in text
    (row,) = re.findall(r"^\| after a deleted topic, CPU .*$", text, re.MULTILINE)
    assert row == ("| after a deleted topic, CPU | ms | 1.00 | 2.00 | 0.50x | 1.00 | 2.00 | 0.50x | 1.5 |")
    assert "Many small namespaces" not in text
    assert row.removesuffix(" 1.5 |") in report(_results("this tree", "against"), goals=False).splitlines()


def test_a_page_has_the_tables_of_the_last_run_in_the_place_of_its_own(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "| a | table above |\n\nText.\n\nA machine. Load average before and after: 1.\n\n| old |\n\nEnd.\n"
    )
    for label in ("first", "second"):
        results = _results(label)
        put_into_page(results, page)
        tables = report(results, goals=False).rstrip("\n")
        assert page.read_text() == f"| a | table above |\n\nText.\n\n{tables}\n\nEnd.\n"
    page.write_text("| a | table above |\n\nText.\n")
    with pytest.raises(ValueError, match="has no tables"):
        put_into_page(_results("first"), page)


def test_the_page_of_growth_has_tables_to_replace(tmp_path: Path) -> None:
    page = tmp_path / "growth.md"
    own = (ROOT / "docs/explanation/growth.md").read_text()
    page.write_text(own)
    put_into_page(_results("this tree"), page)
    made = page.read_text()
    assert made.partition("## What grows")[0] == own.partition("## What grows")[0]
    assert made.partition("## How it is measured")[2] == own.partition("## How it is measured")[2]
    assert "c0ffee" in made


def test_the_plot_is_the_same_for_the_same_figures(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        draw(_results("this tree"), tmp_path / name)
    drawn = (tmp_path / "one.svg").read_text()
    assert drawn == (tmp_path / "two.svg").read_text()
    assert "topics in the namespace" in drawn


def test_a_folder_without_the_package_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BenchmarkFailed, match="has no package broker_core"):
        Tree("against", tmp_path).check()


def test_a_program_that_fails_ends_the_benchmark_with_what_it_said() -> None:
    with pytest.raises(BenchmarkFailed, match="KeyError: 'catalog'"):
        Tree("this tree", ROOT).program("one_change")


def test_a_server_that_ends_is_named_with_its_log(catalogues: Catalogues) -> None:
    made = catalogues.of_topics(SIZE)
    tree = Tree("this tree", ROOT)
    with (
        catalogues.copy(made) as catalog,
        pytest.raises(BenchmarkFailed, match=r"the server has ended.*\n.*ready"),
        tree.server(catalog) as server,
        closing(RawClient(server.address)) as client,
    ):
        asking = Asking(server, SIZE)
        assert asking.spent(client, asking.new_range()).size > 0
        os.kill(server.pid, signal.SIGKILL)
        asking.spent(client, asking.new_range())


def test_a_size_without_known_answers_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--sizes", "10000,12345"])
    assert "12,345 is no power of ten" in capsys.readouterr().err


@pytest.mark.long
def test_it_reports_a_short_run(catalogues: Catalogues, tmp_path: Path) -> None:
    output, plot = tmp_path / "results.json", tmp_path / "growth.svg"
    cache = catalogues.of_topics(SIZE).parent
    command = [sys.executable, "-m", "tests.benchmarks.growth", "--sizes", str(SIZE), "--namespaces", "30"]
    effort = ["--seconds", "0.5", "--repeats", "2", "--random-changes", "3000"]
    effort += ["--cache", str(cache), "--plot", str(plot)]
    done = subprocess.run(
        [*command, *effort, "--output", str(output)], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(output.read_text())
    found = {**results["sizes"][str(SIZE)]["this tree"], **results["namespaces"]["30"]["this tree"]}
    assert {part: set(figures) for part, figures in found.items()} == {
        part: {figure.name for figure in figures} for part, figures in PARTS.items()
    }
    assert report(results) in done.stdout
    assert output.with_suffix(".md").read_text() == report(results, goals=False) + "\n"
    assert "topics in the namespace" in plot.read_text()
    assert sorted(path.name for path in cache.iterdir()) == [
        f"namespaces-30-1-{SCHEMA_VERSION}.sqlite",
        f"topics-10000-1-{SCHEMA_VERSION}.sqlite",
    ]
    subprocess.run([*command, "--cache", str(cache), "--clean"], check=True, timeout=60)
    assert not cache.exists()
