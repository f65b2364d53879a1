"""The task that makes segments: reads its blocks of all runs, sorts and matches the names, writes the files.

Files are complete and named by their content, so a task may be killed, repeated or run twice at once. The driver gets
a few numbers for each selector.
"""

from __future__ import annotations

import base64
import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core import EncodedNames
from broker_core_spark.batch.errors import InvalidCatalogue
from broker_core_spark.batch.segments.match_selectors import CompiledPatterns, match_selectors
from broker_core_spark.batch.segments.task_assignment import SegmentRange, TaskAssignment, blocks_within
from broker_core_spark.batch.staging.order_keys import key_at, local_names, name_of_key, namespace_ranges
from broker_core_spark.batch.staging.sorted_runs import KeyedNames, joined_names, read_blocks
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.format.canonical_question import CanonicalQuestion, NameSelector, required_selectors
from broker_core_spark.format.manifest import SegmentEntry
from broker_core_spark.format.segment_layout import ENTRY
from broker_core_spark.format.segment_writer import Matches, SegmentWriter
from broker_core_spark.store import Store
from broker_core_spark.store.verified_files import put_verified

__all__ = ["SegmentResult", "SegmentTask"]

#: Names of neighbouring segments that are matched together.
_GROUP_ROWS: Final = 262_144
#: Bytes of the largest assignment or questions file.
_MOST_BYTES: Final = 2 * 1024**3
_Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class SegmentResult:
    """A segment in the store: its entry in the manifest, and the entries of each of its runs.

    ``new`` is false if the store had the very file. ``duplicates`` counts names that were given more than once.
    """

    entry: SegmentEntry
    run_entries: tuple[_Array, ...]
    new: bool
    duplicates: int

    def to_bytes(self) -> bytes:
        """The result as the task sends it to the driver."""
        record = {
            "name": self.entry.name,
            "size": self.entry.size,
            "first_local": self.entry.first_local,
            "runs": self.entry.runs,
            "run_entries": [base64.b64encode(part.tobytes()).decode() for part in self.run_entries],
            "new": self.new,
            "duplicates": self.duplicates,
        }
        return json.dumps(record).encode()

    @classmethod
    def parse(cls, data: bytes) -> SegmentResult:
        """The inverse of :meth:`to_bytes`."""
        record = json.loads(data)
        runs = tuple((namespace, domain, names) for namespace, domain, names in record["runs"])
        entry = SegmentEntry(record["name"], record["size"], record["first_local"], runs)
        run_entries = tuple(np.frombuffer(base64.b64decode(part), ENTRY) for part in record["run_entries"])
        return cls(entry, run_entries, record["new"], record["duplicates"])


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """The work of numbered tasks, pickled by reference into the executors.

    ``assignments`` is the prefix of the paths of assignments, ``questions`` the path of the questions.
    """

    staging: StagingArea
    assignments: str
    questions: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
        store = self.staging.open()
        asked = _asked(store, self.questions)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                data = store.get(f"{self.assignments}{number}.json", _MOST_BYTES)
                if data is None:
                    raise InvalidCatalogue(
                        f"The work of task {number} is gone: was the job's staging folder emptied?"
                    )
                for result in _make(store, TaskAssignment.parse(data), asked, self.staging.property_keys):
                    yield result.to_bytes()


_Asked = Mapping[tuple[str, str], Sequence[NameSelector]]


def _asked(store: Store, path: str) -> _Asked:
    data = store.get(path, _MOST_BYTES)
    if data is None:
        raise InvalidCatalogue("The questions of the job are gone: was its staging folder emptied?")
    return required_selectors(CanonicalQuestion.parse(line) for line in data.splitlines())


def _make(
    store: Store, assignment: TaskAssignment, asked: _Asked, property_keys: Sequence[str]
) -> Iterator[SegmentResult]:
    patterns = CompiledPatterns()
    group: list[SegmentRange] = []
    for position, segment in enumerate(assignment.segments):
        group.append(segment)
        last = position == len(assignment.segments) - 1
        if last or sum(part.rows for part in group) + assignment.segments[position + 1].rows > _GROUP_ROWS:
            yield from _make_group(store, assignment, group, asked, property_keys, patterns)
            group = []


