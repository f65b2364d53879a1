"""Writing a segment: runs of sorted names, each with the postings of every selector.

A writer holds one run at a time. The file is in memory up to 64 MiB, then in a temporary file. Equal runs give equal
bytes.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, BinaryIO, Final, TypeAlias

import numpy as np

from broker_core import EncodedNames
from broker_core_spark.arrow_columns import buffer_and_offsets
from broker_core_spark.format import segment_layout
from broker_core_spark.format.canonical_question import (
    DOMAIN_ORDER,
    NameSelector,
    canonical_json,
    selectors_digest,
)
from broker_core_spark.format.manifest import SegmentEntry

__all__ = ["Matches", "SegmentFile", "SegmentWriter"]

#: The names of a run that a selector picks: ``[low, high)``, or ascending row numbers.
Matches: TypeAlias = "tuple[int, int] | np.ndarray[Any, Any]"

_SPOOLED: Final = 64 * 1024 * 1024  # bytes
_MOST_NAMES: Final = 2**31 - 1
_Array = np.ndarray[Any, Any]


@dataclass(slots=True)
class SegmentFile:
    """A written segment. Its ``file`` is put into a store under ``entry.name`` and closed.

    ``run_entries`` are the entries of each run: the count, hash and bytes of what each selector picks.
    """

    entry: SegmentEntry
    file: BinaryIO
    run_entries: tuple[_Array, ...] = ()

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def size(self) -> int:
        return self.entry.size


class SegmentWriter:
    """The writer of one segment file."""

    def __init__(self, *, spool_dir: str | None = None) -> None:
        self._file = tempfile.SpooledTemporaryFile(max_size=_SPOOLED, dir=spool_dir)  # noqa: SIM115 (handed over)
        self._digest = hashlib.sha256()
        self._size = 0
        self._directory: list[dict[str, Any]] = []
        self._runs: list[tuple[str, str, int]] = []
        self._run_entries: list[_Array] = []
        self._first_local: str = ""
        self._write(segment_layout.HEADER.pack(segment_layout.HEADER_MAGIC, segment_layout.FORMAT_VERSION, 0))

    def add_run(
        self,
        names: EncodedNames,
        selectors: Sequence[NameSelector],
        matches: Iterable[tuple[NameSelector, Matches]],
    ) -> None:
        """Append the names of one namespace and domain, at least one.

        ``selectors`` are all that were asked (:func:`~.canonical_question.required_selectors`). ``matches`` are the
        names that they pick, in any order; a selector without names may be left out. Runs come in the order of all
        names, none twice. Raises :exc:`ValueError` otherwise.
        """
        namespace, domain = str(names.namespace), names.domain
        self._check_run(namespace, domain, len(names))
        data, offsets = buffer_and_offsets(names.fields)
        first = int(offsets[0])
        offsets = offsets - first
        if int(offsets[-1]) > segment_layout.MOST_FIELD_BYTES:
            raise ValueError(
                f"the names of {namespace} in one segment take {int(offsets[-1])} bytes: too many"
            )
        entries, rows = _postings(names, {selector.key for selector in selectors}, matches)
        place = segment_layout.RunLayout(
            self._size, len(names), int(offsets[-1]), len(entries), sum(len(part) for part in rows)
        )
        self._section(offsets.astype("<u4"))
        self._section(memoryview(data)[first : first + place.fields_size])
        self._section(entries)
        for part in rows:
            self._write(part.astype("<u4", copy=False).data)
        self._write(bytes(segment_layout.padding(place.rows_size)))
        digest = selectors_digest(selector.key for selector in selectors)
        self._directory.append(
            {"namespace": namespace, "domain": domain, "selectors": digest} | place.record()
        )
        if not self._runs:
            self._first_local = names.names[0].as_py()
        self._runs.append((namespace, domain, len(names)))
        self._run_entries.append(entries)

    def finish(self) -> SegmentFile:
        """The file, at its beginning. The writer is not used afterwards."""
        if not self._runs:
            raise ValueError("a segment has at least one run of names")
        at = self._size
        directory = canonical_json({"runs": self._directory})
        self._write(directory)
        self._write(segment_layout.TRAILER.pack(at, len(directory), segment_layout.TRAILER_MAGIC))
        self._file.seek(0)
        name = f"segments/{self._digest.hexdigest()}.seg"
        entry = SegmentEntry(name, self._size, self._first_local, tuple(self._runs))
        return SegmentFile(entry, self._file, tuple(self._run_entries))  # type: ignore[arg-type]  # a spooled file is one, but not by its type

    @property
    def names(self) -> int:
        """The number of names so far."""
        return sum(run[2] for run in self._runs)

    def close(self) -> None:
        """Discard an unfinished segment, or close the file of a finished one."""
        self._file.close()

    def _check_run(self, namespace: str, domain: str, count: int) -> None:
        if not 0 < count <= _MOST_NAMES:
            raise ValueError(f"a run of {count} names: from 1 to {_MOST_NAMES}")
        place = (namespace, DOMAIN_ORDER.index(domain))
        if self._runs and place <= (self._runs[-1][0], DOMAIN_ORDER.index(self._runs[-1][1])):
            raise ValueError(f"the run of {domain} names of {namespace} is not in order")

    def _section(self, data: Any) -> None:
        view = memoryview(data).cast("B") if len(data) else memoryview(b"")
        self._write(view)
        self._write(bytes(segment_layout.padding(len(view))))

    def _write(self, data: Any) -> None:
        view = memoryview(data)
        if not view.nbytes:
            return
        view = view.cast("B")
        self._file.write(view)
        self._digest.update(view)
        self._size += len(view)


def _postings(
    names: EncodedNames, asked: set[bytes], matches: Iterable[tuple[NameSelector, Matches]]
) -> tuple[_Array, list[_Array]]:
    """The entries of a run, sorted by key, and their row numbers in the same order."""
    found: dict[bytes, tuple[int, int] | _Array] = {}
    for selector, picked in matches:
        key = selector.key
        if key not in asked or key in found:
            raise ValueError(f"the matches of {selector} come twice, or it is none of those that were asked")
        found[key] = _checked(picked, len(names))
    entries = np.zeros(len(found), segment_layout.ENTRY)
    filled, row_count = 0, 0
    rows: list[_Array] = []
    for key in sorted(found):
        picked = found[key]
        if isinstance(picked, tuple):
            low, high = picked
            if low == high:
                continue
            kind, first, count = segment_layout.KIND_RANGE, low, high - low
        else:
            kind, first, count = segment_layout.KIND_ROWS, row_count, len(picked)
            rows.append(picked)
            row_count += len(picked)
        crc, size = names.crc(picked)
        entries[filled] = (list(key), count, crc, size, first, kind, 0)
        filled += 1
    return entries[:filled], rows


def _checked(picked: Matches, names: int) -> tuple[int, int] | _Array:
    """Matches in canonical form: neighbouring rows are a range. Raises :exc:`ValueError` for rows beyond the run."""
    if isinstance(picked, tuple):
        low, high = int(picked[0]), int(picked[1])
        if not 0 <= low <= high <= names:
            raise ValueError(f"a range from {low} to {high} of {names} names")
        return low, high
    if not len(picked):
        return 0, 0
    if picked.ndim != 1 or picked.dtype.kind not in "iu" or not (picked[1:] > picked[:-1]).all():
        raise ValueError("row numbers are one column of ascending integers, each once")
    low, high = int(picked[0]), int(picked[-1]) + 1
    if low < 0 or high > names:
        raise ValueError(f"row numbers from {low} to {high - 1} of {names} names")
    return (low, high) if high - low == len(picked) else picked
