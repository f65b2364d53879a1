"""Reading a segment: everything in it is verified, by columns, before it is used.

A checksum does not show that names are valid and in order, that row numbers are rows, or that counts, lengths and
hashes belong to the names. A writer's mistake and a forged file are an
:exc:`~broker_core_spark.errors.InvalidGeneration`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from broker_core import EncodedNames
from broker_core.errors import BrokerCoreError
from broker_core_spark.arrow_columns import Array, is_ascending
from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format import segment_layout
from broker_core_spark.format.framed_file import open_frame, section_buffers
from broker_core_spark.format.manifest import SegmentEntry
from broker_core_spark.format.picked_words import Matches, rows_of_bits, unpacked, word_counts
from broker_core_spark.format.postings_file import StoredPostings
from broker_core_spark.format.segment_layout import RunPlace
from broker_core_spark.format.selector_keys import split_keys

__all__ = ["SegmentRun", "segment_runs"]


@dataclass(frozen=True)
class SegmentRun:
    """The names of one namespace and domain in one segment, and the postings of its selectors.

    ``file`` is the names file, ``postings_file`` the file of the postings.
    """

    file: str
    postings_file: str
    names: EncodedNames
    postings: StoredPostings

    @property
    def namespace(self) -> str:
        return self.postings.namespace

    @property
    def domain(self) -> str:
        return self.postings.domain

    def local_at(self, row: int) -> str:
        """The local name of a row. Of its bytes: decoding a column of one name takes ten times as long."""
        field: bytes = self.names.fields[row].as_py()
        return field.partition(f"{self.domain}://{self.namespace}/".encode())[2].decode()

    def picked(self, index: int) -> Matches:
        """The names that the selector of an entry picks."""
        return unpacked(self.postings.entries[index], self.postings.words, len(self.names))

    def check_entries(self) -> None:
        """Raise :exc:`InvalidGeneration` for postings that do not fit the names. Hashes are not computed."""
        wrong = _entry_fault(self)
        if wrong is not None:
            raise InvalidGeneration(self.postings_file, f"the postings of {self.namespace}: {wrong}")

    def check_hash(self, index: int) -> int:
        """Compute the hash of an entry. Raises :exc:`InvalidGeneration` for another one. Returns the hashed bytes."""
        crc, size = self.names.crc(self.picked(index))
        if crc != int(self.postings.entries[index]["crc"]):
            raise InvalidGeneration(
                self.postings_file, f"the hash of a selector of {self.namespace} is not that of its names"
            )
        return size


def segment_runs(
    entry: SegmentEntry, names: pa.Buffer, postings: Sequence[StoredPostings], *, checked: bool = False
) -> Iterator[SegmentRun]:
    """The runs of a segment in the buffer of its names file and in its postings, each verified when its turn comes.

    The names of the files, which ``entry`` has, are for errors. Hashes are left to :meth:`SegmentRun.check_hash`. With
    ``checked`` all but positions was verified when the files were written. Raises :exc:`InvalidGeneration`.
    """
    places = open_frame(segment_layout.NAMES, names, entry.name)
    expected = [(record["namespace"], record["domain"], place.names) for record, place in places]
    if [(run.namespace, run.domain, run.names) for run in postings] != expected:
        raise InvalidGeneration(entry.postings.name, "its runs are not those of its segment")
    return (
        _read_run(entry, names, record, place, own, checked=checked)
        for (record, place), own in zip(places, postings, strict=True)
    )


def _read_run(
    entry: SegmentEntry,
    buffer: pa.Buffer,
    record: dict[str, Any],
    place: RunPlace,
    postings: StoredPostings,
    *,
    checked: bool,
) -> SegmentRun:
    namespace, domain, file = record["namespace"], record["domain"], entry.name
    first, data = section_buffers(buffer, place, file)
    offsets = np.frombuffer(first, "<u4").astype(np.int64)
    if offsets[0] != 0 or int(offsets[-1]) != data.size or (np.diff(offsets) <= 0).any():
        raise InvalidGeneration(file, f"the offsets of the names of {namespace} do not ascend")
    fields = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), place.names, [None, pa.py_buffer(offsets), data]
    )
    try:
        names = EncodedNames.decode(namespace, domain, fields, checked=checked)
    except (BrokerCoreError, ValueError) as error:
        raise InvalidGeneration(file, f"the names of {namespace}: {error!s:.300}") from None
    run = SegmentRun(file, entry.postings.name, names, postings)
    if not checked:
        run.check_entries()
    return run


def _entry_fault(run: SegmentRun) -> str | None:
    """The fault of a run's postings, or ``None``. Hashes are not computed."""
    entries, words, names = run.postings.entries, run.postings.words, len(run.names)
    if not len(entries):
        return None if not len(words) else "words without a selector"
    keys = pa.array(split_keys(entries["key"]), pa.large_binary())
    if not is_ascending(keys):
        return "the selectors are not in order, each once"
    kind, count = entries["kind"], entries["count"].astype(np.int64)
    if (kind > segment_layout.KIND_BITS).any() or entries["zero"].any() or (count < 1).any():
        return "an entry is of no kind that is known"
    is_range = kind == segment_layout.KIND_RANGE
    first = entries["first"]
    if (first[is_range] > names).any() or (first[is_range].astype(np.int64) + count[is_range] > names).any():
        return "a range is outside of the names"
    is_bits = kind == segment_layout.KIND_BITS
    if ((segment_layout.bit_words(names) < count) != is_bits)[~is_range].any():
        return "a selector has not the shorter one of row numbers and bits"
    sizes = word_counts(entries, names)[~is_range]
    begins = np.cumsum(sizes) - sizes
    if int(sizes.sum()) != len(words) or not np.array_equal(first[~is_range], begins.astype(np.uint64)):
        return "the words do not belong to the selectors"
    offsets = run.names.text_offsets
    joined = np.empty(len(entries), np.int64)
    lows = first[is_range].astype(np.int64)
    joined[is_range] = offsets[lows + count[is_range]] - offsets[lows] - 1
    is_rows = kind == segment_layout.KIND_ROWS
    text_sizes = np.diff(offsets)
    if is_rows.any():
        rows = words[np.repeat(is_rows[~is_range], sizes)]
        fault = _rows_fault(rows, count[is_rows], names)
        if fault is not None:
            return fault
        joined[is_rows] = np.add.reduceat(text_sizes[rows], np.cumsum(count[is_rows]) - count[is_rows]) - 1
    for index in np.flatnonzero(is_bits).tolist():
        rows = rows_of_bits(words[int(first[index]) : int(first[index]) + segment_layout.bit_words(names)])
        if len(rows) != count[index] or int(rows[-1]) >= names:
            return "a bitmap has not the bits of so many names"
        if int(rows[-1]) - int(rows[0]) + 1 == len(rows):
            return "neighbours are not written as a range"
        joined[index] = int(text_sizes[rows].sum()) - 1
    if not np.array_equal(joined.astype(np.uint64), entries["joined"]):
        return "a length is not that of the names"
    return None


def _rows_fault(rows: Array, count: Array, names: int) -> str | None:
    """The fault of the row numbers of several entries, one after the other."""
    if int(rows.max()) >= names:
        return "a row number is outside of the names"
    ends = np.cumsum(count)
    ascends = rows[1:] > rows[:-1]
    ascends[ends[:-1] - 1] = True  # the first of the next selector
    if not ascends.all():
        return "the row numbers of a selector do not ascend"
    spans = rows[ends - 1].astype(np.int64) - rows[ends - count].astype(np.int64) + 1
    return "neighbours are not written as a range" if (spans == count).any() else None
