"""Patches: the changes from a segment to its successor, so that a broker that has it need not fetch the successor.

A patch has the deleted rows, the new names, the picks of selectors among them, and the hashes of all picks that
changed. The rest is arithmetic that build and broker share (:mod:`.carried_postings`). A patch promises nothing: its
result is the successor only if it has the checksums of the successor's files.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa

from broker_core import EncodedNames
from broker_core.errors import BrokerCoreError
from broker_core_spark.arrow_columns import Array
from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format.canonical_question import canonical_json
from broker_core_spark.format.carried_postings import Hashes, MovedRows, carried_postings
from broker_core_spark.format.framed_file import FramedFile
from broker_core_spark.format.manifest import FileEntry, SegmentEntry
from broker_core_spark.format.names_writer import FieldParts, NamesWriter
from broker_core_spark.format.postings_file import StoredPostings
from broker_core_spark.format.postings_merge import joined_postings, merge_postings
from broker_core_spark.format.segment_layout import ENTRY
from broker_core_spark.format.segment_reader import SegmentRun
from broker_core_spark.format.selector_keys import NO_SELECTORS, SelectorKeys, split_keys

__all__ = [
    "PATCHES",
    "RunPatch",
    "SegmentPatch",
    "patch_limit",
    "patch_name",
    "patched_segment",
]

#: The folder of patches in a store.
PATCHES: Final = "patches"
#: The largest patch, as a share of the files that it saves.
_SHARE: Final = 4
#: The errors that wrong values of a patch raise.
_WRONG: Final = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, MemoryError)
_Place: TypeAlias = tuple[str, str]
_no_rows = partial(np.empty, 0, np.int64)


def patch_name(files: tuple[str, str]) -> str:
    """The path of the patch that makes the segment with these two files."""
    stem = hashlib.sha256("\n".join(files).encode()).hexdigest()
    return f"{PATCHES}/{stem}.json"


def patch_limit(successor: SegmentEntry) -> int:
    """Bytes of the largest patch that is written and read: with a larger one the files are fetched."""
    return (successor.size + successor.postings.size) // _SHARE


@dataclass(frozen=True, slots=True)
class RunPatch:
    """The changes of a run: deleted rows, new names, and the former rows before which they come.

    ``picked`` are the rows among ``came`` that selectors pick, by their keys. ``hashes`` are the CRCs (uint32) and
    lengths (uint64) of changed picks, in the order in which :func:`~.carried_postings.carried_postings` asks for them.
    ``added`` are the postings of selectors that were matched with all names; ``dropped`` are the keys of the ones that
    the run had before.
    """

    came: EncodedNames
    gone: Array = field(default_factory=_no_rows)
    before: Array = field(default_factory=_no_rows)
    picked: Sequence[tuple[bytes, Array]] = ()
    hashes: Hashes = field(default_factory=lambda: (np.empty(0, "<u4"), np.empty(0, "<u8")))
    added: StoredPostings | None = None
    dropped: frozenset[bytes] = frozenset()

    @property
    def place(self) -> _Place:
        return str(self.came.namespace), self.came.domain

    @property
    def changes(self) -> bool:
        """Whether the names change."""
        return bool(len(self.gone) or len(self.came))

    def names(self, former: EncodedNames | None) -> EncodedNames:
        """The names of the run after its changes; ``None`` is a run that was not there."""
        if former is None:
            return self.came
        return former.with_changes(self.gone, self.came, self.before) if self.changes else former

    def parts(self, former: EncodedNames | None) -> list[EncodedNames]:
        """The names of :meth:`names` in neighbouring parts, of which nothing is copied."""
        if former is None or not self.changes:
            return [self.came if former is None else former]
        return former.parts_with_changes(self.gone, self.came, self.before)

    def postings(
        self, former: StoredPostings | None, names: EncodedNames | None = None
    ) -> tuple[RunPatch, list[StoredPostings]]:
        """The patch with all hashes, and the postings of ``names``, which :meth:`names` gave, in parts.

        Without ``names`` the patch has its hashes already. Raises :exc:`ValueError` if some are missing.
        """
        if former is None:
            former = StoredPostings(
                *self.place, NO_SELECTORS.digest, 0, np.empty(0, ENTRY), np.empty(0, "<u4")
            )
        hashes, parts = self.hashes, [former]
        if self.changes:
            moved = MovedRows.of(former.names, self.gone, self.before)
            picked = [(key, moved.came[rows]) for key, rows in self.picked]
            parts, hashes = carried_postings(former, moved, picked, self.hashes if names is None else names)
        if self.added is not None:
            parts = [*(_without(part, self.dropped) for part in parts), self.added]
        return replace(self, hashes=hashes), parts

    def check(self, former: int) -> None:
        """Raise :exc:`ValueError` unless this can be a change of a run of ``former`` names."""
        _check_rows(self.gone, former)
        if len(self.before) != len(self.came) or (np.diff(self.before) < 0).any():
            raise ValueError("not every name that came has its place")
        if len(self.before) and not 0 <= self.before[0] <= self.before[-1] <= former:
            raise ValueError("a place outside of the run")
        if any(len(key) != ENTRY["key"].itemsize for key, _ in self.picked):
            raise ValueError("a selector without a key")
        # All at once: the rows of each selector come after those of the one before.
        every = np.concatenate([_no_rows(), *(rows for _, rows in self.picked)])
        number = np.repeat(np.arange(len(self.picked)), [len(rows) for _, rows in self.picked])
        if ((every < 0) | (every >= len(self.came))).any():
            raise ValueError("row numbers are outside of the names")
        _check_rows(every + len(self.came) * number, len(self.came) * len(self.picked))

    @property
    def least_size(self) -> int:
        """The fewest bytes of the patch: two for each number, the bytes of keys, of hashes, and of added postings."""
        numbers = len(self.gone) + len(self.before) + sum(len(rows) for _, rows in self.picked)
        added = 0 if self.added is None else self.added.entries.nbytes + self.added.words.nbytes
        return 2 * numbers + 32 * len(self.picked) + 12 * len(self.hashes[0]) + added

    def record(self) -> dict[str, Any]:
        """The patch as JSON has it."""
        namespace, domain = self.place
        record: dict[str, Any] = {
            "namespace": namespace,
            "domain": domain,
            "gone": self.gone.tolist(),
            "came": self.came.names.to_pylist(),
            "before": self.before.tolist(),
            "picked": {key.hex(): rows.tolist() for key, rows in self.picked},
            "hashes": _encoded(self.hashes[0].astype("<u4"), self.hashes[1].astype("<u8")),
        }
        if self.added is not None:
            record["added"] = _encoded(self.added.entries, self.added.words)
            record["dropped"] = sorted(key.hex() for key in self.dropped)
        return record

    @classmethod
    def of(cls, record: Mapping[str, Any], former: int) -> RunPatch:
        """The inverse of :meth:`record`, checked against a run of ``former`` names."""
        came = EncodedNames.of(record["namespace"], record["domain"], record["came"], ordered=True)
        picked = tuple((bytes.fromhex(key), _rows(rows)) for key, rows in record["picked"].items())
        crcs, sizes = _decoded(record["hashes"], "<u4", "<u8")
        patch = cls(came, _rows(record["gone"]), _rows(record["before"]), picked, (crcs, sizes))
        patch.check(former)
        if "added" not in record:
            return patch
        entries, words = _decoded(record["added"], ENTRY, "<u4")
        names = former - len(patch.gone) + len(came)
        added = StoredPostings(*patch.place, NO_SELECTORS.digest, names, entries, words)
        return replace(patch, added=added, dropped=frozenset(map(bytes.fromhex, record["dropped"])))


@dataclass(frozen=True, slots=True)
class SegmentPatch:
    """The patch from a segment to its successor: the former files, and the records of all runs of the successor."""

    former: tuple[str, str]
    runs: tuple[Mapping[str, Any], ...]

    @classmethod
    def between(
        cls, former: SegmentEntry, successor: SegmentEntry, runs: Sequence[RunPatch]
    ) -> SegmentPatch | None:
        """The patch of a segment, or ``None`` if it would surely be too large: it is not even made then."""
        if sum(run.least_size for run in runs) > patch_limit(successor):
            return None
        return cls(former.files, tuple(run.record() for run in runs))

    @property
    def data(self) -> bytes:
        return canonical_json({"former": list(self.former), "runs": list(self.runs)})

    @classmethod
    def parse(cls, data: bytes) -> SegmentPatch:
        """The inverse of :attr:`data`. Raises :exc:`ValueError` for bytes that are no patch; the runs are not looked
        at.
        """
        try:
            record = json.loads(data)
            names, postings = record["former"]
            return cls((str(names), str(postings)), tuple(record["runs"]))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise ValueError(f"it is no patch: {error!s:.200}") from None


def patched_segment(
    patches: Sequence[SegmentPatch],
    successor: SegmentEntry,
    former: Mapping[_Place, tuple[EncodedNames, StoredPostings]],
    selectors: Mapping[_Place, SelectorKeys],
) -> tuple[list[tuple[RunPatch, FieldParts]], FramedFile]:
    """The runs of a successor with their encoded names, and its postings file, by patches that follow each other.

    ``former`` are the verified runs of the first patch's segment. Raises :exc:`InvalidGeneration` if the patches do not
    make the files of ``successor``.
    """
    writer = NamesWriter()
    try:
        for patch in patches[:-1]:
            former = {
                run.place: _checked(run, before, parts) for run, before, parts in _applied(patch, former)
            }
        made = list(_applied(patches[-1], former))
        names = [(run, writer.add_run(*run.parts(before))) for run, before, _ in made]
        file = writer.finish()
        if file.entry != FileEntry(successor.name, successor.size):
            raise ValueError("the names that it makes have another checksum")
        merged = merge_postings(writer.runs, [part for *_, parts in made for part in parts], selectors)
        if merged.entry != successor.postings:
            raise ValueError("the postings that it makes have another checksum")
    except (*_WRONG, BrokerCoreError, pa.ArrowException) as error:
        raise InvalidGeneration(patch_name(successor.files), f"{error!s:.200}") from None
    return names, merged


def _applied(
    patch: SegmentPatch, former: Mapping[_Place, tuple[EncodedNames, StoredPostings]]
) -> Iterator[tuple[RunPatch, EncodedNames | None, list[StoredPostings]]]:
    """Each run of a patch, its names before, and its postings after it, in parts."""
    for record in patch.runs:
        before, postings = former.get((record["namespace"], record["domain"]), (None, None))
        run, parts = RunPatch.of(record, 0 if before is None else len(before)).postings(postings)
        yield run, before, parts


def _checked(
    run: RunPatch, before: EncodedNames | None, parts: Sequence[StoredPostings]
) -> tuple[EncodedNames, StoredPostings]:
    """The names and the postings of a run that another patch follows. Added postings are verified.

    Those of the last patch need not be: they are in a file whose checksum is known.
    """
    names, postings = run.names(before), joined_postings(parts)
    if run.added is not None:
        SegmentRun("its names", "a patch", names, postings).check_entries()
    return names, postings


def _encoded(*columns: Array) -> list[str]:
    return [base64.b64encode(column.tobytes()).decode() for column in columns]


def _decoded(parts: Sequence[str], *kinds: Any) -> list[Array]:
    """The inverse of :func:`_encoded`, for columns of these types."""
    return [
        np.frombuffer(base64.b64decode(part, validate=True), kind)
        for part, kind in zip(parts, kinds, strict=True)
    ]


def _without(part: StoredPostings, keys: frozenset[bytes]) -> StoredPostings:
    """Postings without the selectors of these keys."""
    stays = np.fromiter((key not in keys for key in split_keys(part.entries["key"])), bool, len(part.entries))
    return part if stays.all() else replace(part, entries=part.entries[stays])


def _rows(values: Sequence[int]) -> Array:
    """A column of the row numbers of a patch. Raises :exc:`ValueError` for anything but numbers."""
    rows = np.array(values)
    if rows.ndim != 1 or (len(rows) and rows.dtype != np.int64):
        raise ValueError("row numbers that are none")
    return rows.astype(np.int64)


def _check_rows(rows: Array, limit: int) -> None:
    if len(rows) and not (0 <= rows[0] <= rows[-1] < limit and (np.diff(rows) > 0).all()):
        raise ValueError("row numbers do not ascend, or are outside of the names")
