"""Assignments: every key is in one segment, every block where it is needed, and the work is shared equally."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from broker_core_spark.batch.segments.staged_selectors import StagedSelectors
from broker_core_spark.batch.segments.task_assignment import (
    NamespaceCost,
    TaskAssignment,
    assign_tasks,
    blocks_within,
    equal_shares,
)
from broker_core_spark.batch.staging.order_keys import order_key
from broker_core_spark.batch.staging.sorted_runs import RunBlock, SortedRun

NOTHING = StagedSelectors("nowhere", {})


def key(number: int) -> bytes:
    column = pa.array([f"{number:06}"], pa.large_string())
    found: bytes = order_key("a/b", "persistent", column)[0].as_py()
    return found


def runs_of(pick: random.Random, runs: int = 4, names: int = 2000) -> list[tuple[SortedRun, list[bytes]]]:
    made = []
    for number in range(runs):
        keys = sorted(key(pick.randrange(5000)) for _ in range(names))
        blocks = tuple(
            RunBlock(keys[at], at, min(at + 50, names), min(50, names - at)) for at in range(0, names, 50)
        )
        cuts = tuple(sorted({each for each in keys if int(each[-6:]) % 100 == 0}))
        made.append((SortedRun(f"temporary/{number}", blocks, cuts), keys))
    return made


@pytest.mark.parametrize("tasks", [1, 3, 16, 1000])
def test_each_segment_gets_all_of_its_keys_and_no_other(tasks: int) -> None:
    made = runs_of(random.Random(1))
    every = [run for run, _ in made]
    assignments = assign_tasks(every, NOTHING, {}, tasks=tasks)
    assignments.sort(key=lambda assignment: assignment.segments[0].low)
    segments = [part for assignment in assignments for part in assignment.segments]
    assert [part.high for part in segments[:-1]] == [part.low for part in segments[1:]]
    assert (segments[0].low, segments[-1].high) == (b"", b"")
    assert len(segments) == 1 + len({cut for run in every for cut in run.segment_starts})
    assert len(assignments) <= min(tasks, len(segments))
    read: list[bytes] = []
    for assignment in assignments:
        low, high = assignment.segments[0].low, assignment.segments[-1].high
        for run, keys in made:
            blocks = assignment.blocks.get(run.path, ())
            held = [each for block in blocks for each in keys[block.start : block.stop]]
            read += [each for each in held if each >= low and (not high or each < high)]
    assert sorted(read) == sorted(each for _, keys in made for each in keys)


def test_one_namespace_with_most_names_is_shared_out() -> None:
    made = [run for run, _ in runs_of(random.Random(2))]
    assignments = assign_tasks(made, NOTHING, {"a/b": NamespaceCost(1000, 1e-6)}, tasks=8)
    assert len(assignments) == 8
    sizes = [sum(part.rows for part in assignment.segments) for assignment in assignments]
    assert max(sizes) < 2 * sum(sizes) / len(sizes)


def test_a_window_is_planned_alone() -> None:
    made = runs_of(random.Random(3))
    key_ranges = ((key(1000), key(1500)), (key(4000), b""))
    assignments = assign_tasks([run for run, _ in made], NOTHING, {}, tasks=2, key_ranges=key_ranges)
    assignments.sort(key=lambda assignment: assignment.segments[0].low)
    bounds = [(part.low, part.high) for assignment in assignments for part in assignment.segments]
    assert bounds[0][0] == key(1000)
    assert (key(1400), key(1500)) in bounds
    assert bounds[-1][1] == b""
    assert all(not high or high <= key(1500) or low >= key(4000) for low, high in bounds)


def test_equal_keys_may_lie_on_both_sides_of_a_block() -> None:
    blocks = [
        RunBlock(key(1), 0, 1, 1),
        RunBlock(key(2), 1, 2, 1),
        RunBlock(key(2), 2, 3, 1),
        RunBlock(key(3), 3, 4, 1),
    ]
    assert blocks_within(blocks, key(2), key(3)) == blocks[0:3]
    assert blocks_within(blocks, b"", b"") == blocks
    assert blocks_within(blocks, key(4), b"") == blocks[3:]


def test_without_names_there_are_no_tasks() -> None:
    assert assign_tasks([], NOTHING, {}) == []
    assert assign_tasks([SortedRun("", (), (), {("a/b", "persistent"): 1}, 1)], NOTHING, {}) == []


def namespaces(rows: dict[str, int]) -> SortedRun:
    """A run with a segment for every hundred names of these namespaces."""
    keys: list[bytes] = []
    for namespace in sorted(rows):
        names = pa.array([f"{number:06}" for number in range(rows[namespace])], pa.large_string())
        keys += order_key(namespace, "persistent", names).to_pylist()
    blocks = tuple(RunBlock(keys[at], at, at + 10, min(10, len(keys) - at)) for at in range(0, len(keys), 10))
    counts = {(namespace, "persistent"): count for namespace, count in rows.items()}
    return SortedRun("temporary/1", blocks, tuple(keys[::100]), counts)


def work_of(assignment: TaskAssignment, costs: dict[str, NamespaceCost]) -> float:
    """Seconds of matching: all names here are those of the namespace that a segment begins with."""
    return sum(
        part.rows * costs[part.low.partition(b"\x01")[0].decode() or "a/a"].seconds / assignment.groups
        for part in assignment.segments
    )


@pytest.mark.parametrize("tasks", [4, 10, 40, None])
def test_selectors_of_heavy_segments_are_shared_out(tasks: int | None) -> None:
    costs = {
        "a/a": NamespaceCost(10, 1e-7),
        "a/b": NamespaceCost(60_000, 0.03),
        "a/c": NamespaceCost(3, 1e-8),
    }
    run = namespaces({"a/a": 4000, "a/b": 3000, "a/c": 2000})
    assignments = assign_tasks([run], NOTHING, costs, tasks=tasks)
    if tasks is not None:
        # Eight groups of selectors are needed, and the light namespaces have a task each at least.
        assert tasks / 2 <= len(assignments) <= max(tasks, 8 + 2)
    heavy = [assignment for assignment in assignments if assignment.groups > 1]
    work = sorted(work_of(assignment, costs) for assignment in heavy)
    assert work[-1] <= 2 * work[len(work) // 2]
    assert all(60_000 / assignment.groups <= 8192 for assignment in heavy)
    # Each segment has all groups, each once.
    groups: dict[bytes, list[int]] = {}
    for assignment in assignments:
        for part in assignment.segments:
            groups.setdefault(part.low, []).append(assignment.group)
            assert len(groups[part.low]) <= assignment.groups
    assert {len(found) - 1 for found in groups.values()} == {max(found) for found in groups.values()}
    # The heaviest tasks come first.
    each = [work_of(assignment, costs) for assignment in assignments]
    assert each[0] > each[-1]


def test_a_task_is_told_of_the_selectors_of_its_namespaces_alone() -> None:
    selectors = StagedSelectors(
        "path", {(namespace, "persistent"): (0, 9) for namespace in ("a/0", "a/a", "a/b", "a/c", "b/b")}
    )
    run = namespaces({"a/a": 300, "a/b": 300, "a/c": 300})
    reported = {
        assignment.segments[0].low.partition(b"\x01")[0]: {name for name, _ in assignment.selectors.places}
        for assignment in assign_tasks([run], selectors, {}, tasks=9)
    }
    assert reported[b""] >= {"a/a"}
    assert "a/a" not in reported[b"a/c"]
    assert all("a/c" in places or head != b"a/c" for head, places in reported.items())


def test_segments_that_are_smaller_than_a_block_share_its_rows() -> None:
    run = namespaces({"a/a": 5000})
    whole = SortedRun(run.path, (RunBlock(run.blocks[0].first, 0, 9, 5000),), run.segment_starts, run.names)
    parts = [part for one in assign_tasks([whole], NOTHING, {}, tasks=1) for part in one.segments]
    assert len(parts) > 40
    assert 5000 <= sum(part.rows for part in parts) < 5200


def test_shares_are_of_neighbours_with_about_the_same_work() -> None:
    assert equal_shares([0, 1, 5, 6, 7], [1, 1, 1, 1, 4], 2) == [[0, 1, 5, 6], [7]]
    assert equal_shares([0, 1, 2], [9, 1, 2], 3) == [[0], [1, 2]]
    assert equal_shares([4, 5], [0, 0], 2) == [[4, 5]]
