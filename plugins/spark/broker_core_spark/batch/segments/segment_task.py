"""The task that makes segments: reads its blocks of all runs, sorts and matches the names, writes the files.

A task has neighbouring segments, and all of their selectors or one of several groups of them. With all it writes both
files of a segment. Of several tasks with the same segments the first group's writes the names, and each stages a part
of the postings, which :func:`~.make_segments.merge_parts` joins.

Files are complete and named by their content or at random, so a task may be killed, repeated or run twice at once. The
driver gets a few numbers for each segment, and the places of the tallies.
"""

from __future__ import annotations

import tempfile
import time
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial, reduce
from itertools import accumulate, pairwise
from typing import BinaryIO, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core import EncodedNames
from broker_core_spark.arrow_columns import Array, is_ascending
from broker_core_spark.batch.build_errors import InvalidCatalogue
from broker_core_spark.batch.segments.match_selectors import Compiled, collected_matches, compiled_patterns
from broker_core_spark.batch.segments.segment_puts import SegmentPuts, SegmentResult
from broker_core_spark.batch.segments.staged_selectors import KeyedSelectors
from broker_core_spark.batch.segments.tallies import TallyBlock, TallyWriter
from broker_core_spark.batch.segments.task_assignment import SegmentRange, TaskAssignment, blocks_within
from broker_core_spark.batch.staging.order_keys import (
    NEXT,
    first_row,
    key_at,
    local_names,
    name_of_key,
    namespace_ranges,
    segment_ids,
)
from broker_core_spark.batch.staging.sorted_runs import RunBlock, joined_names, names_digest, read_blocks
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.format import (
    FileEntry,
    NamesWriter,
    PostingsWriter,
    SegmentEntry,
    SelectorKeys,
    cut_levels,
    piece_starts,
)
from broker_core_spark.store import CHUNK, Store

__all__ = ["TaskResult", "make_of_assignment", "ordered_names"]

