"""The task that makes segments: reads its blocks of all runs, sorts and matches the names, writes the files.

A task has neighbouring segments, and writes both files of each. Files are complete and named by their content, so a
task may be killed, repeated or run twice at once. The driver gets a few numbers for each segment, and the places of
the tallies.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core import EncodedNames
from broker_core_spark.arrow_columns import Array, is_ascending
from broker_core_spark.batch.build_errors import InvalidCatalogue
from broker_core_spark.batch.segments.match_selectors import CompiledPatterns, match_selectors
from broker_core_spark.batch.segments.segment_puts import MadeSegments, SegmentPuts, SegmentResult
from broker_core_spark.batch.segments.staged_selectors import KeyedSelectors
from broker_core_spark.batch.segments.tallies import TallyWriter
from broker_core_spark.batch.segments.task_assignment import SegmentRange, TaskAssignment, blocks_within
from broker_core_spark.batch.staging.order_keys import (
    key_at,
    local_names,
    name_of_key,
    namespace_ranges,
    segment_ids,
)
from broker_core_spark.batch.staging.sorted_runs import KeyedNames, RunBlock, joined_names, read_blocks
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.format import (
    ENTRY,
    KIND_RANGE,
    NamesWriter,
    PostingsCollector,
    PostingsWriter,
    RunPostings,
    SegmentEntry,
    SelectorKeys,
    cut_levels,
    piece_starts,
)
from broker_core_spark.store import PrivateFile, Store

__all__ = ["make_of_assignment", "ordered_names", "staged_names"]

#: Names of neighbouring segments that are matched together, and selectors: as bits they take 256 MiB.
_GROUP_ROWS: Final = 262_144
_GROUP_SELECTORS: Final = 8192
#: Names that are held if selectors are matched in several groups: each group is compiled once for them.
_HELD_ROWS: Final = 524_288
#: Sorting names costs as much as looking up the places of so few of them among the others, and copying all.
_FEW: Final = 16


def make_of_assignment(staging: StagingArea, store: Store, assignment: TaskAssignment) -> MadeSegments:
    """Do the work of one task."""
    return _Making(store, staging, assignment, SegmentPuts(store)).run()


@dataclass(slots=True)
class _Piece:
    """A segment under way: rows ``low`` to ``high`` of the rows that are matched together."""

    low: int
    high: int
    continues: bool
    digest: str
    names: NamesWriter = field(default_factory=NamesWriter)
    postings: PostingsWriter = field(default_factory=PostingsWriter)


@dataclass(slots=True)
class _Making:
    """One task under way."""

    store: Store
    staging: StagingArea
    assignment: TaskAssignment
    puts: SegmentPuts
    patterns: CompiledPatterns = field(default_factory=CompiledPatterns)
    tallies: TallyWriter = field(default_factory=TallyWriter)
    asked: dict[tuple[str, str], tuple[KeyedSelectors, SelectorKeys]] = field(default_factory=dict)
    segments: list[SegmentResult] = field(default_factory=list)

    def run(self) -> MadeSegments:
        """Make the segments."""
        began = time.process_time()
        with self.puts:
            last: bytes | None = None
            for group in self._groups():
                if last is None or last != group[0].low:
                    self.tallies.begin(group[0].low)
                last = group[-1].high
                self._make(group)
            self.segments += self.puts.finish()
            blocks = self.tallies.finish(self.store, self.staging.folder)
        return MadeSegments(tuple(self.segments), tuple(blocks), (time.process_time() - began,))

    def _groups(self) -> Iterator[list[SegmentRange]]:
        """Neighbouring segments whose names are held together."""
        group: list[SegmentRange] = []
        rows = 0
        places = self.assignment.selectors.places
        many = any(len(self._asked(place)[0]) > _GROUP_SELECTORS for place in places)
        most = _HELD_ROWS if many else _GROUP_ROWS
        for part in self.assignment.segments:
            if group and (rows + part.rows > most or group[-1].high != part.low):
                yield group
                group, rows = [], 0
            group.append(part)
            rows += part.rows
        if group:
            yield group

    def _make(self, ranges: Sequence[SegmentRange]) -> None:
        """Write the segments of these ranges, place by place."""
        property_keys = self.staging.property_keys
        staged = staged_names(
            self.store, self.assignment.blocks, (ranges[0].low, ranges[-1].high), len(property_keys)
        )
        rows, twice = ordered_names(staged, property_keys)
        pieces = self._pieces(rows, ranges)
        ahead = 0  # the first piece that is not finished
        for namespace, domain, low, high in namespace_ranges(rows.keys):
            names = EncodedNames.of(
                namespace, domain, local_names(rows.keys[low:high], namespace), ordered=True
            )
            values = {
                key: column[low:high] for key, column in zip(property_keys, rows.properties, strict=True)
            }
            own: list[_Piece] = []
            bounds = [0]
            for piece in pieces[ahead:]:
                if piece.low >= high:
                    break
                own.append(piece)
                bounds.append(min(piece.high, high) - low)
                piece.names.add_run(names.slice(*bounds[-2:]))
            selectors, every = self._asked((namespace, domain))
            for piece, run in zip(own, self._postings(names, bounds, values, selectors), strict=True):
                piece.postings.add_run(namespace, domain, run, every)
                if piece.high <= high:
                    count = int(np.count_nonzero((twice >= piece.low) & (twice < piece.high)))
                    self._finish(piece, count)
                    ahead += 1

    def _postings(
        self,
        names: EncodedNames,
        bounds: Sequence[int],
        values: Mapping[str, pa.LargeStringArray],
        selectors: KeyedSelectors,
    ) -> Iterator[RunPostings]:
        """The postings of each run between neighbouring ``bounds`` of the names.

        Those of several groups of selectors wait in a file, because together they may have any size.
        """
        if len(selectors) <= _GROUP_SELECTORS:
            yield from self._matched(names, bounds, values, selectors)
            return
        parts: list[list[tuple[int, int, int]]] = []
        with PrivateFile() as file:
            for first in range(0, len(selectors), _GROUP_SELECTORS):
                group = selectors[first : first + _GROUP_SELECTORS]
                parts.append([_kept(run, file) for run in self._matched(names, bounds, values, group)])
            kept = file.mapped()
        for (low, high), own in zip(pairwise(bounds), zip(*parts, strict=True), strict=True):
            yield _joined(high - low, kept, own)

    def _matched(
        self,
        names: EncodedNames,
        bounds: Sequence[int],
        values: Mapping[str, pa.LargeStringArray],
        selectors: KeyedSelectors,
    ) -> Iterator[RunPostings]:
        """The postings of one group of selectors in each run, some names at a time."""
        at = 0
        while at < len(bounds) - 1:
            low = bounds[at]
            last = max(bisect_right(bounds, low + _GROUP_ROWS) - 1, at + 1)
            some = {key: column[low : bounds[last]] for key, column in values.items()}
            own = names.slice(low, bounds[last])
            collected = PostingsCollector(own, [bound - low for bound in bounds[at : last + 1]])
            for key, found in match_selectors(own, some, selectors, self.patterns):
                collected.add(key, found)
            totals, runs = collected.finish()
            self.tallies.add(str(names.namespace), names.domain, totals)
            yield from runs
            at = last

    def _asked(self, place: tuple[str, str]) -> tuple[KeyedSelectors, SelectorKeys]:
        if place not in self.asked:
            own = self.assignment.selectors.read(self.store, place)
            self.asked[place] = own, SelectorKeys.of(key for key, _ in own)
        return self.asked[place]

    def _pieces(self, rows: KeyedNames, ranges: Sequence[SegmentRange]) -> list[_Piece]:
        """The segments of these ranges: one each, or several if it would be too large."""
        bounds = [
            bisect_left(range(len(rows)), part.low, key=lambda row: key_at(rows.keys, row)) for part in ranges
        ]
        pieces: list[_Piece] = []
        for low, high in pairwise([*bounds, len(rows)]):
            if low < high:
                starts = _piece_starts(rows.keys[low:high], self.staging.target, self.staging.largest)
                digest = rows.slice(low, high).digest()
                for number, (start, stop) in enumerate(pairwise([*starts, high - low])):
                    pieces.append(_Piece(low + start, low + stop, number > 0, digest))
        return pieces

    def _finish(self, piece: _Piece, duplicates: int) -> None:
        """Put the files of a piece."""
        postings, names = piece.postings.finish(), piece.names.finish()
        made = SegmentEntry(
            names.name,
            names.size,
            piece.names.first_local,
            tuple(piece.names.runs),
            postings.entry,
            piece.continues,
        )
        result = SegmentResult(made, duplicates=duplicates, digest=piece.digest)
        self.segments += self.puts.add(result, [postings, names])


def _kept(run: RunPostings, file: PrivateFile) -> tuple[int, int, int]:
    """Append the postings of a run to a file: the positions of their entries and words, and their end."""
    start = file.size
    file.write(run.entries, *run.words)
    return start, start + run.entries.nbytes, file.size


def _joined(names: int, kept: pa.Buffer, parts: Iterable[tuple[int, int, int]]) -> RunPostings:
    """The postings of a run, of parts that :func:`_kept` appended in the order of their keys."""
    entries, words, before = [], [], 0
    for start, middle, stop in parts:
        own = np.frombuffer(kept[start:middle], ENTRY).copy()
        own["first"][own["kind"] != KIND_RANGE] += before
        entries.append(own)
        words.append(np.frombuffer(kept[middle:stop], "<u4"))
        before += len(words[-1])
    return RunPostings(names, np.concatenate(entries), words)


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


def staged_names(
    store: Store, runs: Mapping[str, Sequence[RunBlock]], within: tuple[bytes, bytes], properties: int
) -> KeyedNames:
    """The names of these blocks of runs ``within`` two keys (the second empty: no end).

    They are in order if runs that follow each other have most of them, as with an ordered table of which a few rows
    come late. Else they are run by run.
    """
    low, high = within
    parts: list[KeyedNames] = []
    for path, blocks in runs.items():
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
    parts.sort(key=len, reverse=True)
    chain: list[KeyedNames] = parts[:1]
    others: list[KeyedNames] = []
    for part in parts[1:]:
        if key_at(chain[-1].keys, -1) < key_at(part.keys, 0):
            chain.append(part)
        elif key_at(part.keys, -1) < key_at(chain[0].keys, 0):
            chain.insert(0, part)
        else:
            others.append(part)
    few, most = joined_names(others, properties), joined_names(chain, properties)
    if len(few) * _FEW > len(most):
        return joined_names(parts, properties)
    few = few.take(EncodedNames.sorted_rows(few.keys))
    places = segment_ids(most.keys, few.keys)
    order = np.insert(np.arange(len(most)), places, np.arange(len(few)) + len(most))
    return joined_names([most, few], properties).take(order) if len(few) else most


def ordered_names(rows: KeyedNames, property_keys: Sequence[str]) -> tuple[KeyedNames, Array]:
    """The rows in the order of all names, each name once, and the positions of names that came more than once.

    Raises :exc:`InvalidCatalogue` for a name with two values of a property.
    """
    if not len(rows):
        return rows, np.empty(0, np.int64)
    if is_ascending(rows.keys):
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