def _make_group(
    store: Store,
    assignment: TaskAssignment,
    segments: Sequence[SegmentRange],
    asked: _Asked,
    property_keys: Sequence[str],
    patterns: CompiledPatterns,
) -> Iterator[SegmentResult]:
    rows, twice = _ordered(_read(store, assignment, segments, len(property_keys)), property_keys)
    bounds = [
        bisect_left(range(len(rows)), part.low, key=lambda row: key_at(rows.keys, row)) for part in segments
    ]
    bounds.append(len(rows))
    writers: list[SegmentWriter | None] = [None] * len(segments)
    for namespace, domain, low, high in namespace_ranges(rows.keys):
        names = EncodedNames.of(namespace, domain, local_names(rows.keys[low:high], namespace), ordered=True)
        selectors = asked.get((namespace, domain), ())
        values = {key: column[low:high] for key, column in zip(property_keys, rows.properties, strict=True)}
        matches = list(match_selectors(names, values, selectors, patterns))
        for position, (start, stop) in enumerate(pairwise(bounds)):
            first, last = max(start, low) - low, min(stop, high) - low
            if first >= last:
                continue
            writer = writers[position] or SegmentWriter()
            writers[position] = writer
            writer.add_run(
                names.slice(first, last),
                selectors,
                [(selector, _part(found, first, last)) for selector, found in matches],
            )
            if stop <= high:
                count = int(np.count_nonzero((twice >= start) & (twice < stop)))
                yield _stored(store, writer, count)


def _stored(store: Store, writer: SegmentWriter, duplicates: int) -> SegmentResult:
    made = writer.finish()
    with made.file:
        new = put_verified(store, made.entry, made.file)
    return SegmentResult(made.entry, made.run_entries, new, duplicates)


def _read(
    store: Store, assignment: TaskAssignment, segments: Sequence[SegmentRange], properties: int
) -> KeyedNames:
    low, high = segments[0].low, segments[-1].high
    parts: list[KeyedNames] = []
    for path, blocks in assignment.blocks.items():
        wanted = blocks_within(blocks, low, high)
        if not wanted:
            continue
        rows = read_blocks(store, path, wanted, properties)
        # Blocks and their names are in order, so the range is one slice.
        keys = rows.keys
        first = bisect_left(range(len(rows)), low, key=lambda row, keys=keys: key_at(keys, row))  # type: ignore[misc]
        last = len(rows)
        if high:
            last = bisect_left(range(len(rows)), high, key=lambda row, keys=keys: key_at(keys, row))  # type: ignore[misc]
        if first < last:
            parts.append(rows.slice(first, last))
    return joined_names(parts, properties)


def _ordered(rows: KeyedNames, property_keys: Sequence[str]) -> tuple[KeyedNames, _Array]:
    """The rows in the order of all names, each name once, and the positions of names that came more than once.

    Raises :exc:`InvalidCatalogue` for a name with two values of a property.
    """
    if not len(rows):
        return rows, np.empty(0, np.int64)
    rows = rows.take(EncodedNames.sorted_rows(rows.keys))
    again = np.zeros(len(rows), bool)
    again[1:] = pc.equal(rows.keys[1:], rows.keys[:-1]).to_numpy(zero_copy_only=False)
    if not again.any():
        return rows, np.empty(0, np.int64)
    at = np.flatnonzero(again)
    for key, column in zip(property_keys, rows.properties, strict=True):
        one, other = column.take(pa.array(at)), column.take(pa.array(at - 1))
        same = pc.or_(
            pc.fill_null(pc.equal(one, other), False), pc.and_(one.is_null(), other.is_null())
        ).to_numpy(zero_copy_only=False)
        if not same.all():
            row = int(at[int(np.argmin(same))])
            namespace, domain, local = name_of_key(key_at(rows.keys, row))
            raise InvalidCatalogue(
                f"Topic '{domain}://{namespace}/{local[:200]}' stands twice in the catalogue, with different values of "
                f"the property {key!r}"
            )
    kept = np.flatnonzero(~again)
    return rows.take(kept), np.searchsorted(kept, at, side="right") - 1


def _part(found: Matches, first: int, last: int) -> Matches:
    """Matches within the rows ``first`` to ``last``, counted from ``first``."""
    if isinstance(found, tuple):
        low, high = max(found[0], first), min(found[1], last)
        return (low - first, high - first) if low < high else (0, 0)
    low, high = np.searchsorted(found, (first, last))
    part: _Array = found[low:high] - np.asarray(first, found.dtype)
    return part
