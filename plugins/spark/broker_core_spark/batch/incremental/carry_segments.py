"""Carrying segments of the last generation over to the names and questions of now, stretch by stretch.

Names that went are taken out, those that came are put in and matched, and the postings of all others move with their
rows. Where a namespace is asked other selectors, the added ones are matched with all names, and the removed ones are
left out. Segments where nothing changed stay as they are: their postings are read for the counts, of their names the
end of the file alone. A share of them, drawn at random, is read whole, so that none stays damaged for ever.

A stretch is left to be made anew if a file of it is found damaged, or if it would be cut at other names. If a segment
has the right checksum and still contradicts the manifest or the format, its writer was faulty, and nothing of that
generation is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core import EncodedNames
from broker_core.errors import InvalidListing
from broker_core_spark.arrow_columns import is_ascending
from broker_core_spark.batch.incremental.segment_reuse import first_key
from broker_core_spark.batch.segments.match_selectors import CompiledPatterns, match_selectors
from broker_core_spark.batch.segments.segment_puts import SegmentPuts
from broker_core_spark.batch.segments.segment_result import SegmentResult
from broker_core_spark.batch.segments.segment_task import ordered_names
from broker_core_spark.batch.segments.staged_selectors import KeptSelectors
from broker_core_spark.batch.segments.tallies import TallyBlock, TallyWriter
from broker_core_spark.batch.staging.order_keys import local_names, namespace_ranges, order_key, segment_ids
from broker_core_spark.batch.staging.sorted_runs import KeyedNames
from broker_core_spark.errors import DamagedFile, InvalidGeneration, StoreFailed
from broker_core_spark.format.canonical_question import DOMAIN_ORDER
from broker_core_spark.format.framed_file import FramedFile
from broker_core_spark.format.manifest import FileEntry, Manifest, SegmentEntry
from broker_core_spark.format.names_writer import NamesWriter
from broker_core_spark.format.postings_collector import PostingsCollector
from broker_core_spark.format.postings_file import StoredPostings, read_postings
from broker_core_spark.format.postings_merge import merge_postings
from broker_core_spark.format.segment_boundaries import cut_levels, piece_starts
from broker_core_spark.format.segment_checks import SegmentChecks, last_place
from broker_core_spark.format.segment_layout import NAMES
from broker_core_spark.format.segment_patch import RunPatch, SegmentPatch, entry_keys
from broker_core_spark.format.segment_reader import Segment, SegmentRun
from broker_core_spark.format.selector_keys import NOTHING_ASKED
from broker_core_spark.store import Store
from broker_core_spark.store.verified_files import read_verified

__all__ = ["CarriedSegments", "NameChanges", "carry_segments"]

_Place: TypeAlias = tuple[str, str]
_Array = np.ndarray[Any, Any]
#: The share of the kept segments that are read whole.
_AGAIN: Final = 1 / 32
#: Names that are compared together, and of how many the difference of two columns may be one name.
_COMPARED: Final = 4096
_ALIKE: Final = 256


@dataclass(frozen=True, slots=True)
class NameChanges:
    """The staged names of a stretch: all of them, or of those with ``keys`` alone, which may have changed."""

    staged: KeyedNames
    keys: tuple[bytes, ...] | None = None


@dataclass(frozen=True, slots=True)
class CarriedSegments:
    """The segments in the store, where the tallies of their selectors are, and the stretches to be made anew."""

    segments: tuple[SegmentResult, ...] = ()
    tallies: tuple[TallyBlock, ...] = ()
    anew: tuple[int, ...] = ()


def carry_segments(
    store: Store,
    manifest: Manifest,
    stretches: Iterable[tuple[int, NameChanges | None]],
    selectors: KeptSelectors,
    folder: str,
    property_keys: Sequence[str] = (),
    again: float = _AGAIN,
) -> CarriedSegments:
    """Carry the ``stretches`` of ``manifest`` with these numbers, which ascend, over to their changes, one at a time.

    ``folder`` is the prefix of the file of tallies. ``again`` is the share of the stretches without changes that are
    read whole. Raises :exc:`InvalidGeneration` for a segment with the right checksum, but wrong runs or selectors or,
    where its names are looked at, wrong names.
    """
    with SegmentPuts(store) as puts:
        carrying = _Carrying(
            store,
            manifest,
            selectors,
            tuple(property_keys),
            SegmentChecks(manifest, keys=selectors.before),
            puts,
        )
        every = manifest.stretches()
        numbers = np.cumsum([0, *map(len, every)]).tolist()
        anew: list[int] = []
        last: int | None = None
        for number, changes in stretches:
            whole = changes is None and carrying.random.random() < again
            within = range(numbers[number], numbers[number + 1])
            pieces = carrying.read(within, names=changes is not None, whole=whole)
            made = None if pieces is None else carrying.carried(pieces, changes)
            if made is None:
                anew.append(number)
                continue
            if last is None or number != last + 1:
                carrying.tallies.begin(first_key(every[number][0]))
            last = number
            carrying.add(made)
        carrying.segments += puts.finish()
        return CarriedSegments(
            tuple(carrying.segments), tuple(carrying.tallies.finish(store, folder)), tuple(anew)
        )


@dataclass(frozen=True, slots=True)
class _Piece:
    """A segment of the last generation: its postings, and its runs if its names are needed."""

    entry: SegmentEntry
    postings: Sequence[StoredPostings]
    runs: Sequence[SegmentRun] = ()


@dataclass(frozen=True, slots=True)
class _Run:
    """A run of now: its names, its postings in parts, and what it was made of the former one by."""

    names: EncodedNames
    parts: Sequence[StoredPostings]
    patch: RunPatch

    @property
    def place(self) -> tuple[str, str, int]:
        return str(self.names.namespace), self.names.domain, len(self.names)


@dataclass(frozen=True, slots=True)
class _Made:
    """A segment of now, its postings, files of it that are new, and the patch that makes them."""

    entry: SegmentEntry
    postings: Sequence[StoredPostings]
    files: Sequence[FramedFile] = ()
    patch: SegmentPatch | None = None
    duplicates: int = 0


@dataclass(slots=True)
class _Carrying:
    store: Store
    manifest: Manifest
    selectors: KeptSelectors
    property_keys: tuple[str, ...]
    checks: SegmentChecks
    puts: SegmentPuts
    patterns: CompiledPatterns = field(default_factory=CompiledPatterns)
    tallies: TallyWriter = field(default_factory=TallyWriter)
    segments: list[SegmentResult] = field(default_factory=list)
    random: Random = field(default_factory=Random)

    def read(self, numbers: range, *, names: bool, whole: bool) -> list[_Piece] | None:
        """The segments with these numbers, or ``None`` if a file is damaged.

        Their ``names`` are read if they are needed, and if they are to be verified as a ``whole``.
        """
        pieces: list[_Piece] = []
        for number in numbers:
            entry = self.manifest.segments[number]
            needed = names or whole or self.selectors.changed(entry)
            try:
                data = read_verified(self.store, entry.postings)
                found = read_verified(self.store, entry) if needed else _end_of(self.store, entry)
            except (InvalidGeneration, DamagedFile, StoreFailed):
                return None
            stored = read_postings(data, entry.postings.name)
            self.checks.check_runs(number, stored)
            if not needed:
                pieces.append(_Piece(entry, stored))
                continue
            segment = Segment(found, entry.name, stored, entry.postings.name)
            runs = list(self.checks.runs(number, segment) if whole else segment.runs(checked=True))
            if whole:
                self.checks.check_end(number, last_place(runs[-1]))
            pieces.append(_Piece(entry, stored, runs))
        return pieces

    def add(self, made: Sequence[_Made]) -> None:
        """Store the segments of a stretch, and count what their selectors pick."""
        for one in made:
            for run in one.postings:
                self.tallies.add(run.namespace, run.domain, run.entries)
            result = SegmentResult(one.entry, duplicates=one.duplicates)
            self.segments += self.puts.add(result, one.files, one.patch)

    def carried(self, pieces: Sequence[_Piece], changes: NameChanges | None) -> list[_Made] | None:
        """The segments of a stretch after its changes, or ``None`` if they would begin at other names."""
        try:
            return self._carried(pieces, changes)
        except (InvalidListing, UnicodeDecodeError, pa.ArrowInvalid) as error:
            raise InvalidGeneration(pieces[0].entry.name, f"its names: {error!s:.200}") from None

    def _carried(self, pieces: Sequence[_Piece], changes: NameChanges | None) -> list[_Made] | None:
        found = None if changes is None else _Stretch.of(pieces, changes, self.property_keys)
        if found is None or not found.changed:
            twice = 0 if found is None else found.twice
            return [
                self._of_names_before(piece, found, number, 0 if number else twice)
                for number, piece in enumerate(pieces)
            ]
        runs = [
            [self._run(found, part) for part in found.runs(number, piece) if part.size]
            for number, piece in enumerate(pieces)
        ]
        if not any(runs):
            return []  # the first stretch of all, without its names
        if not self._cut_alike(pieces, found, runs):
            return None
        made: list[_Made] = []
        for number, (piece, own) in enumerate(zip(pieces, runs, strict=True)):
            twice = 0 if number else found.twice
            if found.changes(number):
                made.append(self._written(piece, own, twice, names=True))
            else:
                made.append(self._of_names_before(piece, found, number, twice))
        return made

    def _of_names_before(self, piece: _Piece, found: _Stretch | None, number: int, twice: int) -> _Made:
        """A segment with the names of before, of which no more than the selectors changed."""
        if not self.selectors.changed(piece.entry):
            return _Made(piece.entry, piece.postings, duplicates=twice)
        if found is None:
            runs = [
                self._of(run, RunPatch(EncodedNames.of(run.namespace, run.domain, [])), None)
                for run in piece.runs
            ]
        else:
            runs = [self._run(found, part) for part in found.runs(number, piece)]
        return self._written(piece, runs, twice, names=False)

    def _cut_alike(self, pieces: Sequence[_Piece], found: _Stretch, runs: Sequence[Sequence[_Run]]) -> bool:
        """Whether the pieces of a stretch surely begin where they would if it was made anew."""
        if not all(runs):
            return False
        sizes = [sum(int(run.names.text_offsets[-1]) - len(run.names) for run in own) for own in runs]
        largest = self.manifest.largest_segment_bytes
        if sum(sizes) <= largest:
            return len(pieces) == 1
        if max(sizes) > largest or np.isin(found.starts[1:], found.gone).any():
            return False
        # What has the names between two beginnings before has them now, unless one that came would begin there.
        target = self.manifest.segment_bytes
        firsts = [
            cut_levels(
                *piece.entry.runs[0][:2],
                pa.array([piece.entry.first_local], pa.large_string()),
                target=target,
            )[0]
            for piece in pieces
        ]
        levels = np.concatenate(firsts)
        came = [
            cut_levels(*run.place[:2], run.patch.came.names, target=target)[0]
            for own in runs
            for run in own
            if len(run.patch.came)
        ]
        if min((int(own.min()) for own in came), default=2**62) <= int(levels[1:].max()):
            return False
        return piece_starts(levels, np.array(sizes), largest) == list(range(len(pieces)))

    def _run(self, stretch: _Stretch, part: _RunChanges) -> _Run:
        """A run after its changes."""
        own = EncodedNames.of(part.namespace, part.domain, part.came_names, ordered=True)
        picked: list[tuple[bytes, _Array]] = []
        if len(own):
            values = dict(zip(self.property_keys, part.came.properties, strict=True))
            place = (part.namespace, part.domain)
            for key, rows in match_selectors(own, values, self.selectors.carried(place), self.patterns):
                picked.append((key, np.arange(*rows) if isinstance(rows, tuple) else rows))
        patch = RunPatch(own, part.gone, part.before, [item for item in picked if len(item[1])])
        return self._of(part.former, patch, stretch.values(part, self.property_keys))

    def _of(
        self,
        former: SegmentRun | None,
        patch: RunPatch,
        values: Mapping[str, pa.LargeStringArray] | None,
    ) -> _Run:
        """A run after a patch, with the postings of added selectors beside those that are carried."""
        names = patch.names(None if former is None else former.names)
        added = self.selectors.added(patch.place)
        if added:
            collected = PostingsCollector(names)
            for key, found in match_selectors(names, values or {}, added, self.patterns):
                collected.add(key, found)
            _, (made,) = collected.finish()
            words = np.concatenate([np.empty(0, "<u4"), *made.words])
            before = [] if former is None else entry_keys(former.entries)
            patch = replace(
                patch,
                added=StoredPostings(*patch.place, NOTHING_ASKED.digest, len(names), made.entries, words),
                dropped=frozenset(key for key, _ in added).intersection(before),
            )
        return _Run(names, patch.postings(None if former is None else _stored(former), names), patch)

    def _written(self, piece: _Piece, runs: Sequence[_Run], duplicates: int, *, names: bool) -> _Made:
        """A segment of these runs: its postings, and its ``names`` if they changed."""
        postings = merge_postings(
            [run.place for run in runs], [[part] for run in runs for part in run.parts], self.selectors.now
        )
        data = postings.file.read()
        postings.file.seek(0)
        read = read_postings(pa.py_buffer(data), postings.name)
        entry = replace(piece.entry, postings=FileEntry(postings.name, postings.size))
        patches = [run.patch for run in runs]
        if not names:
            patch = SegmentPatch.between(piece.entry, entry, patches)
            return _Made(entry, read, [postings], patch, duplicates)
        writer = NamesWriter()
        for run in runs:
            writer.add_run(run.names)
        first, places = writer.first_local, tuple(writer.runs)
        file = writer.finish()
        entry = replace(entry, name=file.name, size=file.size, first_local=first, runs=places)
        patch = SegmentPatch.between(piece.entry, entry, patches)
        return _Made(entry, read, [postings, file], patch, duplicates)


@dataclass(frozen=True, slots=True)
class _RunChanges:
    """The changes of a run: the former one if there was one, and which of its rows went; the names that came, and the
    rows in front of which they come. ``first`` is the run's first row of now in its stretch."""

    namespace: str
    domain: str
    former: SegmentRun | None
    first: int
    gone: _Array
    came: KeyedNames
    before: _Array

    @property
    def changes(self) -> bool:
        return bool(len(self.gone) or len(self.came))

    @property
    def size(self) -> int:
        """The names of now."""
        return (0 if self.former is None else len(self.former.names)) - len(self.gone) + len(self.came)

    @property
    def came_names(self) -> pa.LargeStringArray:
        return local_names(self.came.keys, self.namespace)


