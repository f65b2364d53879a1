"""Reading a segment: everything in it is verified, by columns, before it is used.

A checksum does not say that names are valid and in order, that row numbers are rows, or that counts, lengths and
hashes are those of the names. A writer's mistake and a forged file are an
:exc:`~broker_core_spark.errors.InvalidGeneration`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from broker_core import EncodedNames
from broker_core.errors import BrokerCoreError
from broker_core.names import NamespaceName
from broker_core_spark.arrow_columns import is_ascending
from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format import segment_layout
from broker_core_spark.format.canonical_question import DOMAIN_ORDER, canonical_json
from broker_core_spark.format.segment_writer import Matches

__all__ = ["Segment", "SegmentRun"]

_RUN_KEYS: Final = {"namespace", "domain", "selectors", "names", "fields_size", "entries", "rows"}
_Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class SegmentRun:
    """The names of one namespace and domain in one segment, and the postings of its selectors.

    ``entries`` have the type :data:`~.segment_layout.ENTRY` and are sorted by key. ``rows`` (uint32) are their row
    numbers. ``asked_digest`` is the digest of all selectors that the run was asked.
    """

    file: str
    names: EncodedNames
    asked_digest: str
    entries: _Array
    rows: _Array

    @property
    def namespace(self) -> str:
        return str(self.names.namespace)

    @property
    def domain(self) -> str:
        return self.names.domain

    def keys(self) -> list[bytes]:
        """The keys of the selectors that pick names."""
        data = self.entries["key"].tobytes()
        return [data[at : at + 16] for at in range(0, len(data), 16)]

    def picked(self, index: int) -> Matches:
        """The names that the selector of an entry picks."""
        entry = self.entries[index]
        first, count = int(entry["first"]), int(entry["count"])
        if int(entry["kind"]) == segment_layout.KIND_RANGE:
            return first, first + count
        return self.rows[first : first + count]

    def check_hash(self, index: int) -> int:
        """Compute the hash of an entry. Raises :exc:`InvalidGeneration` for another one. Returns the hashed bytes."""
        crc, size = self.names.crc(self.picked(index))
        if crc != int(self.entries[index]["crc"]):
            raise InvalidGeneration(
                self.file, f"the hash of a selector of {self.namespace} is not that of its names"
            )
        return size


class Segment:
    """A segment over an immutable buffer."""

    def __init__(
        self, file: str, buffer: pa.Buffer, places: list[tuple[dict[str, Any], segment_layout.RunLayout]]
    ) -> None:
        self.file = file
        self._buffer = buffer
        self._places = places

    @classmethod
    def open(cls, buffer: pa.Buffer, file: str) -> Segment:
        """The segment in a buffer, with the positions of its runs. ``file`` is its name in errors."""
        view = memoryview(buffer)
        least = segment_layout.HEADER.size + segment_layout.TRAILER.size
        if len(view) < least:
            raise InvalidGeneration(file, f"{len(view)} bytes are no segment, which has {least} at least")
        magic, version, zero = segment_layout.HEADER.unpack_from(view)
        if magic != segment_layout.HEADER_MAGIC:
            raise InvalidGeneration(file, "it does not begin as a segment does")
        if version != segment_layout.FORMAT_VERSION or zero:
            raise InvalidGeneration(
                file, f"format version {version}.{zero}: only {segment_layout.FORMAT_VERSION}.0 is known here"
            )
        at, size, magic = segment_layout.TRAILER.unpack_from(view, len(view) - segment_layout.TRAILER.size)
        if magic != segment_layout.TRAILER_MAGIC:
            raise InvalidGeneration(file, "it does not end as a segment does: it is truncated, or none")
        if at + size != len(view) - segment_layout.TRAILER.size or at < segment_layout.HEADER.size:
            raise InvalidGeneration(file, "its directory is not where it must be")
        if size > segment_layout.DIRECTORY_LIMIT:
            raise InvalidGeneration(file, f"its directory has {size} bytes: too many")
        return cls(file, buffer, _directory(bytes(view[at : at + size]), at, file))

    def runs(self) -> Iterator[SegmentRun]:
        """The runs, each verified when its turn comes. Hashes are left to :meth:`SegmentRun.check_hash`."""
        last: tuple[str, int] = ("", 0)
        for record, place in self._places:
            order = (record["namespace"], DOMAIN_ORDER.index(record["domain"]))
            if order <= last:
                raise InvalidGeneration(self.file, "its runs are not in order")
            last = order
            yield self._run(record, place)

    def _run(self, record: dict[str, Any], place: segment_layout.RunLayout) -> SegmentRun:
        namespace, domain = record["namespace"], record["domain"]
        self._check_padding(place)
        offsets_at, fields_at, entries_at, rows_at = place.sections()
        offsets = np.frombuffer(self._part(*offsets_at), "<u4").astype(np.int64)
        if offsets[0] != 0 or int(offsets[-1]) != place.fields_size or (np.diff(offsets) <= 0).any():
            raise InvalidGeneration(self.file, f"the offsets of the names of {namespace} do not ascend")
        fields = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), place.names, [None, pa.py_buffer(offsets), self._part(*fields_at)]
        )
        try:
            names = EncodedNames.decode(namespace, domain, fields)
        except (BrokerCoreError, ValueError) as error:
            raise InvalidGeneration(self.file, f"the names of {namespace}: {error!s:.300}") from None
        entries = np.frombuffer(self._part(*entries_at), segment_layout.ENTRY)
        rows = np.frombuffer(self._part(*rows_at), "<u4")
        run = SegmentRun(self.file, names, record["selectors"], entries, rows)
        wrong = _entry_fault(run)
        if wrong is not None:
            raise InvalidGeneration(self.file, f"the postings of {namespace}: {wrong}")
        return run

    def _part(self, at: int, size: int) -> pa.Buffer:
        return self._buffer.slice(at, size)

    def _check_padding(self, place: segment_layout.RunLayout) -> None:
        view = memoryview(self._buffer)
        for at, size in place.sections():
            pad = view[at + size : at + size + segment_layout.padding(size)]
            if any(pad):
                raise InvalidGeneration(self.file, "between its sections is something else than zeros")


def _directory(data: bytes, end: int, file: str) -> list[tuple[dict[str, Any], segment_layout.RunLayout]]:
    """The runs of a directory and their positions, up to byte ``end``."""
    try:
        record = json.loads(data)
        runs = record["runs"]
        if (
            set(record) != {"runs"}
            or not isinstance(runs, list)
            or not runs
            or canonical_json(record) != data
        ):
            raise ValueError("it is not in its canonical form")
        places: list[tuple[dict[str, Any], segment_layout.RunLayout]] = []
        start = segment_layout.HEADER.size
        for run in runs:
            place = _place(run, start, end)
            places.append((run, place))
            start = place.end
    except (ValueError, TypeError, KeyError, RecursionError, BrokerCoreError) as error:
        raise InvalidGeneration(file, f"its directory: {error!s:.300}") from None
    if start != end:
        raise InvalidGeneration(file, f"its runs take {start} bytes, but there are {end}")
    return places


def _place(run: dict[str, Any], start: int, end: int) -> segment_layout.RunLayout:
    if set(run) != _RUN_KEYS:
        raise ValueError("a run has other parts than it must have")
    NamespaceName.parse(run["namespace"])
    if run["domain"] not in DOMAIN_ORDER:
        raise ValueError(f"{run['domain']!r:.50} is no domain")
    if not isinstance(run["selectors"], str) or len(run["selectors"]) != 64:
        raise ValueError("the digest of the selectors is none")
    sizes = [run[key] for key in ("names", "fields_size", "entries", "rows")]
    # Sizes are bounded by the file before anything is allocated.
    if any(type(size) is not int or not 0 <= size <= end for size in sizes) or not sizes[0]:
        raise ValueError("a size is out of bounds")
    place = segment_layout.RunLayout(start, *sizes)
    if place.end > end:
        raise ValueError("a run is longer than the file")
    return place


def _entry_fault(run: SegmentRun) -> str | None:
    """The fault of a run's postings, or ``None``. Hashes are not computed."""
    entries, rows, names = run.entries, run.rows, len(run.names)
    if not len(entries):
        return None if not len(rows) else "row numbers without a selector"
    keys = pa.array(run.keys(), pa.large_binary())
    if not is_ascending(keys):
        return "the selectors are not in order, each once"
    kind, count = entries["kind"], entries["count"].astype(np.int64)
    if (kind > segment_layout.KIND_ROWS).any() or entries["zero"].any() or (count < 1).any():
        return "an entry is of no kind that is known"
    is_range = kind == segment_layout.KIND_RANGE
    first = entries["first"]
    if (first[is_range] > names).any() or (first[is_range].astype(np.int64) + count[is_range] > names).any():
        return "a range is outside of the names"
    begins = np.cumsum(count[~is_range]) - count[~is_range]
    if int(count[~is_range].sum()) != len(rows) or not np.array_equal(
        first[~is_range], begins.astype(np.uint64)
    ):
        return "the row numbers do not belong to the selectors"
    offsets = run.names.text_offsets
    joined = np.empty(len(entries), np.int64)
    lows = first[is_range].astype(np.int64)
    joined[is_range] = offsets[lows + count[is_range]] - offsets[lows] - 1
    if len(rows):
        if int(rows.max()) >= names:
            return "a row number is outside of the names"
        ascends = rows[1:] > rows[:-1]
        ascends[begins[1:] - 1] = True  # the first of the next selector
        if not ascends.all():
            return "the row numbers of a selector do not ascend"
        spans = rows[begins + count[~is_range] - 1].astype(np.int64) - rows[begins].astype(np.int64) + 1
        if (spans == count[~is_range]).any():
            return "neighbours are not written as a range"
        joined[~is_range] = np.add.reduceat(np.diff(offsets)[rows], begins) - 1
    if not np.array_equal(joined.astype(np.uint64), entries["joined"]):
        return "a length is not that of the names"
    return None