#: Names of neighbouring segments that are matched together.
_GROUP_ROWS: Final = 262_144
_SPOOLED: Final = 64 * 1024 * 1024
#: Sorting names costs as much as looking up the places of so few of them among the others, and copying all: of parts
#: with fewer, the places are looked up.
_FEW: Final = 16
#: So few are put between slices of the others, which copies all once and not twice.
_SPLICED: Final = 1000
#: Stands for postings that are not joined yet.
_PENDING: Final = FileEntry("", 0)


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The report of one task to the driver about the files it wrote.

    ``segments`` are in order. Segments of the first of several groups have no postings yet, and the other groups have
    no segments. ``part`` is the path of the staged postings, and ``spans`` are the bytes of each segment's in it: the
    first, the last one, and their CRC-32.
    ``seconds`` are the processor's.
    """

    number: int
    segments: tuple[SegmentResult, ...] = ()
    tallies: tuple[TallyBlock, ...] = ()
    part: str = ""
    spans: tuple[tuple[int, int, int], ...] = ()
    seconds: float = 0.0


def make_of_assignment(
    staging: StagingArea, store: Store, number: int, assignment: TaskAssignment
) -> TaskResult:
    """Make the segments of an assignment: the work of a numbered task."""
    read = partial(assignment.selectors.read, store, group=assignment.group, groups=assignment.groups)
    return _Making(store, staging, assignment, SegmentPuts(store), cache(read)).run(number)


@dataclass(slots=True)
class _Piece:
    """A segment under way: rows ``low`` to ``high`` of the rows that are matched together."""

    low: int
    high: int
    continues: bool
    names: NamesWriter | None
    postings: PostingsWriter = field(default_factory=PostingsWriter)
    digest: str = ""


@dataclass(slots=True)
class _Making:
    """One task under way."""

    store: Store
    staging: StagingArea
    assignment: TaskAssignment
    puts: SegmentPuts
    #: Reads the group's selectors of a (namespace, domain) once.
    selectors_of: Callable[[tuple[str, str]], tuple[KeyedSelectors, SelectorKeys]]
    compiled: Compiled = field(default_factory=compiled_patterns)
    tallies: TallyWriter = field(default_factory=TallyWriter)
    spans: list[tuple[int, int, int]] = field(default_factory=list)

    def run(self, number: int) -> TaskResult:
        """Make the segments, or the group's part of them."""
        began = time.process_time()
        with tempfile.SpooledTemporaryFile(max_size=_SPOOLED) as part:
            last: bytes | None = None
            for group in self._groups():
                if last is None or last != group[0].low:
                    self.tallies.begin(group[0].low)
                last = group[-1].high
                self._make(group, cast(BinaryIO, part))
            segments = self.puts.finish()
            blocks = self.tallies.finish(self.store, self.staging.folder)
            path = ""
            if self.spans:
                path = f"{self.staging.folder}-{uuid.uuid4().hex}.part"
                part.seek(0)
                self.store.put_new(path, iter(partial(part.read, CHUNK), b""))
        return TaskResult(
            number,
            segments,
            tuple(blocks),
            path,
            tuple(self.spans),
            time.process_time() - began,
        )

    def _groups(self) -> Iterator[list[SegmentRange]]:
        """Neighbouring segments that are matched together."""
        group: list[SegmentRange] = []
        rows = 0
        for part in self.assignment.segments:
            if group and (rows + part.rows > _GROUP_ROWS or group[-1].high != part.low):
                yield group
                group, rows = [], 0
            group.append(part)
            rows += part.rows
        if group:
            yield group

    def _make(self, ranges: Sequence[SegmentRange], part: BinaryIO) -> None:
        """Write the segments of these ranges, place by place."""
        property_keys = self.staging.property_keys
        within = (ranges[0].low, ranges[-1].high)
        rows, twice = ordered_names(self.store, self.assignment.blocks, within, property_keys)
        pieces = self._pieces(rows, ranges)  # those that are finished leave the list
        for namespace, domain, low, high in namespace_ranges(rows["key"]):
            names = EncodedNames.of(
                namespace, domain, local_names(rows["key"][low:high], namespace), ordered=True
            )
            values = {
                key: column[low:high] for key, column in zip(property_keys, rows.columns[1:], strict=True)
            }
            selectors, every = self.selectors_of((namespace, domain))
            own: list[_Piece] = []
            bounds = [0]
            for piece in pieces:
                if piece.low >= high:
                    break
                own.append(piece)
                bounds.append(min(piece.high, high) - low)
                if self.assignment.group == 0:
                    piece.names = piece.names or NamesWriter()
                    piece.names.add_run(names.slice(*bounds[-2:]))
            totals, runs = collected_matches(names, values, selectors, self.compiled, bounds)
            self.tallies.add(namespace, domain, totals)
            for piece, run in zip(own, runs, strict=True):
                piece.postings.add_run(namespace, domain, run, every)
                if piece.high <= high:
                    count = int(np.count_nonzero((twice >= piece.low) & (twice < piece.high)))
                    self._finish(piece, count, part)
                    del pieces[0]

    def _pieces(self, rows: pa.RecordBatch, ranges: Sequence[SegmentRange]) -> list[_Piece]:
        """The segments of these ranges: one each, or several if it would be too large."""
        bounds = [first_row(rows["key"], part.low) for part in ranges]
        pieces: list[_Piece] = []
        for low, high in pairwise([*bounds, len(rows)]):
            if low < high:
                starts = _piece_starts(rows["key"][low:high], self.staging.target, self.staging.largest)
                digest = "" if self.assignment.group else names_digest(rows.slice(low, high - low))
                for number, (start, stop) in enumerate(pairwise([*starts, high - low])):
                    pieces.append(_Piece(low + start, low + stop, number > 0, None, digest=digest))
        return pieces

    def _finish(self, piece: _Piece, duplicates: int, part: BinaryIO) -> None:
        """Put the files of a piece, or add its postings to the staged part."""
        postings = piece.postings.finish()
        files, entry = [postings], postings.entry
        if self.assignment.groups > 1:
            start = part.tell()
            part.writelines(postings.data)
            self.spans.append(
                (start, part.tell(), reduce(lambda crc, view: zlib.crc32(view, crc), postings.data, 0))
            )
            files, entry = [], _PENDING
        if piece.names is None:
            return
        names = piece.names.finish()
        files.append(names)
        made = SegmentEntry(
            names.name,
            names.size,
            piece.names.first_local,
            tuple(piece.names.runs),
            entry,
            piece.continues,
        )
        self.puts.add(SegmentResult(made, duplicates=duplicates, digest=piece.digest), files)


