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
from itertools import pairwise
from random import Random
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa

from broker_core import EncodedNames
from broker_core.errors import InvalidListing
from broker_core_spark.arrow_columns import Array
from broker_core_spark.batch.incremental.changed_names import NameChanges, RunChanges, run_changes
from broker_core_spark.batch.incremental.segment_reuse import first_key
from broker_core_spark.batch.segments.match_selectors import (
    Compiled,
    collected_matches,
    compiled_patterns,
)
from broker_core_spark.batch.segments.segment_puts import SegmentPuts, SegmentResult, StoredSegments
from broker_core_spark.batch.segments.staged_selectors import KeptSelectors
from broker_core_spark.batch.segments.tallies import TallyWriter
from broker_core_spark.batch.staging.order_keys import local_names
from broker_core_spark.batch.staging.sorted_runs import joined_names
from broker_core_spark.errors import DamagedFile, InvalidGeneration, StoreFailed
from broker_core_spark.format import (
    NAMES,
    NO_SELECTORS,
    FileEntry,
    FramedFile,
    Manifest,
    NamesWriter,
    RunPatch,
    SegmentChecks,
    SegmentEntry,
    SegmentPatch,
    SegmentRun,
    StoredPostings,
    cut_levels,
    joined_rows,
    last_place,
    merge_postings,
    piece_starts,
    read_postings,
    segment_runs,
    split_keys,
)
from broker_core_spark.store import Store, read_verified

__all__ = ["carry_segments"]

#: The share of the kept segments that are read whole.
_AGAIN: Final = 1 / 32
#: Bytes of files of stretches that are held together, so that their new names are matched at once.
_TOGETHER: Final = 64 * 1024 * 1024
#: A level at which no stretch is cut.
_NEVER: Final = 65
_Place: TypeAlias = tuple[str, str]
#: The names of a run that came, and the selectors that pick some of them, with the picked rows.
_Came: TypeAlias = tuple[EncodedNames, list[tuple[bytes, Array]]]


def carry_segments(
    store: Store,
    manifest: Manifest,
    stretches: Iterable[tuple[int, NameChanges]],
    selectors: KeptSelectors,
    folder: str,
    property_keys: Sequence[str] = (),
    again: float = _AGAIN,
) -> StoredSegments:
    """Carry the ``stretches`` of ``manifest`` with these numbers, which ascend, over to their changes, one at a time.

    ``folder`` is the prefix of the file of tallies. ``again`` is the share of the stretches without changes that are
    read whole. Raises :exc:`InvalidGeneration` for a segment with the right checksum, but wrong runs or selectors or,
    if its names are looked at, wrong names.
    """
    starts = np.cumsum([0, *map(len, manifest.stretches())]).tolist()
    checks = SegmentChecks(manifest, keys=selectors.before)
    carrying = _Carrying(store, manifest, selectors, tuple(property_keys), checks, SegmentPuts(store), again)
    together: list[_Stretch] = []
    for number, changes in stretches:
        stretch = carrying.read(number, range(starts[number], starts[number + 1]), changes)
        if stretch is not None:
            together.append(stretch)
        if sum(one.size for one in together) > _TOGETHER:
            carrying.carry(together)
            together.clear()
    carrying.carry(together)
    tallies = tuple(carrying.tallies.finish(store, folder))
    return StoredSegments(carrying.puts.finish(), tallies, anew=tuple(carrying.anew))


