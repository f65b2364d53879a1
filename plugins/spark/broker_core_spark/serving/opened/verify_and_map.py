"""Verifying and mapping a generation: each file is fetched to a private file, checked and laid out for look-ups.

The names of all segments become one column with the namespaces one after the other. Row numbers of segments become row
numbers of namespaces. Memory is bounded: segments are read one at a time, and results go to files without names.

Segments that an open generation has verified are neither fetched nor verified again: their names are copied from one
column to the other, and their postings stay in the private file that they were fetched to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from random import Random
from typing import Final

import numpy as np
import pyarrow as pa

from broker_core import EncodedNames
from broker_core_spark.arrow_columns import Array
from broker_core_spark.errors import DamagedFile, InvalidGeneration
from broker_core_spark.format import (
    CanonicalQuestion,
    FieldParts,
    Manifest,
    NamePlace,
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
from broker_core_spark.serving.opened.answer_index import RECORD, NamespacePostings
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
        opening = _FilesToMap(stack, directory, questions)
        total = max(1, sum(segment.postings.size for segment in manifest.segments))
        behind: NamePlace | None = None
        random = checks.random()
        former = {} if before is None else {entry.files: one for entry, one in before.segments.items()}
        for number, entry in enumerate(manifest.segments):
            first = opening.names
            known = None if before is None else before.segments.get(entry)
            if before is not None and known is not None and random.random() >= checks.again:
                runs.check_again(number, known.postings, behind)
                row = known.first
                for postings in known.postings:
                    opening.add(postings, FieldParts.of([before.names(row, postings.names)]), entry.name)
                    row += postings.names
                stored, behind = known.postings, known.last
            else:
                patched = None
                if before is not None:
                    patched = _patched(store, entry, directory, runs.keys, before, former, opening)
                segment: OpenSegment = patched or Segment.open(
                    fetch_verified(store, entry, directory),
                    entry.name,
                    fetch_verified(store, entry.postings, directory),
                    entry.postings.name,
                )
                stored = segment.postings
                found = runs.runs(number, segment, behind=behind)
                for at, (run, postings) in enumerate(zip(found, stored, strict=True)):
                    sample, among = checks.rematched, None
                    if patched is None:
                        _check_hashes(run, random, checks.hashed_bytes * entry.postings.size // total)
                        opening.add(postings, FieldParts.of([run.names.fields]), entry.name)
                    else:
                        sample, among = sample // _OF_PATCHED, patched.came[at]
                    selectors = runs.selectors.get((run.namespace, run.domain), ())
                    rematch_sample(run, selectors, random, sample, among)
                    behind = last_place(run)
            if behind is not None:
                opening.segments[entry] = VerifiedSegment(first, behind, stored)
        return opening.finish(lines)


def _check_hashes(run: SegmentRun, random: Random, most: int) -> None:
    """Check hashes of a run in random order, until those of ``most`` bytes of names were computed."""
    for index in random.sample(range(len(run.entries)), len(run.entries)):
        if most <= 0:
            break
        most -= run.check_hash(index)


def _patched(
    store: Store,
    entry: SegmentEntry,
    directory: str | None,
    asked: Mapping[tuple[str, str], SelectorKeys],
    before: MappedFiles,
    former: Mapping[tuple[str, str], VerifiedSegment],
    opening: _FilesToMap,
) -> _PatchedSegment | None:
    """A segment made by patches, with the checksums of its files, or ``None`` if they have to be fetched.

    ``former`` are the segments of the generation ``before``, by their files.
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
        names = EncodedNames.decode(run.namespace, run.domain, before.names(row, run.names), checked=True)
        runs[run.namespace, run.domain] = (names, run)
        row += run.names
    try:
        made, file = patched_segment(patches, entry, runs, asked)
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
    made: Sequence[tuple[RunPatch, FieldParts]]
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
        for (patch, fields), own in zip(self.made, self.postings, strict=True):
            files = self.entry.name, self.entry.postings.name
            self.opening.add(own, fields, self.entry.name)
            last = self.opening.last_names(own.names)
            names = EncodedNames.decode(own.namespace, own.domain, last, checked=True)
            run = SegmentRun(*files, names, own)
            if patch.added is not None or not self.trusted:
                run.check_entries()
            yield run


class _FilesToMap:
    """Writes the files to map, run by run."""

    def __init__(
        self,
        stack: ExitStack,
        directory: str | None,
        questions: list[tuple[CanonicalQuestion, int, int]],
    ) -> None:
        def file() -> PrivateFile:
            return stack.enter_context(PrivateFile(directory))

        self._fields, self._offsets = file(), file()
        self._offsets.write(np.zeros(1, "<i8"))
        self._keys, self._records, self._rows = file(), file(), file()
        self._scratch, self._entries = file(), file()
        self._asked: dict[str, list[tuple[CanonicalQuestion, int, int]]] = {}
        for item in questions:
            self._asked.setdefault(item[0].namespace, []).append(item)
        #: The keys and the records of finished namespaces.
        self._index = [(np.empty(0, "<u8"), np.empty(0, RECORD))]
        self._namespaces: dict[str, tuple[int, int, int]] = {}
        self._open: NamespacePostings | None = None
        #: The segments so far, and the number of names.
        self.segments: dict[SegmentEntry, VerifiedSegment] = {}
        self.names = 0

    def add(self, postings: StoredPostings, names: FieldParts, file: str) -> None:
        """Add the next run. ``file`` is for errors."""
        if self._open is None or self._open.namespace != postings.namespace:
            self._close_namespace()
            self._open = NamespacePostings(postings.namespace, self.names, self._scratch, self._entries)
        self._offsets.write(self._fields.size + names.offsets[1:])
        self._fields.write(*names.data)
        self.names += postings.names
        self._open.add(postings)
        if self._open.names > _MOST_NAMES:
            raise InvalidGeneration(file, f"{postings.namespace} has more than {_MOST_NAMES} names")

    def last_names(self, count: int) -> pa.LargeBinaryArray:
        """The last names so far, mapped."""
        return _names_at(self._fields.mapped(), self._offsets.mapped(), self.names - count, count)

    def _close_namespace(self) -> None:
        """Make the answers of a namespace after its last run."""
        done = self._open
        if done is None:
            return
        self._namespaces[done.namespace] = (done.first, done.others, done.names)
        asked = self._asked.pop(done.namespace, [])
        if asked:
            self._keep(asked, done.answers([question for question, _, _ in asked], self._rows))

    def _keep(self, asked: Sequence[tuple[CanonicalQuestion, int, int]], records: Array) -> None:
        keys = np.frombuffer(b"".join(question.key for question, _, _ in asked), ">u8").reshape(-1, 2)
        records["low"] = keys[:, 1]
        records["line"] = [line for _, line, _ in asked]
        records["line_size"] = [size for _, _, size in asked]
        self._index.append((keys[:, 0].astype("<u8"), records))

    def finish(self, lines: pa.Buffer) -> MappedFiles:
        """Map the files after the last run."""
        self._close_namespace()
        for asked in self._asked.values():  # namespaces without a name
            self._keep(asked, np.zeros(len(asked), RECORD))
        keys, records = map(np.concatenate, zip(*self._index, strict=True))
        order = np.argsort(keys, kind="stable")
        self._keys.write(keys[order])
        self._records.write(records[order])
        return MappedFiles(
            self._fields.mapped(),
            self._offsets.mapped(),
            lines,
            self._keys.mapped(),
            self._records.mapped(),
            self._rows.mapped(),
            self._namespaces,
            self.segments,
        )
