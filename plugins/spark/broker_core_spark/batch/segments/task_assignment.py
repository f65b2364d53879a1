"""Which task makes which segments of which blocks: decided by the driver from what runs say of themselves.

Segments lie between the keys that begin one, so they are the same however many tasks there are. Tasks get
neighbouring segments of about the same work; a namespace with most of all names is many segments, and many tasks.
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

#: All keys.
EVERYTHING: Final[KeyRanges] = ((b"", b""),)
#: What reading, sorting and writing a name costs, as so many selectors that are asked of it.
_NAME_WORK: Final = 30


@dataclass(frozen=True, slots=True)
class SegmentRange:
    """The keys of one segment, from ``low`` to ``high`` (empty: no end), and about how many they are."""

    low: bytes
    high: bytes
    rows: int


@dataclass(frozen=True, slots=True)
class TaskAssignment:
    """What one task makes: neighbouring segments, and the blocks of each run (by its path) that hold their names."""

    segments: tuple[SegmentRange, ...]
    blocks: Mapping[str, tuple[RunBlock, ...]]

    def to_bytes(self) -> bytes:
        """For the way to the task, through the store."""
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
        """The reverse of :meth:`to_bytes`."""
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

    Each range begins where a segment does. ``selectors`` is how many each namespace is asked.
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
        # A segment belongs to the task in whose equal share of the work its middle is.
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
            # Names in front of the first block that begins here are in a block that begins before.
            segments.append(SegmentRange(start, stop, max(rows, min(BLOCK_ROWS, sums[-1]))))
    return segments if sums[-1] else []


def _task(runs: Iterable[SortedRun], segments: Sequence[SegmentRange]) -> TaskAssignment:
    low, high = segments[0].low, segments[-1].high
    blocks = {run.path: tuple(blocks_within(run.blocks, low, high)) for run in runs if run.blocks}
    return TaskAssignment(tuple(segments), {path: found for path, found in blocks.items() if found})


def blocks_within(blocks: Sequence[RunBlock], low: bytes, high: bytes) -> Sequence[RunBlock]:
    """Those of a run's blocks that can hold keys from ``low`` to ``high`` (empty: no end)."""
    firsts = [block.first for block in blocks]
    # The block before the first that begins at `low` or behind may end with it.
    begin = max(bisect_left(firsts, low) - 1, 0)
    end = bisect_left(firsts, high) if high else len(firsts)
    return blocks[begin:end]