@dataclass(frozen=True, slots=True)
class _Piece:
    """A segment of the last generation: its postings, and if its names are needed, its runs."""

    entry: SegmentEntry
    postings: Sequence[StoredPostings]
    runs: Sequence[SegmentRun]


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A stretch under way: its pieces and the changes of their runs, the digest of its names if that is known, and how
    many of them were staged more than once.
    """

    number: int
    pieces: Sequence[_Piece]
    runs: Sequence[Sequence[RunChanges]]
    digest: str
    twice: int

    @property
    def size(self) -> int:
        """Bytes of postings and names that are held."""
        return sum(
            piece.entry.postings.size + (piece.entry.size if piece.runs else 0) for piece in self.pieces
        )


@dataclass(frozen=True, slots=True)
class _Run:
    """A present run: its names, its postings in parts, and its changes to the former run."""

    names: EncodedNames
    parts: Sequence[StoredPostings]
    patch: RunPatch


@dataclass(slots=True)
class _Carrying:
    store: Store
    manifest: Manifest
    selectors: KeptSelectors
    property_keys: tuple[str, ...]
    checks: SegmentChecks
    puts: SegmentPuts
    again: float
    compiled: Compiled = field(default_factory=compiled_patterns)
    tallies: TallyWriter = field(default_factory=TallyWriter)
    anew: list[int] = field(default_factory=list)
    random: Random = field(default_factory=Random)
    #: The number of the stretch that was stored last.
    last: int = -2

    def read(self, number: int, segments: range, changes: NameChanges) -> _Stretch | None:
        """The stretch of the segments with these numbers, or ``None`` if a file is damaged: it is made anew.

        Names are read if they are needed. A share of the other segments is read whole and verified.
        """
        whole = changes.none and self.random.random() < self.again
        pieces: list[_Piece] = []
        for at in segments:
            entry = self.manifest.segments[at]
            needed = whole or not changes.none or self.selectors.changed(entry)
            try:
                data = read_verified(self.store, entry.postings)
                found = read_verified(self.store, entry) if needed else _end_of(self.store, entry)
            except (InvalidGeneration, DamagedFile, StoreFailed):
                self.anew.append(number)
                return None
            stored = read_postings(data, entry.postings.name)
            self.checks.check_runs(at, stored)
            runs: list[SegmentRun] = []
            if needed:
                own = segment_runs(entry, found, stored, checked=not whole)
                runs += self.checks.runs(at, stored, own) if whole else own
            if whole:
                self.checks.check_end(at, last_place(runs[-1]))
            pieces.append(_Piece(entry, stored, runs))
        with _names_of(pieces):
            found_changes = run_changes(
                [first_key(piece.entry) for piece in pieces],
                [piece.runs for piece in pieces],
                NameChanges() if changes.none else changes,
            )
        return _Stretch(number, pieces, found_changes, changes.digest, changes.twice)

    def carry(self, stretches: Sequence[_Stretch]) -> None:
        """Store the segments of stretches after their changes. The names that came are matched together."""
        came: dict[_Place, list[pa.RecordBatch]] = {}
        for run in (run for one in stretches for own in one.runs for run in own if len(run.came)):
            came.setdefault(run.place, []).append(run.came)
        matched = {place: self._matched(place, parts) for place, parts in came.items()}
        for one in stretches:
            with _names_of(one.pieces):
                self._store(one, matched)

    def _matched(self, place: _Place, parts: Sequence[pa.RecordBatch]) -> Iterator[_Came]:
        """Names of a place in parts that follow each other, and the picks of selectors among them."""
        rows = joined_names(parts, len(self.property_keys))
        names = EncodedNames.of(*place, local_names(rows["key"], place[0]), ordered=True)
        values = dict(zip(self.property_keys, rows.columns[1:], strict=True))
        bounds = np.cumsum([0, *map(len, parts)]).tolist()
        _, runs = collected_matches(names, values, self.selectors.carried(place), self.compiled, bounds)
        for (low, high), run in zip(pairwise(bounds), runs, strict=True):
            picked = joined_rows(run.entries, run.joined_words, run.names)
            ends = np.cumsum(run.entries["count"], dtype=np.int64)
            keys = split_keys(run.entries["key"])
            yield names.slice(low, high), list(zip(keys, np.split(picked, ends[:-1]), strict=False))

    def _store(self, one: _Stretch, matched: Mapping[_Place, Iterator[_Came]]) -> None:
        """Store the segments of a stretch, unless it is made anew because they would begin at other names."""
        changed = [any(run.changes for run in own) for own in one.runs]
        runs = [[self._run(run, matched) for run in own if run.size] for own in one.runs]
        # The first stretch of all may lose all of its names.
        if any(changed) and any(runs) and not self._cut_alike(one, runs):
            self.anew.append(one.number)
            return
        if one.number != self.last + 1:
            self.tallies.begin(first_key(one.pieces[0].entry))
        self.last = one.number
        twice = one.twice
        for piece, own, names in zip(one.pieces, runs, changed, strict=True):
            if own or not names:
                self._store_segment(piece, own, names=names, twice=twice, digest=one.digest)
            twice = 0

    def _cut_alike(self, one: _Stretch, runs: Sequence[Sequence[_Run]]) -> bool:
        """Whether the pieces of a stretch begin where they would if it was made anew.

        The other names between two beginnings are cut nowhere, unless their piece is too large now.
        """
        levels: list[int] = []
        sizes: list[int] = []
        # Bytes of names are counted if those of their columns, which are more, are too many.
        small = (
            sum(run.names.fields.nbytes for own in runs for run in own) <= self.manifest.largest_segment_bytes
        )
        for piece, changes, own in zip(one.pieces, one.runs, runs, strict=True):
            namespace, domain, _ = piece.entry.runs[0]
            first = self._level(namespace, domain, pa.array([piece.entry.first_local], pa.large_string()))
            came = [self._level(*run.patch.place, run.patch.came.names) for run in own if len(run.patch.came)]
            loses_first = bool(levels) and 0 in changes[0].gone
            levels += [_NEVER if loses_first else first, min(came, default=_NEVER)]
            sizes += [0, 0 if small else sum(int(run.names.text_offsets[-1]) - len(run.names) for run in own)]
        starts = piece_starts(np.array(levels), np.array(sizes), self.manifest.largest_segment_bytes)
        return all(runs) and starts == list(range(0, len(levels), 2))

    def _level(self, namespace: str, domain: str, names: pa.LargeStringArray) -> int:
        """The first level at which one of these names begins a piece."""
        return int(cut_levels(namespace, domain, names, target=self.manifest.segment_bytes)[0].min())

    def _run(self, changes: RunChanges, matched: Mapping[_Place, Iterator[_Came]]) -> _Run:
        """A run after its changes, with the postings of added selectors beside the carried ones."""
        former, place = changes.former, changes.place
        came, picked = next(matched[place]) if len(changes.came) else (EncodedNames.of(*place, []), [])
        patch = RunPatch(came, changes.gone, changes.before, picked)
        names = patch.names(None if former is None else former.names)
        added = self.selectors.added(place)
        if added:
            # Selectors with properties are added only if all names are staged.
            values = dict(zip(self.property_keys, changes.properties, strict=False))
            _, (made,) = collected_matches(names, values, added, self.compiled)
            before = [] if former is None else split_keys(former.postings.entries["key"])
            patch = replace(
                patch,
                added=StoredPostings(
                    *place, NO_SELECTORS.digest, len(names), made.entries, made.joined_words
                ),
                dropped=frozenset(key for key, _ in added).intersection(before),
            )
        patch, parts = patch.postings(None if former is None else former.postings, names)
        return _Run(names, parts, patch)

    def _store_segment(
        self, piece: _Piece, runs: Sequence[_Run], *, names: bool, twice: int, digest: str
    ) -> None:
        """Store a segment of these runs: its postings if they change, and its ``names`` if they do."""
        entry, stored, patch = piece.entry, piece.postings, None
        files: list[FramedFile] = []
        if names or self.selectors.changed(entry):
            places = tuple((*run.patch.place, len(run.names)) for run in runs)
            postings = merge_postings(
                places, [part for run in runs for part in run.parts], self.selectors.now
            )
            data = b"".join(postings.data)
            stored = read_postings(pa.py_buffer(data), postings.name)
            # Views would hold all former postings in memory until the file is put, however little is left of them.
            files.append(replace(postings, data=[memoryview(data)]))
            entry = replace(entry, postings=postings.entry)
            if names:
                writer = NamesWriter()
                for run in runs:
                    writer.add_run(run.names)
                file = writer.finish()
                files.append(file)
                entry = replace(
                    entry, name=file.name, size=file.size, first_local=writer.first_local, runs=places
                )
            patch = SegmentPatch.between(piece.entry, entry, [run.patch for run in runs])
        for found in stored:
            self.tallies.add(found.namespace, found.domain, found.entries)
        self.puts.add(SegmentResult(entry, duplicates=twice, digest=digest), files, patch)


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