@dataclass(frozen=True, slots=True)
class _Stretch:
    """The changes of a stretch. ``starts`` are the first rows of its pieces, and ``size`` all rows.

    ``twice`` counts names that were staged more than once. ``gone`` are rows, ``came`` are in order, ``before`` are the
    rows in front of which they come. ``all_values`` has the staged properties of each row of now, if all names are
    staged.
    """

    starts: _Array
    size: int
    gone: _Array
    came: KeyedNames
    before: _Array
    twice: int
    all_values: tuple[pa.LargeStringArray, ...] | None

    @classmethod
    def of(
        cls, pieces: Sequence[_Piece], changes: NameChanges, property_keys: Sequence[str]
    ) -> _Stretch | None:
        starts = np.cumsum([0, *(piece.entry.names for piece in pieces)])
        runs = _KeysOfRuns([run for piece in pieces for run in piece.runs])
        staged, values, twice = changes.staged, None, 0
        if changes.keys is not None:
            came, repeated = ordered_names(staged, property_keys)
            changed = pa.array(changes.keys, pa.large_binary())
            rows = np.maximum(segment_ids(runs, changed) - 1, 0)
            same = pc.equal(runs.take(pa.array(rows)), changed).to_numpy(zero_copy_only=False)
            gone, before = rows[same], segment_ids(runs, came.keys)
            return cls(starts[:-1], len(runs), gone, came, before, len(repeated), None)
        former = runs.keys()
        if property_keys:
            staged, repeated = ordered_names(staged, property_keys)
            twice, values = len(repeated), staged.properties
        found = _difference(former, staged.keys) if is_ascending(staged.keys) else None
        if found is not None:
            gone, rows, before = found
            return cls(starts[:-1], len(runs), gone, staged.take(rows), before, twice, values)
        at = pc.index_in(staged.keys, former)
        known = at.drop_null().to_numpy()
        if len(known) > len(former) or np.bincount(known, minlength=1).max() > 1:
            staged, repeated = ordered_names(staged, property_keys)
            twice = len(repeated)
            at = pc.index_in(staged.keys, former)
            known = at.drop_null().to_numpy()
        is_new = at.is_null().to_numpy(zero_copy_only=False)
        came, repeated = ordered_names(staged.take(np.flatnonzero(is_new)), property_keys)
        gone = np.setdiff1d(np.arange(len(former)), known, assume_unique=True)
        before = segment_ids(former, came.keys)
        return cls(starts[:-1], len(runs), gone, came, before, twice + len(repeated), values)

    @property
    def changed(self) -> bool:
        return bool(len(self.gone) or len(self.came))

    def _of_piece(self, number: int) -> tuple[_Array, _Array]:
        """The rows that went of a piece, and the numbers of the names that came to it."""
        low = int(self.starts[number])
        high = int(self.starts[number + 1]) if number + 1 < len(self.starts) else self.size
        went = self.gone[(self.gone >= low) & (self.gone < high)]
        # In front of the first row of a piece is behind the last one of the piece before.
        own = np.searchsorted(self.starts[1:], self.before, side="left")
        return went, np.flatnonzero(own == number)

    def changes(self, number: int) -> bool:
        """Whether the names of a piece change."""
        return any(map(len, self._of_piece(number)))

    def runs(self, number: int, piece: _Piece) -> Iterator[_RunChanges]:
        """The runs of a piece in order, each with its changes."""
        gone, came = self._of_piece(number)
        names = self.came.take(came)
        before = self.before[came]
        arrived = {
            (namespace, domain): (low, high) for namespace, domain, low, high in namespace_ranges(names.keys)
        }
        first = int(self.starts[number])
        now = (
            first - int(np.searchsorted(self.gone, first)) + int(np.searchsorted(self.before, first, "right"))
        )
        former: dict[_Place, tuple[SegmentRun, int]] = {}
        for run in piece.runs:
            former[run.namespace, run.domain] = (run, first)
            first += len(run.names)
        for place in sorted(
            former.keys() | arrived.keys(), key=lambda one: (one[0], DOMAIN_ORDER.index(one[1]))
        ):
            low, high = arrived.get(place, (0, 0))
            known = former.get(place)
            start = 0 if known is None else known[1]
            stop = start if known is None else start + len(known[0].names)
            changes = _RunChanges(
                *place,
                None if known is None else known[0],
                now,
                gone[(gone >= start) & (gone < stop)] - start,
                names.slice(low, high),
                before[low:high] - start if known is not None else np.zeros(high - low, np.int64),
            )
            now += changes.size
            yield changes

    def values(
        self, part: _RunChanges, property_keys: Sequence[str]
    ) -> Mapping[str, pa.LargeStringArray] | None:
        """The values of the properties of a run of now, if all names are staged."""
        if self.all_values is None:
            return None
        own = (column.slice(part.first, part.size) for column in self.all_values)
        return dict(zip(property_keys, own, strict=True))


