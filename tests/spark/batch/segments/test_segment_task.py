"""Tasks make segments: repeated names, contradictory properties, groups of selectors, pieces of large stretches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from broker_core.listing.listing_hash import topics_hash
from broker_core.names import Mode
from broker_core_spark.batch.build_errors import InvalidCatalogue
from broker_core_spark.batch.segments import segment_task
from broker_core_spark.batch.segments.make_segments import joined_parts, merge_parts
from broker_core_spark.batch.segments.question_totals import question_totals
from broker_core_spark.batch.segments.segment_puts import SegmentResult
from broker_core_spark.batch.segments.segment_task import TaskResult, make_of_assignment, ordered_names
from broker_core_spark.batch.segments.staged_selectors import StagedSelectors, stage_selectors
from broker_core_spark.batch.segments.tallies import TallyBlock, read_tallies
from broker_core_spark.batch.segments.task_assignment import TaskAssignment, assign_tasks
from broker_core_spark.batch.staging.sorted_runs import SortedRun, SortedRunWriter
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.format.canonical_question import CanonicalQuestion, required_selectors
from broker_core_spark.format.manifest import Manifest
from broker_core_spark.store import Store
from tests.support.generation_builder import build_generation, stored_runs
from tests.support.generations import expected as expected_names
from tests.support.generations import memory


def texts(*values: str | None) -> pa.LargeStringArray:
    return pa.array(values, pa.large_string())


QUESTION = CanonicalQuestion.of("a/b", Mode.PERSISTENT, ".*[13]", {"k": "x"})


def run_all(staging: StagingArea, assignments: Sequence[TaskAssignment]) -> Iterator[TaskResult]:
    """The results of tasks, in any order."""
    for number, assignment in enumerate(assignments):
        yield make_of_assignment(staging, staging.open(), number, assignment)


def made(tmp_path: Path, parts: list[tuple[list[str], list[str | None]]]) -> list[TaskResult]:
    staging = StagingArea(str(tmp_path), "temporary/test", ("k",), 1 << 20)
    runs = []
    for names, values in parts:
        writer = SortedRunWriter(staging)
        writer.add("a/b", "persistent", texts(*names), [texts(*values)])
        runs += writer.finish()
    selectors = stage_selectors(staging.open(), "temporary/test-selectors", required_selectors([QUESTION]))
    return list(run_all(staging, assign_tasks(runs, selectors, {}, tasks=1)))


def test_names_that_come_twice_are_one(tmp_path: Path) -> None:
    (task,) = made(tmp_path, [(["t1", "t2", "t3"], ["x", "x", None]), (["t3", "t1", "t1"], [None, "x", "x"])])
    (result,) = task.segments
    assert result.duplicates == 3
    assert result.new
    store = StagingArea(str(tmp_path), "temporary/test", ("k",), 1 << 20).open()
    (run,) = stored_runs(store, result.entry)
    assert run.names.names.to_pylist() == ["t1", "t2", "t3"]
    assert run.postings.entries["count"].tolist() == [1]
    (total,) = question_totals([QUESTION], read_tallies(store, task.tallies))
    assert total.count == 1


def test_a_name_with_two_values_of_a_property_is_a_contradiction(tmp_path: Path) -> None:
    with pytest.raises(InvalidCatalogue, match=r"persistent://a/b/t1.*different values of the property 'k'"):
        made(tmp_path, [(["t1"], ["x"]), (["t1"], ["y"])])
    with pytest.raises(InvalidCatalogue, match="stands twice"):
        made(tmp_path / "null", [(["t1"], ["x"]), (["t1"], [None])])


CATALOGUE = {
    "a/a": {"persistent": [f"small-{number}" for number in range(40)]},
    "a/b": {
        "persistent": [f"t{number:04}" for number in range(1500)],
        "non-persistent": [f"n{number:03}" for number in range(400)],
    },
    "a/c": {"persistent": ["x", "y"]},
}
PATTERNS = [None, ".*[02468]", "a/b/t1.*", ".*77.*", ".*", "none", *(f".*{digits}" for digits in range(40))]
QUESTIONS = [
    CanonicalQuestion.of(namespace, mode, pattern)
    for namespace in CATALOGUE
    for mode in (Mode.ALL, Mode.PERSISTENT)
    for pattern in PATTERNS
]


def staged(staging: StagingArea) -> tuple[list[SortedRun], StagedSelectors]:
    """The catalogue in three runs, and the selectors of the questions."""
    pick = Random(3)
    parts: list[list[tuple[str, str, list[str]]]] = [[], [], []]
    for namespace, domains in CATALOGUE.items():
        for domain, names in domains.items():
            shuffled = pick.sample(names, len(names))
            for number, part in enumerate(parts):
                part.append((namespace, domain, shuffled[number::3]))
    runs: list[SortedRun] = []
    for part in parts:
        writer = SortedRunWriter(staging)
        for namespace, domain, names in part:
            writer.add(namespace, domain, texts(*names))
        runs += writer.finish()
    return runs, stage_selectors(staging.open(), f"{staging.folder}-selectors", required_selectors(QUESTIONS))


def whole(
    staging: StagingArea, assignments: Sequence[TaskAssignment], selectors: StagedSelectors
) -> tuple[list[SegmentResult], list[TallyBlock]]:
    """The segments of these tasks, joined if they are in parts."""
    results = list(run_all(staging, assignments))
    segments = [segment for one in results if assignments[one.number].groups == 1 for segment in one.segments]
    parts = joined_parts(assignments, results)
    if parts:
        segments += merge_parts(staging, staging.open(), 0, (parts, selectors))
    return segments, [block for one in results for block in one.tallies]


def regrouped(assignments: Sequence[TaskAssignment], groups: int) -> list[TaskAssignment]:
    """The work with all selectors in so many groups."""
    return [
        TaskAssignment(one.segments, one.blocks, one.selectors, group, groups)
        for one in assignments
        for group in range(groups)
    ]


@cache
def built_whole(largest: int | None) -> tuple[Store, Manifest]:
    """A store with the generation of the catalogue, built without tasks."""
    store = memory()
    manifest = build_generation(
        store,
        CATALOGUE,
        QUESTIONS,
        catalogue_id="static",
        segment_bytes=4096,
        largest_segment_bytes=largest,
    )
    return store, manifest


@cache
def names_of(question: CanonicalQuestion) -> list[str]:
    return expected_names(CATALOGUE, question)


@pytest.mark.parametrize(("tasks", "groups"), [(1, 1), (5, 1), (1, 4), (3, 2), (7, 9), (2, 50)])
@pytest.mark.parametrize("largest", [None, 3000])
def test_segments_and_totals_are_the_same_for_any_ranges_and_groups(
    tasks: int, groups: int, largest: int | None
) -> None:
    store, expected = built_whole(largest)
    assert any(segment.continues for segment in expected.segments)
    staging = StagingArea(store.uri, f"temporary/{tasks}-{groups}", (), 4096, largest_segment_bytes=largest)
    runs, selectors = staged(staging)
    assignments = regrouped(assign_tasks(runs, selectors, {}, tasks=tasks), groups)
    segments, blocks = whole(staging, assignments, selectors)
    entries = sorted((segment.entry for segment in segments), key=lambda entry: entry.order)
    assert entries == list(expected.segments)
    assert not any(segment.new for segment in segments)  # the store has the very files
    totals = question_totals(QUESTIONS, read_tallies(store, blocks))
    assert totals.matches > 10_000
    for total in Random(tasks).sample(totals, 15):
        names = names_of(total.question)
        assert (total.count, total.topics_hash) == (len(names), topics_hash(names)), total


@pytest.mark.parametrize("few", [0, 1, 80, 700])
@pytest.mark.parametrize("spliced", [0, 1000])
def test_names_of_several_runs_are_in_order_each_once(
    monkeypatch: pytest.MonkeyPatch, few: int, spliced: int
) -> None:
    monkeypatch.setattr(segment_task, "_SPLICED", spliced)
    store: Store = memory()
    staging = StagingArea(store.uri, f"temporary/{few}", ("k",), 1 << 20)
    names = [f"t{number:04}" for number in range(1500)]
    appended = Random(few).sample(names, few)
    runs: list[SortedRun] = []
    most = [name for name in names if name not in appended]
    for part in (most[900:], appended[::2], most[:300], most[300:900], appended[1::2] + names[7:8]):
        writer = SortedRunWriter(staging)
        writer.add("a/b", "persistent", texts(*part), [texts(*part)])
        runs += writer.finish()
    blocks = {run.path: run.blocks for run in runs}
    for low, high in ((0, 1500), (7, 8), (8, 1400)):
        within = (b"a/b\x011t%04d" % low, b"a/b\x011t%04d" % high if high < 1500 else b"")
        found, twice = ordered_names(staging.open(), blocks, within, ("k",))
        assert found["key"].to_pylist() == [b"a/b\x011" + name.encode() for name in names[low:high]]
        assert found["p0"].to_pylist() == names[low:high]
        assert twice.tolist() == ([7 - low] if low < 8 else [])
