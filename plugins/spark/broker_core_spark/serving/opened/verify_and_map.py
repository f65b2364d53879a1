"""Verifying and mapping a generation: each file is fetched to a private file, checked and laid out for look-ups.

The names of all segments become one column. Memory is bounded: segments are read one at a time, names go to files
without names, and postings stay in the private files that they were fetched to.

Segments that an open generation has verified are neither fetched nor verified again: their names are copied from one
column to the other, and their postings are shared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final

import numpy as np
import pyarrow as pa

from broker_core import EncodedNames
from broker_core_spark.arrow_columns import Array
from broker_core_spark.errors import DamagedFile, InvalidGeneration
from broker_core_spark.format import (
    FieldParts,
    Manifest,
    NamePlace,
    RunPatch,
    SegmentChecks,
    SegmentEntry,
    SegmentPatch,
    SegmentRun,
    SelectorKeys,
    StoredPostings,
    last_place,
    patch_limit,
    patch_name,
    patched_segment,
    read_postings,
    read_questions,
    rows_that_came,
    segment_runs,
)
from broker_core_spark.serving.opened.sample_rematch import rematch_sample
from broker_core_spark.store import PrivateFile, Store, fetch_verified

__all__ = ["NOTHING_MAPPED", "MappedFiles", "SampleChecks", "VerifiedSegment", "verify_and_map"]

_MOST_NAMES: Final = 2**31 - 1
#: The share of the selectors of a sample that are matched again in a segment that a patch made.
_OF_PATCHED: Final = 64
#: The most successive patches of a segment by which a broker makes the last segment from the first.
_MOST_PATCHES: Final = 8


@dataclass(frozen=True, slots=True)
class SampleChecks:
    """The amount of sample checks. Checksums and structure are always checked.

    ``hashed_bytes`` bounds the names whose hashes are computed again, in random order. ``rematched`` is the number of
    selectors of each run that RE2 matches again on some names. ``again`` is the share of the segments of the generation
    before that are fetched and verified again, so that later damage of the store is found. ``seed`` makes the sample
    repeatable.
    """

    hashed_bytes: int = 2 * 1024**3
    rematched: int = 64
    again: float = 1 / 32
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class VerifiedSegment:
    """A segment of an open generation: the row of its first name there, the place of its last one, its postings."""

    first: int
    last: NamePlace
    postings: Sequence[StoredPostings]


@dataclass(frozen=True, slots=True)
class MappedFiles:
    """The mapped files: the encoded names of all namespaces, the lines of the questions, and the verified segments.

    ``lines`` ascend and have their line ends. ``segments`` are in the order of their names.
    """

    names: pa.LargeBinaryArray
    lines: pa.LargeBinaryArray
    segments: Mapping[SegmentEntry, VerifiedSegment]

    @property
    def mapped_bytes(self) -> int:
        kept = sum(entry.postings.size for entry in self.segments)
        return kept + int(self.names.nbytes) + int(self.lines.nbytes)


_EMPTY: Final = pa.array([], pa.large_binary())
#: The mapped files before the first generation: none.
NOTHING_MAPPED: Final = MappedFiles(_EMPTY, _EMPTY, {})


def verify_and_map(
    store: Store,
    manifest: Manifest,
    directory: str | None,
    checks: SampleChecks,
    before: MappedFiles = NOTHING_MAPPED,
) -> MappedFiles:
    """Fetch, verify and map the files of a generation that ``before`` does not have.

    Raises :exc:`InvalidGeneration` and :exc:`StoreFailed`.
    """
    lines = fetch_verified(store, manifest.questions, directory)
    runs = SegmentChecks(manifest, read_questions(lines, manifest))
    for namespace, counts in manifest.totals.items():
        if sum(counts) > _MOST_NAMES:
            raise InvalidGeneration(manifest.entry.name, f"{namespace} has more than {_MOST_NAMES} names")
    total = max(1, sum(segment.postings.size for segment in manifest.segments))
    preceding: NamePlace | None = None
    random = Random(checks.seed)  # noqa: S311 (a sample; without a seed of the system's)
    former = {entry.files: one for entry, one in before.segments.items()}
    segments: dict[SegmentEntry, VerifiedSegment] = {}
    with PrivateFile(directory) as fields, PrivateFile(directory) as offsets:
        names = _NamesToMap(fields, offsets)
        for number, entry in enumerate(manifest.segments):
            first = names.count
            known = before.segments.get(entry)
            if known is not None and random.random() >= checks.again:
                runs.check_again(number, known.postings, preceding)
                names.add(FieldParts.of([before.names.slice(known.first, entry.names)]))
                segments[entry] = replace(known, first=first)
                preceding = known.last
                continue
            patched = _patched(store, entry, directory, runs.keys, before.names, former) if former else None
            if patched is None:
                fetched = fetch_verified(store, entry, directory)
                postings = read_postings(
                    fetch_verified(store, entry.postings, directory), entry.postings.name
                )
                found = segment_runs(entry, fetched, postings)
            else:
                postings, found = patched.postings, patched.runs(names)
            for at, run in enumerate(runs.runs(number, postings, found, preceding=preceding)):
                selectors = runs.selectors.get((run.namespace, run.domain), ())
                if patched is None:
                    _check_hashes(run, random, checks.hashed_bytes * entry.postings.size // total)
                    names.add(FieldParts.of([run.names.fields]))
                    rematch_sample(run, selectors, random, checks.rematched)
                else:
                    rematch_sample(run, selectors, random, checks.rematched // _OF_PATCHED, patched.came(at))
            preceding = last_place(run)
            segments[entry] = VerifiedSegment(first, preceding, postings)
        return MappedFiles(names.column(0), _lines(lines), segments)


def _check_hashes(run: SegmentRun, random: Random, most: int) -> None:
    """Check hashes of a run in random order, until those of ``most`` bytes of names were computed."""
    for index in random.sample(range(len(run.postings.entries)), len(run.postings.entries)):
        if most <= 0:
            break
        most -= run.check_hash(index)


def _lines(data: pa.Buffer) -> pa.LargeBinaryArray:
    """The lines of a file, each with its end."""
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n")) + 1
    offsets = pa.py_buffer(np.insert(ends, 0, 0).astype(np.int64))
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(ends), [None, offsets, data], null_count=0)


def _patched(
    store: Store,
    entry: SegmentEntry,
    directory: str | None,
    selectors: Mapping[tuple[str, str], SelectorKeys],
    before: pa.LargeBinaryArray,
    former: Mapping[tuple[str, str], VerifiedSegment],
) -> _PatchedSegment | None:
    """A segment made by patches, with the checksums of its files, or ``None`` if they have to be fetched.

    ``former`` are the segments of the generation before, by their files, ``before`` are its names.
    """
    patches: list[SegmentPatch] = []
    files = entry.files
    while files not in former:
        try:
            data = store.get(patch_name(files), patch_limit(entry))
            patches.insert(0, SegmentPatch.parse(data or b""))
        except (DamagedFile, ValueError):
            return None
        files = patches[0].former
        if len(patches) > _MOST_PATCHES:
            return None
    segment = former[files]
    runs, row = {}, segment.first
    for run in segment.postings:
        names = EncodedNames.decode(run.namespace, run.domain, before.slice(row, run.names), checked=True)
        runs[run.namespace, run.domain] = (names, run)
        row += run.names
    try:
        made, file = patched_segment(patches, entry, runs, selectors)
    except InvalidGeneration:
        return None
    with PrivateFile(directory) as private:
        private.write(file.data)
        postings = read_postings(private.mapped(), entry.postings.name)
    return _PatchedSegment(entry, postings, made)


@dataclass(frozen=True, slots=True)
class _PatchedSegment:
    """A segment that a patch made: its postings in a private file, and its names.

    All is verified but the patch's picks of selectors among new names, and postings of added selectors.
    """

    entry: SegmentEntry
    postings: list[StoredPostings]
    made: Sequence[tuple[RunPatch, FieldParts]]

    def came(self, number: int) -> Array:
        """The rows of the names that came to a run."""
        patch, _ = self.made[number]
        return rows_that_came(patch.gone, patch.before)

    def runs(self, mapped: _NamesToMap) -> Iterator[SegmentRun]:
        """The runs. The names of each are added to ``mapped`` first, which joins their parts."""
        for (patch, fields), own in zip(self.made, self.postings, strict=True):
            first = mapped.count
            mapped.add(fields)
            names = EncodedNames.decode(own.namespace, own.domain, mapped.column(first), checked=True)
            run = SegmentRun(self.entry.name, self.entry.postings.name, names, own)
            if patch.added is not None:
                run.check_entries()
            yield run


class _NamesToMap:
    """Writes the encoded names of all segments to the two files of one column."""

    def __init__(self, fields: PrivateFile, offsets: PrivateFile) -> None:
        self._fields = fields
        self._offsets = offsets
        self._offsets.write([np.zeros(1, "<i8")])
        #: The number of names so far.
        self.count = 0

    def add(self, names: FieldParts) -> None:
        """Append names."""
        self._offsets.write([self._fields.size + names.offsets[1:]])
        self._fields.write(names.data)
        self.count += len(names.offsets) - 1

    def column(self, first: int) -> pa.LargeBinaryArray:
        """The names from a row on, mapped."""
        buffers = [None, self._offsets.mapped(), self._fields.mapped()]
        return pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), self.count - first, buffers, null_count=0, offset=first
        )