@dataclass(slots=True)
class _KeysOfRuns:
    """The keys of the names of neighbouring runs, made of those alone that are asked for."""

    own: Sequence[SegmentRun]
    starts: _Array = field(init=False)

    def __post_init__(self) -> None:
        self.starts = np.cumsum([0, *(len(run.names) for run in self.own)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def keys(self) -> pa.LargeBinaryArray:
        return pa.concat_arrays([order_key(run.namespace, run.domain, run.names.names) for run in self.own])

    def take(self, rows: pa.Int64Array) -> pa.LargeBinaryArray:
        wanted = rows.to_numpy()
        numbers = np.searchsorted(self.starts, wanted, side="right") - 1
        parts = [pa.array([], pa.large_binary())]
        for number in np.unique(numbers).tolist():
            run, own = self.own[number], wanted[numbers == number] - self.starts[number]
            fields = run.names.fields.take(pa.array(own))
            names = EncodedNames.decode(run.namespace, run.domain, fields, checked=True).names
            parts.append(order_key(run.namespace, run.domain, names))
        return pa.concat_arrays(parts).take(pa.array(np.argsort(np.argsort(numbers, kind="stable"))))


def _difference(
    former: pa.LargeBinaryArray, now: pa.LargeBinaryArray
) -> tuple[_Array, _Array, _Array] | None:
    """The rows of ascending ``former`` keys that are not among those of now, which ascend too, the rows of now that are
    new, and the former rows in front of which they come; ``None`` if there are many."""
    gone: list[int] = []
    came: list[int] = []
    before: list[int] = []
    at = row = 0
    while at < len(former) and row < len(now):
        size = min(_COMPARED, len(former) - at, len(now) - row)
        first = pc.index(pc.equal(former.slice(at, size), now.slice(row, size)), False).as_py()
        if first < 0:
            at, row = at + size, row + size
            continue
        at, row = at + first, row + first
        if former[at].as_py() < now[row].as_py():
            gone.append(at)
            at += 1
        else:
            came.append(row)
            before.append(at)
            row += 1
        if (len(gone) + len(came)) * _ALIKE > len(former) + _COMPARED:
            return None
    came += range(row, len(now))
    before += [len(former)] * (len(now) - row)
    gone += range(at, len(former))
    return np.array(gone, np.int64), np.array(came, np.int64), np.array(before, np.int64)


def _end_of(store: Store, entry: FileEntry) -> pa.Buffer:
    """The end of a names file. Raises :exc:`InvalidGeneration` if it is none."""
    try:
        found = store.get_range(entry.name, entry.size - len(NAMES.tail), entry.size)
    except StoreFailed as error:
        raise InvalidGeneration(entry.name, str(error)) from None
    if found != NAMES.tail:
        raise InvalidGeneration(entry.name, "it does not end as a segment does")
    return pa.py_buffer(found)


def _stored(run: SegmentRun) -> StoredPostings:
    return StoredPostings(run.namespace, run.domain, run.asked_digest, len(run.names), run.entries, run.words)
