"""Verifying and mapping a generation: each file is fetched to a private file, checked and laid out for look-ups.

The names of all segments become one column with the namespaces one after the other. Row numbers of segments become row
numbers of namespaces. Memory is bounded: segments are read one at a time, and results go to files without names.

Segments that an open generation has verified are neither fetched nor verified again: their names are copied from one
column to the other, and their postings stay in the private file that they were fetched to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random
from typing import Final

import numpy as np
import pyarrow as pa

from broker_core import EncodedNames
from broker_core_spark.arrow_columns import Array, buffer_and_offsets
from broker_core_spark.errors import DamagedFile, InvalidGeneration
from broker_core_spark.format import (
    CanonicalQuestion,
    Manifest,
    NamePlace,
    NameSelector,
    OpenSegment,
    RunPatch,
    Segment,
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
)
from broker_core_spark.serving.opened.answer_index import NamespacePostings
from broker_core_spark.serving.opened.sample_rematch import rematch_sample
from broker_core_spark.store import PrivateFile, Store, fetch_verified

__all__ = ["MappedFiles", "SampleChecks", "VerifiedSegment", "verify_and_map"]

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

    def random(self) -> Random:
        return Random(self.seed)  # noqa: S311 (a sample; without a seed of the system's)


@dataclass(frozen=True, slots=True)
class MappedFiles:
    """The mapped files: the names of all namespaces, and the index of the questions.

    ``field_offsets`` are int64, one more than names. ``keys`` are the first halves of the questions' keys (uint64,
    ascending). ``records`` has a :data:`~.answer_index.RECORD` for each, in the same order. ``rows`` are int32.
    ``namespaces`` has (first name, non-persistent names, all names) of each namespace with names. ``segments`` are the
    verified ones, for the next generation.
    """

    fields: pa.Buffer
    field_offsets: pa.Buffer
    lines: pa.Buffer
    keys: pa.Buffer
    records: pa.Buffer
    rows: pa.Buffer
    namespaces: dict[str, tuple[int, int, int]]
    segments: Mapping[SegmentEntry, VerifiedSegment] = field(default_factory=dict)

    @property
    def mapped_bytes(self) -> int:
        buffers = (self.fields, self.field_offsets, self.lines, self.keys, self.records, self.rows)
        kept = sum(entry.postings.size for entry in self.segments)
        return kept + sum(int(buffer.size) for buffer in buffers)

    def names(self, first: int, count: int) -> pa.LargeBinaryArray:
        """Encoded names from a row of all names on; nothing is copied."""
        return _names_at(self.fields, self.field_offsets, first, count)


def _names_at(fields: pa.Buffer, offsets: pa.Buffer, first: int, count: int) -> pa.LargeBinaryArray:
    buffers = [None, offsets, fields]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), count, buffers, null_count=0, offset=first)


@dataclass(frozen=True, slots=True)
class VerifiedSegment:
    """A segment of an open generation: the row of its first name there, the place of its last one, its postings."""

    first: int
    last: NamePlace
    postings: Sequence[StoredPostings]


def verify_and_map(
    store: Store,
    manifest: Manifest,
    directory: str | None,
    checks: SampleChecks,
    before: MappedFiles | None = None,
) -> MappedFiles:
    """Fetch, verify and map the files of a generation that ``before`` does not have.

    Raises :exc:`InvalidGeneration` and :exc:`StoreFailed`.
    """
    lines = fetch_verified(store, manifest.questions, directory)
    questions = read_questions(lines, manifest)
    runs = SegmentChecks(manifest, (question for question, _, _ in questions))
    with ExitStack() as stack:
        opening = _FilesToMap(stack, runs.selectors, directory, checks, questions)
        total = max(1, sum(segment.postings.size for segment in manifest.segments))
        behind: NamePlace | None = None
        random = checks.random()
        former = None if before is None else _FormerSegments.of(before)
        for number, entry in enumerate(manifest.segments):
            first = opening.names
            known = None if before is None else before.segments.get(entry)
            if before is not None and known is not None and random.random() >= checks.again:
                runs.check_again(number, known.postings, behind)
                row = known.first
                for postings in known.postings:
                    opening.add(postings, [before.names(row, postings.names)], entry.name)
                    row += postings.names
                stored, behind = known.postings, known.last
            else:
                patched = (
                    None if former is None else former.patched(store, entry, directory, runs.keys, opening)
                )
                segment: OpenSegment = patched or Segment.open(
                    fetch_verified(store, entry, directory),
                    entry.name,
                    fetch_verified(store, entry.postings, directory),
                    entry.postings.name,
                )
                stored = segment.postings
                found = runs.runs(number, segment, behind=behind)
                for at, (run, postings) in enumerate(zip(found, stored, strict=True)):
                    if patched is None:
                        opening.check(run, checks.hashed_bytes * entry.postings.size // total)
                        opening.add(postings, [run.names.fields], entry.name)
                    else:
                        opening.check_came(run, patched.came[at])
                    behind = last_place(run)
            if behind is not None:
                opening.segments[entry] = VerifiedSegment(first, behind, stored)
        return opening.finish(lines)


@dataclass(frozen=True, slots=True)
class _FormerSegments:
    """The segments of the generation before, by their files."""

    mapped: MappedFiles
    entries: Mapping[tuple[str, str], SegmentEntry]

    @classmethod
    def of(cls, mapped: MappedFiles) -> _FormerSegments:
        return cls(mapped, {entry.files: entry for entry in mapped.segments})

    def patched(
        self,
        store: Store,
        entry: SegmentEntry,
        directory: str | None,
        asked: Mapping[tuple[str, str], SelectorKeys],
        opening: _FilesToMap,
    ) -> _PatchedSegment | None:
        """A segment made by patches, with the checksums of its files, or ``None`` if they have to be fetched."""
        patches: list[SegmentPatch] = []
        files = entry.files
        while files not in self.entries:
            try:
                data = store.get(patch_name(files), patch_limit(entry))
                patches.insert(0, SegmentPatch.parse(data or b""))
            except (DamagedFile, ValueError):
                return None
            files = patches[0].former
            if len(patches) > _MOST_PATCHES:
                return None
        segment = self.mapped.segments[self.entries[files]]
        former, row = {}, segment.first
        for run in segment.postings:
            fields = self.mapped.names(row, run.names)
            names = EncodedNames.decode(run.namespace, run.domain, fields, checked=True)
            former[run.namespace, run.domain] = (names, run)
            row += run.names
        try:
            made, file = patched_segment(patches, entry, former, asked)
        except InvalidGeneration:
            return None
        with file.file, PrivateFile(directory) as private:
            private.write(file.file.read())
            postings = read_postings(private.mapped(), entry.postings.name)
        return _PatchedSegment(entry, postings, made, opening, trusted=len(patches) == 1)


@dataclass(frozen=True, slots=True)
class _PatchedSegment:
    """A segment that a patch made: its postings in a private file, and its names.

    All is verified but the patch's picks of selectors among new names, and postings of added selectors. ``trusted``
    says that no patch before it may have added any.
    """

    entry: SegmentEntry
    postings: Sequence[StoredPostings]
    made: Sequence[tuple[RunPatch, Sequence[EncodedNames]]]
    opening: _FilesToMap
    trusted: bool

    @property
    def came(self) -> list[Array]:
        """The rows of the names that came, of each run."""
        return [
            patch.before - np.searchsorted(patch.gone, patch.before) + np.arange(len(patch.before))
            for patch, _ in self.made
        ]

    def runs(self) -> Iterator[SegmentRun]:
        """The runs, each with its names where they were added, which joins their parts."""
        for (patch, parts), own in zip(self.made, self.postings, strict=True):
            files = self.entry.name, self.entry.postings.name
            self.opening.add(own, [part.fields for part in parts], self.entry.name)
            fields = self.opening.last_names(own.names)
            names = EncodedNames.decode(own.namespace, own.domain, fields, checked=True)
            run = SegmentRun(*files, names, own.asked_digest, own.entries, own.words)
            if patch.added is not None or not self.trusted:
                run.check_entries()
            yield run


@dataclass(slots=True)
class _Names:
    """The files of the names."""

    fields: PrivateFile
    field_offsets: PrivateFile
    count: int = 0

    def add(self, parts: Iterable[pa.LargeBinaryArray]) -> None:
        ends = [np.empty(0, "<i8")]
        for data, offsets in map(buffer_and_offsets, parts):
            begin, end = int(offsets[0]), int(offsets[-1])
            ends.append(offsets[1:] - begin + self.fields.size)
            self.fields.write(memoryview(data)[begin:end])
        self.field_offsets.write(np.concatenate(ends))
        self.count += sum(map(len, ends))


@dataclass(slots=True)
class _Namespace:
    name: str
    first: int
    postings: NamespacePostings


@dataclass(slots=True)
class _Index:
    """The questions by namespace, and the finished records."""

    of: dict[str, list[tuple[CanonicalQuestion, int, int]]]
    keys: list[Array] = field(default_factory=list)
    records: list[Array] = field(default_factory=list)


class _FilesToMap:
    """Writes the files to map, run by run."""

    def __init__(
        self,
        stack: ExitStack,
        selectors: Mapping[tuple[str, str], tuple[NameSelector, ...]],
        directory: str | None,
        checks: SampleChecks,
        questions: list[tuple[CanonicalQuestion, int, int]],
    ) -> None:
        def file() -> PrivateFile:
            return stack.enter_context(PrivateFile(directory))

        self._file = file
        self._checks = checks
        self._random = checks.random()
        self._selectors = selectors
        self._names = _Names(file(), file())
        self._names.field_offsets.write(np.zeros(1, "<i8"))
        self._rows, self._scratch, self._entries = file(), file(), file()
        by_namespace: dict[str, list[tuple[CanonicalQuestion, int, int]]] = {}
        for item in questions:
            by_namespace.setdefault(item[0].namespace, []).append(item)
        self._index = _Index(by_namespace)
        self._namespaces: dict[str, tuple[int, int, int]] = {}
        #: The segments so far.
        self.segments: dict[SegmentEntry, VerifiedSegment] = {}
        self._open: _Namespace | None = None

    @property
    def names(self) -> int:
        """The number of names so far."""
        return self._names.count

    def check(self, run: SegmentRun, hashed_bytes: int) -> None:
        """Check a sample of a run. ``hashed_bytes`` bounds the hashes to compute."""
        self._check_hashes(run, hashed_bytes)
        rematch_sample(
            run, self._selectors.get((run.namespace, run.domain), ()), self._random, self._checks.rematched
        )

    def check_came(self, run: SegmentRun, came: Array) -> None:
        """Check a smaller sample of a run that was verified but for the names that ``came``."""
        selectors = self._selectors.get((run.namespace, run.domain), ())
        rematch_sample(run, selectors, self._random, self._checks.rematched // _OF_PATCHED, came)

    def add(self, postings: StoredPostings, names: Iterable[pa.LargeBinaryArray], file: str) -> None:
        """Add the next run, whose names are in parts. ``file`` is for errors."""
        if self._open is None or self._open.name != postings.namespace:
            self._close_namespace()
            made = NamespacePostings(self._scratch, self._entries)
            self._open = _Namespace(postings.namespace, self._names.count, made)
        self._names.add(names)
        self._open.postings.add(postings)
        if self._open.postings.names > _MOST_NAMES:
            raise InvalidGeneration(file, f"{postings.namespace} has more than {_MOST_NAMES} names")

    def last_names(self, count: int) -> pa.LargeBinaryArray:
        """The last names so far, mapped."""
        fields, offsets = self._names.fields.mapped(), self._names.field_offsets.mapped()
        return _names_at(fields, offsets, self.names - count, count)

    def _check_hashes(self, run: SegmentRun, left: int) -> None:
        order = list(range(len(run.entries)))
        self._random.shuffle(order)
        for index in order:
            if left <= 0:
                return
            left -= run.check_hash(index)

    def _close_namespace(self) -> None:
        """Make the answers of a namespace after its last run."""
        if self._open is None:
            return
        names = self._open.postings.names
        self._namespaces[self._open.name] = (self._open.first, self._open.postings.others, names)
        asked = self._index.of.pop(self._open.name, [])
        if asked:
            questions = [question for question, _, _ in asked]
            self._keep(asked, self._open.postings.answers(questions, self._rows))
        self._open = None

    def _keep(self, asked: list[tuple[CanonicalQuestion, int, int]], records: Array) -> None:
        keys = np.frombuffer(b"".join(question.key for question, _, _ in asked), ">u8").reshape(-1, 2)
        records["low"] = keys[:, 1]
        records["line"] = [line for _, line, _ in asked]
        records["line_size"] = [size for _, _, size in asked]
        self._index.keys.append(keys[:, 0].astype("<u8"))
        self._index.records.append(records)

    def finish(self, lines: pa.Buffer) -> MappedFiles:
        """Map the files after the last run."""
        self._close_namespace()
        for asked in self._index.of.values():  # namespaces without a name
            empty = NamespacePostings(self._scratch, self._entries)
            questions = [question for question, _, _ in asked]
            self._keep(asked, empty.answers(questions, self._rows))
        keys_file, records_file = self._file(), self._file()
        if self._index.keys:
            keys, records = np.concatenate(self._index.keys), np.concatenate(self._index.records)
            order = np.argsort(keys, kind="stable")
            keys_file.write(keys[order])
            records_file.write(records[order])
        return MappedFiles(
            self._names.fields.mapped(),
            self._names.field_offsets.mapped(),
            lines,
            keys_file.mapped(),
            records_file.mapped(),
            self._rows.mapped(),
            self._namespaces,
            self.segments,
        )
