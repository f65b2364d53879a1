"""Carrying segments of the last generation over to the names and questions of now, stretch by stretch.

Deleted names are taken out, new ones are put in and matched, and the postings of all others move with their rows. If
the selectors of a namespace changed, the added ones are matched with all names, and the removed ones are left out.
Unchanged segments stay as they are: their postings are read for the counts, and only the end of their names file. A
share of them, drawn at random, is read whole, so that none stays damaged for ever.

A stretch is left to be made anew if a file of it is found damaged, or if it would be cut at other names. If a segment
has the right checksum and still contradicts the manifest or the format, its writer was faulty, and nothing of that
generation is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from random import Random
from typing import Final

import numpy as np
import pyarrow as pa

from broker_core import EncodedNames
from broker_core.errors import InvalidListing
from broker_core_spark.arrow_columns import Array
from broker_core_spark.batch.incremental.changed_names import NameChanges, RunChanges, StretchChanges
from broker_core_spark.batch.incremental.segment_reuse import first_key
from broker_core_spark.batch.segments.match_selectors import CompiledPatterns, match_selectors
from broker_core_spark.batch.segments.segment_puts import SegmentPuts, SegmentResult
from broker_core_spark.batch.segments.staged_selectors import KeptSelectors
from broker_core_spark.batch.segments.tallies import TallyBlock, TallyWriter
from broker_core_spark.batch.staging.order_keys import local_names, namespace_ranges
from broker_core_spark.batch.staging.sorted_runs import joined_names
from broker_core_spark.errors import DamagedFile, InvalidGeneration, StoreFailed
from broker_core_spark.format import (
    NAMES,
    NOTHING_ASKED,
    FileEntry,
    FramedFile,
    Manifest,
    Matches,
    NamesWriter,
    PostingsCollector,
    RunPatch,
    Segment,
    SegmentChecks,
    SegmentEntry,
    SegmentPatch,
    SegmentRun,
    StoredPostings,
    cut_levels,
    last_place,
    merge_postings,
    piece_starts,
    read_postings,
    split_keys,
)
from broker_core_spark.store import Store, read_verified

__all__ = ["CarriedSegments", "carry_segments"]

#: The share of the kept segments that are read whole.
_AGAIN: Final = 1 / 32
#: Bytes of names of stretches that are held together, so that their new names are matched at once.
_TOGETHER: Final = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CarriedSegments:
    """The segments in the store, the places of the tallies of their selectors, and the stretches to be made anew."""

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
    if its names are looked at, wrong names.
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
        together: list[_Stretch] = []
        last: int | None = None

        def carry() -> None:
            nonlocal last
            carrying.match(together)
            for one in together:
                with _names_of(one.pieces):
                    made = carrying.carried(one.pieces, one.found)
                if made is None:
                    anew.append(one.number)
                    continue
                if last is None or one.number != last + 1:
                    carrying.tallies.begin(first_key(every[one.number][0]))
                last = one.number
                carrying.add(made, one.digest)
            together.clear()

        for number, staged in stretches:
            changes = None if staged is not None and staged.none else staged
            whole = changes is None and carrying.random.random() < again
            within = range(numbers[number], numbers[number + 1])
            pieces = carrying.read(within, names=changes is not None, whole=whole)
            if pieces is None:
                anew.append(number)
                continue
            found = None
            if changes is not None:
                with _names_of(pieces):
                    found = StretchChanges.of(
                        [piece.runs for piece in pieces], changes, carrying.property_keys
                    )
            together.append(_Stretch(number, pieces, found, "" if staged is None else staged.digest))
            if sum(one.size for one in together) > _TOGETHER:
                carry()
        carry()
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
class _Stretch:
    """A stretch under way: its pieces, the changes of its names, if any are known, and their digest."""

    number: int
    pieces: Sequence[_Piece]
    found: StretchChanges | None
    digest: str

    @property
    def size(self) -> int:
        """Bytes of names that are held."""
        return sum(piece.entry.size for piece in self.pieces if piece.runs)


@dataclass(slots=True)
class _Matched:
    """The picks of selectors among the new names of a place: the selector of each pair, and its row, by row.

    ``used`` rows are of runs that were made already.
    """

    keys: Sequence[bytes]
    selectors: Array
    rows: Array
    used: int = 0

    @classmethod
    def of(cls, found: Iterable[tuple[bytes, Matches]]) -> _Matched:
        keys: list[bytes] = []
        parts = [np.empty(0, np.int64)]
        for key, rows in found:
            keys.append(key)
            parts.append(np.arange(*rows) if isinstance(rows, tuple) else rows.astype(np.int64))
        rows = np.concatenate(parts)
        order = np.argsort(rows, kind="stable")
        selectors = np.repeat(np.arange(len(keys)), [len(part) for part in parts[1:]])
        return cls(keys, selectors[order], rows[order])

    def next(self, size: int) -> list[tuple[bytes, Array]]:
        """The key of each selector that picks some of the next ``size`` names, and their rows among them."""
        low, high = np.searchsorted(self.rows, (self.used, self.used + size))
        order = np.argsort(self.selectors[low:high], kind="stable")
        selectors, rows = self.selectors[low:high][order], self.rows[low:high][order] - self.used
        self.used += size
        numbers, starts = np.unique(selectors, return_index=True)
        parts = np.split(rows, starts[1:])
        return [(self.keys[number], part) for number, part in zip(numbers.tolist(), parts, strict=False)]


@dataclass(frozen=True, slots=True)
class _Run:
    """A present run: its names, its postings in parts, and its changes to the former run."""

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
    matched: dict[tuple[str, str], _Matched] = field(default_factory=dict)

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

    def add(self, made: Sequence[_Made], digest: str) -> None:
        """Store the segments of a stretch, and count the picks of their selectors."""
        for one in made:
            for run in one.postings:
                self.tallies.add(run.namespace, run.domain, run.entries)
            result = SegmentResult(one.entry, duplicates=one.duplicates, digest=digest)
            self.segments += self.puts.add(result, one.files, one.patch)

    def match(self, stretches: Iterable[_Stretch]) -> None:
        """Match the new names of stretches, in order: those of many as fast as those of one."""
        came: dict[tuple[str, str], list[pa.RecordBatch]] = {}
        for names in (one.found.came for one in stretches if one.found is not None):
            for namespace, domain, low, high in namespace_ranges(names["key"]):
                came.setdefault((namespace, domain), []).append(names.slice(low, high - low))
        self.matched = {}
        for place, parts in came.items():
            names = joined_names(parts, len(self.property_keys))
            own = EncodedNames.of(*place, local_names(names["key"], place[0]), ordered=True)
            values = dict(zip(self.property_keys, names.columns[1:], strict=True))
            selectors = self.selectors.carried(place)
            self.matched[place] = _Matched.of(match_selectors(own, values, selectors, self.patterns))

    def carried(self, pieces: Sequence[_Piece], found: StretchChanges | None) -> list[_Made] | None:
        """The segments of a stretch after its changes, or ``None`` if they would begin at other names."""
        if found is None or not found.changed:
            twice = 0 if found is None else found.twice
            return [
                self._of_names_before(piece, found, number, 0 if number else twice)
                for number, piece in enumerate(pieces)
            ]
        runs = [
            [self._run(found, part) for part in found.runs(number, piece.runs) if part.size]
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

    def _of_names_before(self, piece: _Piece, found: StretchChanges | None, number: int, twice: int) -> _Made:
        """A segment with the names of before, of which no more than the selectors changed."""
        if not self.selectors.changed(piece.entry):
            return _Made(piece.entry, piece.postings, duplicates=twice)
        if found is None:
            runs = [
                self._of(run, RunPatch(EncodedNames.of(run.namespace, run.domain, [])), None)
                for run in piece.runs
            ]
        else:
            runs = [self._run(found, part) for part in found.runs(number, piece.runs)]
        return self._written(piece, runs, twice, names=False)

    def _cut_alike(
        self, pieces: Sequence[_Piece], found: StretchChanges, runs: Sequence[Sequence[_Run]]
    ) -> bool:
        """Whether the pieces of a stretch surely begin where they would if it was made anew."""
        if not all(runs):
            return False
        sizes = [sum(int(run.names.text_offsets[-1]) - len(run.names) for run in own) for own in runs]
        largest = self.manifest.largest_segment_bytes
        if sum(sizes) <= largest:
            return len(pieces) == 1
        if max(sizes) > largest or np.isin(found.starts[1:], found.gone).any():
            return False
        # Names between two beginnings stay together, unless a new name would begin a piece there.
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

    def _run(self, stretch: StretchChanges, part: RunChanges) -> _Run:
        """A run after its changes."""
        own = EncodedNames.of(
            part.namespace, part.domain, local_names(part.came["key"], part.namespace), ordered=True
        )
        picked = self.matched[part.namespace, part.domain].next(len(own)) if len(own) else []
        patch = RunPatch(own, part.gone, part.before, picked)
        return self._of(part.former, patch, stretch.values(part, self.property_keys))

    def _of(
        self,
        former: SegmentRun | None,
        patch: RunPatch,
        values: Mapping[str, pa.LargeStringArray] | None,
    ) -> _Run:
        """A run after a patch, with the postings of added selectors beside the carried ones."""
        names = patch.names(None if former is None else former.names)
        added = self.selectors.added(patch.place)
        if added:
            collected = PostingsCollector(names)
            for key, found in match_selectors(names, values or {}, added, self.patterns):
                collected.add(key, found)
            _, (made,) = collected.finish()
            words = np.concatenate([np.empty(0, "<u4"), *made.words])
            before = [] if former is None else split_keys(former.entries["key"])
            patch = replace(
                patch,
                added=StoredPostings(*patch.place, NOTHING_ASKED.digest, len(names), made.entries, words),
                dropped=frozenset(key for key, _ in added).intersection(before),
            )
        patch, parts = patch.hashed(None if former is None else former.postings, names)
        return _Run(names, parts, patch)

    def _written(self, piece: _Piece, runs: Sequence[_Run], duplicates: int, *, names: bool) -> _Made:
        """A segment of these runs: its postings, and its ``names`` if they changed."""
        postings = merge_postings(
            [run.place for run in runs], [[part] for run in runs for part in run.parts], self.selectors.now
        )
        data = postings.file.read()
        postings.file.seek(0)
        read = read_postings(pa.py_buffer(data), postings.name)
        entry = replace(piece.entry, postings=postings.entry)
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


@contextmanager
def _names_of(pieces: Sequence[_Piece]) -> Iterator[None]:
    """Turns errors of names that were not verified into :exc:`InvalidGeneration`."""
    try:
        yield
    except (InvalidListing, UnicodeDecodeError, pa.ArrowInvalid) as error:
        raise InvalidGeneration(pieces[0].entry.name, f"its names: {error!s:.200}") from None


def _end_of(store: Store, entry: FileEntry) -> pa.Buffer:
    """The end of a names file. Raises :exc:`InvalidGeneration` if it is none."""
    try:
        found = store.get_range(entry.name, entry.size - len(NAMES.tail), entry.size)
    except StoreFailed as error:
        raise InvalidGeneration(entry.name, str(error)) from None
    if found != NAMES.tail:
        raise InvalidGeneration(entry.name, "it does not end as a segment does")
    return pa.py_buffer(found)
