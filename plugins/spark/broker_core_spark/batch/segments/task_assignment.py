"""Assigning segments and groups of selectors to tasks, by the driver: an equal share of the work each.

Segments lie between the keys that begin one, so their bytes do not depend on the number of tasks. Most tasks have
neighbouring segments with all of their selectors. If one segment is more than a share, or the selectors are too many
for the memory of a task, several tasks have the same segments and a group of the selectors each.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, groupby
from typing import Final, TypeVar

from broker_core_spark.batch.segments.staged_selectors import StagedSelectors
from broker_core_spark.batch.staging.order_keys import KeyRanges, name_of_key
from broker_core_spark.batch.staging.sorted_runs import BLOCK_ROWS, RunBlock, SortedRun

__all__ = [
    "EVERYTHING",
    "NamespaceCost",
    "SegmentRange",
    "TaskAssignment",
    "assign_tasks",
    "blocks_of_runs",
    "blocks_within",
    "equal_shares",
]

#: The range of all keys.
EVERYTHING: Final[KeyRanges] = ((b"", b""),)
#: Seconds of one core: reading, sorting and writing a name, and compiling a pattern.
_NAME_SECONDS: Final = 1.5e-6
_COMPILE_SECONDS: Final = 50e-6
#: Names and seconds of work for each task, if the number of tasks is not given.
_TASK_ROWS: Final = 400_000
_TASK_WORK: Final = 5.0
_LEAST_TASKS: Final = 4
#: Selectors of a group: more take too much memory. With fewer a group reads each name for too little.
_MOST_SELECTORS: Final = 8192
_LEAST_SELECTORS: Final = 512
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class SegmentRange:
    """The keys of one segment, from ``low`` to ``high`` (empty: no end), and about how many there are."""

    low: bytes
    high: bytes
    rows: int


@dataclass(frozen=True, slots=True)
class TaskAssignment:
    """The neighbouring segments of one task, and for each run (by path) the blocks with their names.

    The task has the ``group`` of ``groups`` of the ``selectors``, which belong to the namespaces in its segments.
    """

    segments: tuple[SegmentRange, ...]
    blocks: Mapping[str, tuple[RunBlock, ...]]
    selectors: StagedSelectors
    group: int = 0
    groups: int = 1


def assign_tasks(
    runs: Sequence[SortedRun],
    selectors: StagedSelectors,
    costs: Mapping[str, NamespaceCost],
    *,
    tasks: int | None = None,
    key_ranges: KeyRanges = EVERYTHING,
) -> list[TaskAssignment]:
    """Assignments for the names of ``runs`` within ``key_ranges``, the ones with most work first.

    Each range begins with a segment. ``costs`` are the costs of matching a name, by namespace. Without ``tasks`` there
    are as many as there are seconds of work to share, else at most so many.
    """
    segments = _segments(runs, key_ranges)
    weighed = _weighed(segments, runs, costs)
    rows = sum(part.rows for part in segments)
    total = sum(one.work for one in weighed)
    most = tasks or max(_LEAST_TASKS, -(-rows // _TASK_ROWS), round(total / _TASK_WORK))
    made = _shared(weighed, total / most)
    # Rounding gives each stretch of segments a task at least.
    wanted = most
    while tasks is not None and len(made) > most and wanted > 1:
        wanted = max(1, min(wanted - 1, wanted * most // len(made)))
        made = _shared(weighed, total / wanted)
    made.sort(key=lambda task: -task[0])
    return [_task(runs, ranges, selectors, number, groups) for _, ranges, number, groups in made]


def _shared(weighed: Sequence[_Weighed], share: float) -> list[tuple[float, list[SegmentRange], int, int]]:
    """(seconds, segments, group, groups) of each task, for tasks of about ``share`` seconds."""
    made: list[tuple[float, list[SegmentRange], int, int]] = []
    for heavy, group in groupby(weighed, key=lambda one: one.work > share or one.selectors > _MOST_SELECTORS):
        for neighbours in _neighbours(list(group)):
            work = [one.work for one in neighbours]
            wanted = max(1, round(sum(work) / share))
            groups = _groups(neighbours, wanted, share) if heavy else 1
            for part in equal_shares(neighbours, work, -(-wanted // groups)):
                each = sum(one.work for one in part) / groups
                made += [(each, [one.range for one in part], number, groups) for number in range(groups)]
    return made


@dataclass(frozen=True, slots=True)
class NamespaceCost:
    """The selectors of a namespace, and the seconds of matching one name with all of them."""

    selectors: int
    seconds: float


@dataclass(frozen=True, slots=True)
class _Weighed:
    """A segment with its work in seconds, and the selectors of its namespace with most of them."""

    range: SegmentRange
    work: float
    selectors: int


def _weighed(
    segments: Sequence[SegmentRange], runs: Sequence[SortedRun], costs: Mapping[str, NamespaceCost]
) -> list[_Weighed]:
    names: Counter[str] = Counter()
    for run in runs:
        for (namespace, _), count in run.names.items():
            names[namespace] += count
    ordered = sorted(names)
    nothing = NamespaceCost(0, 0.0)
    weighed: list[_Weighed] = []
    for part in segments:
        first = max(bisect_right(ordered, _namespace(part.low)) - 1, 0)
        last = bisect_right(ordered, _namespace(part.high)) if part.high else len(ordered)
        inside = ordered[first : max(last, first + 1)]
        # How many names of each are in the segment is not known here: at most all of them.
        shares = {namespace: min(names[namespace], part.rows) for namespace in inside}
        every = max(sum(shares.values()), 1)
        cost = sum(costs.get(one, nothing).seconds * share for one, share in shares.items()) / every
        most = max((costs.get(one, nothing).selectors for one in inside), default=0)
        weighed.append(_Weighed(part, part.rows * (_NAME_SECONDS + cost), most))
    return weighed


def _neighbours(segments: Sequence[_Weighed]) -> Iterator[list[_Weighed]]:
    """The segments by stretches without a gap between them, and if groups are many, by namespace."""
    part: list[_Weighed] = []
    for one in segments:
        if part and (
            part[-1].range.high != one.range.low
            or (
                max(part[-1].selectors, one.selectors) > _MOST_SELECTORS
                and part[-1].selectors != one.selectors
            )
        ):
            yield part
            part = []
        part.append(one)
    if part:
        yield part


def _groups(segments: Sequence[_Weighed], wanted: int, share: float) -> int:
    """The number of groups of selectors that makes ``wanted`` tasks of these segments at the least cost.

    Each group reads and sorts all names again, each range of segments compiles all patterns again.
    """
    selectors = max(one.selectors for one in segments)
    names = sum(one.range.rows for one in segments)
    largest = max(one.work for one in segments)
    least = max(-(-selectors // _MOST_SELECTORS), math.ceil(largest / share))
    most = max(selectors // _LEAST_SELECTORS, 1)
    least = min(least, max(most, -(-selectors // _MOST_SELECTORS)))

    def cost(groups: int) -> float:
        ranges = min(-(-wanted // groups), len(segments))
        return groups * names * _NAME_SECONDS + ranges * selectors * _COMPILE_SECONDS

    return min(range(least, max(least, min(most, wanted)) + 1), key=cost)


def equal_shares(items: Iterable[_T], work: Sequence[float], tasks: int) -> list[list[_T]]:
    """Neighbouring items in at most ``tasks`` shares of about the same work."""
    total = sum(work)
    shares: dict[int, list[_T]] = {}
    done = 0.0
    for item, own in zip(items, work, strict=True):
        # The middle of an item lies in the equal share of its task.
        share = int((done + own / 2) * tasks / total) if total else 0
        shares.setdefault(share, []).append(item)
        done += own
    return list(shares.values())


def _namespace(key: bytes) -> str:
    return name_of_key(key)[0] if key else ""


def _segments(runs: Sequence[SortedRun], key_ranges: KeyRanges) -> list[SegmentRange]:
    """The segments within the ranges that may have names."""
    cuts = sorted({key for run in runs for key in run.segment_starts})
    firsts = sorted((block.first, block.rows) for run in runs for block in run.blocks)
    starts = [first for first, _ in firsts]
    sums = list(accumulate((rows for _, rows in firsts), initial=0))
    segments: list[SegmentRange] = []
    for low, high in key_ranges:
        last = len(cuts) if not high else bisect_left(cuts, high)
        bounds = [low, *cuts[bisect_right(cuts, low) : last]]
        for start, stop in zip(bounds, [*bounds[1:], high], strict=True):
            ends = bisect_left(starts, stop) if stop else len(starts)
            rows = sums[ends] - sums[bisect_left(starts, start)]
            segments.append(SegmentRange(start, stop, rows))
    # Of several segments in one block only the block's rows are known: they share the bytes that the larger ones leave.
    small = [part for part in segments if part.rows < BLOCK_ROWS]
    left = sums[-1] - sum(part.rows for part in segments if part.rows >= BLOCK_ROWS)
    each = min(BLOCK_ROWS, max(1, -(-left // max(len(small), 1))))
    shared = [replace(part, rows=each) if part.rows < BLOCK_ROWS else part for part in segments]
    return shared if sums[-1] else []


def _task(
    runs: Iterable[SortedRun],
    segments: Sequence[SegmentRange],
    selectors: StagedSelectors,
    group: int,
    groups: int,
) -> TaskAssignment:
    within = segments[0].low, segments[-1].high
    return TaskAssignment(
        tuple(segments), blocks_of_runs(runs, *within), selectors.between(*within), group, groups
    )


def blocks_of_runs(runs: Iterable[SortedRun], low: bytes, high: bytes) -> dict[str, tuple[RunBlock, ...]]:
    """The blocks of each run, by its path, that may hold keys from ``low`` to ``high`` (empty: no end)."""
    return {run.path: found for run in runs if (found := tuple(blocks_within(run.blocks, low, high)))}


def blocks_within(blocks: Sequence[RunBlock], low: bytes, high: bytes) -> Sequence[RunBlock]:
    """The blocks of a run that may hold keys from ``low`` to ``high`` (empty: no end)."""
    firsts = [block.first for block in blocks]
    # The block before `low` may end with it.
    begin = max(bisect_left(firsts, low) - 1, 0)
    end = bisect_left(firsts, high) if high else len(firsts)
    return blocks[begin:end]
