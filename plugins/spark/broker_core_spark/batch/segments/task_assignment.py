"""Assigning segments to tasks, by the driver: which task makes which segments of which blocks.

Segments lie between the keys that begin one, so their bytes do not depend on the number of tasks. Each task gets
neighbouring segments with an equal share of the work. A namespace with most of the names has many segments and tasks.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from broker_core_spark.batch.staging.order_keys import name_of_key
from broker_core_spark.batch.staging.sorted_runs import BLOCK_ROWS, KeyRanges, RunBlock, SortedRun

__all__ = ["EVERYTHING", "SegmentRange", "TaskAssignment", "assign_tasks", "blocks_within"]

#: The range of all keys.
EVERYTHING: Final[KeyRanges] = ((b"", b""),)
#: The work of reading, sorting and writing a name, in selectors that are matched on it.
_NAME_WORK: Final = 30


@dataclass(frozen=True, slots=True)
class SegmentRange:
    """The keys of one segment, from ``low`` to ``high`` (empty: no end), and about how many there are."""

    low: bytes
    high: bytes
    rows: int


@dataclass(frozen=True, slots=True)
class TaskAssignment:
    """The neighbouring segments of one task, and for each run (by path) the blocks with their names."""

    segments: tuple[SegmentRange, ...]
    blocks: Mapping[str, tuple[RunBlock, ...]]

    def to_bytes(self) -> bytes:
        """The assignment as the store carries it to the task."""
        record = {
            "segments": [[part.low.hex(), part.high.hex(), part.rows] for part in self.segments],
            "blocks": {
                path: [[block.first.hex(), block.start, block.stop, block.rows] for block in blocks]
                for path, blocks in self.blocks.items()
            },
        }
        return json.dumps(record).encode()

    @classmethod
    def parse(cls, data: bytes) -> TaskAssignment:
        """The inverse of :meth:`to_bytes`."""
        record = json.loads(data)
        return cls(
            tuple(
                SegmentRange(bytes.fromhex(low), bytes.fromhex(high), rows)
                for low, high, rows in record["segments"]
            ),
            {
                path: tuple(RunBlock(bytes.fromhex(first), *rest) for first, *rest in blocks)
                for path, blocks in record["blocks"].items()
            },
        )


def assign_tasks(
    runs: Sequence[SortedRun],
    tasks: int,
    *,
    selectors: Mapping[str, int],
    key_ranges: KeyRanges = EVERYTHING,
) -> list[TaskAssignment]:
    """At most ``tasks`` assignments for the names of ``runs`` within ``key_ranges``.

    Each range begins with a segment. ``selectors`` is the number of selectors of each namespace.
    """
    segments = _segments(runs, key_ranges)
    if not segments:
        return []
    work = [part.rows * (_NAME_WORK + selectors.get(_namespace(part), 0)) for part in segments]
    total = sum(work)
    assignments: list[TaskAssignment] = []
    taken: list[SegmentRange] = []
    done = 0
    for part, effort in zip(segments, work, strict=True):
        # The middle of a segment lies in the equal share of its task.
        share = (done + effort // 2) * tasks // max(total, 1)
        if taken and share > len(assignments):
            assignments.append(_task(runs, taken))
            taken = []
        taken.append(part)
        done += effort
    assignments.append(_task(runs, taken))
    return assignments


def _namespace(part: SegmentRange) -> str:
    return name_of_key(part.low)[0] if part.low else ""


def _segments(runs: Sequence[SortedRun], key_ranges: KeyRanges) -> list[SegmentRange]:
    """The segments within the ranges that may have names."""
    cuts = sorted({key for run in runs for key in run.segment_starts})
    firsts = sorted((block.first, block.rows) for run in runs for block in run.blocks)
    starts = [first for first, _ in firsts]
    sums = [0]
    for _, rows in firsts:
        sums.append(sums[-1] + rows)
    segments: list[SegmentRange] = []
    for low, high in key_ranges:
        last = len(cuts) if not high else bisect_left(cuts, high)
        bounds = [low, *cuts[bisect_right(cuts, low) : last]]
        for start, stop in zip(bounds, [*bounds[1:], high], strict=True):
            ends = bisect_left(starts, stop) if stop else len(starts)
            rows = sums[ends] - sums[bisect_left(starts, start)]
            # A block that begins before the segment may hold its first names.
            segments.append(SegmentRange(start, stop, max(rows, min(BLOCK_ROWS, sums[-1]))))
    return segments if sums[-1] else []


def _task(runs: Iterable[SortedRun], segments: Sequence[SegmentRange]) -> TaskAssignment:
    low, high = segments[0].low, segments[-1].high
    blocks = {run.path: tuple(blocks_within(run.blocks, low, high)) for run in runs if run.blocks}
    return TaskAssignment(tuple(segments), {path: found for path, found in blocks.items() if found})


def blocks_within(blocks: Sequence[RunBlock], low: bytes, high: bytes) -> Sequence[RunBlock]:
    """The blocks of a run that may hold keys from ``low`` to ``high`` (empty: no end)."""
    firsts = [block.first for block in blocks]
    # The block before `low` may end with it.
    begin = max(bisect_left(firsts, low) - 1, 0)
    end = bisect_left(firsts, high) if high else len(firsts)
    return blocks[begin:end]