def _piece_starts(keys: pa.LargeBinaryArray, target: int, largest: int) -> list[int]:
    """The first rows of the pieces of a stretch with these keys."""
    if int(pc.sum(pc.binary_length(keys)).as_py()) + _DOMAIN_BYTES * len(keys) <= largest:
        return [0]
    columns = [
        cut_levels(namespace, domain, local_names(keys[low:high], namespace), target=target)
        for namespace, domain, low, high in namespace_ranges(keys)
    ]
    levels, sizes = (np.concatenate(column) for column in zip(*columns, strict=True))
    return piece_starts(levels, sizes, largest)


#: Bytes by which the longest domain makes a full name longer than its key.
_DOMAIN_BYTES: Final = len("non-persistent://") - 1


def ordered_names(
    store: Store,
    runs: Mapping[str, Sequence[RunBlock]],
    within: tuple[bytes, bytes],
    property_keys: Sequence[str],
) -> tuple[pa.RecordBatch, Array]:
    """The names of these blocks of runs ``within`` two keys (the second empty: no end), in order, each once.

    Also gives the positions of names that came more than once. Raises :exc:`InvalidCatalogue` for a name with two
    values of a property.
    """
    low, high = within
    properties = len(property_keys)
    parts: list[pa.RecordBatch] = []
    for path, blocks in runs.items():
        if wanted := blocks_within(blocks, low, high):
            # Blocks and their names are in order, so the range is one slice.
            read = read_blocks(store, path, wanted, properties)
            end = first_row(read["key"], high) if high else len(read)
            parts.append(read[first_row(read["key"], low) : end])
    parts = sorted((part for part in parts if len(part)), key=lambda part: key_at(part["key"], 0))
    total = sum(map(len, parts))
    most = [part for part in parts if len(part) * _FEW > total]
    # Of two parts with many names some may overlap, as if a few rows of the second are behind the others in the table.
    ends = accumulate((key_at(part["key"], len(part) - 1) + NEXT for part in most), max)
    inside = [0, *(first_row(part["key"], end) for part, end in zip(most[1:], ends, strict=False))]
    late = joined_names(
        [
            *(part for part in parts if len(part) * _FEW <= total),
            *(part[:at] for part, at in zip(most, inside, strict=False)),
        ],
        properties,
    )
    rows = joined_names([part[at:] for part, at in zip(most, inside, strict=False)], properties)
    if len(late) * _FEW > total:
        rows = joined_names(parts, properties)
    elif len(late):
        late = late.take(EncodedNames.sorted_rows(late["key"]))
        places = segment_ids(rows["key"], late["key"])
        if len(late) <= _SPLICED:
            spans = enumerate(pairwise([0, *places.tolist(), len(rows)]))
            between = [part for at, span in spans for part in (rows[slice(*span)], late[at : at + 1])]
            rows = joined_names(between, properties)
        else:
            order = np.insert(np.arange(len(rows)), places, np.arange(len(late)) + len(rows))
            rows = joined_names([rows, late], properties).take(order)
    if is_ascending(rows["key"]):
        return rows, np.empty(0, np.int64)
    rows = rows.take(EncodedNames.sorted_rows(rows["key"]))
    at = np.flatnonzero(pc.equal(rows["key"][1:], rows["key"][:-1]).to_numpy(zero_copy_only=False)) + 1
    for key, column in zip(property_keys, rows.columns[1:], strict=True):
        one, other = column.take(pa.array(at)), column.take(pa.array(at - 1))
        same = pc.or_(
            pc.fill_null(pc.equal(one, other), False), pc.and_(one.is_null(), other.is_null())
        ).to_numpy(zero_copy_only=False)
        if not same.all():
            row = int(at[int(np.argmin(same))])
            namespace, domain, local = name_of_key(key_at(rows["key"], row))
            raise InvalidCatalogue(
                f"Topic '{domain}://{namespace}/{local[:200]}' stands twice in the catalogue, with different values of "
                f"the property {key!r}"
            )
    kept = np.delete(np.arange(len(rows)), at)
    return rows.take(kept) if len(at) else rows, np.searchsorted(kept, at, side="right") - 1
