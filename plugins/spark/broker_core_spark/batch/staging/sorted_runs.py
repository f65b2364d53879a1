"""Sorted runs of names in the store, between the readers of the catalogue and the tasks that make segments.

Names are written once, in sorted runs of up to half a million, as compressed blocks. The driver learns little of a run:
the first key of each block, the keys that begin a segment, and the number of names of each namespace. A task reads the
blocks of its range of keys from each run. So nothing is shuffled, nothing is read twice from the catalogue, and few
names pass through a JVM.
"""

from __future__ import annotations

import hashlib
import uuid
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core import EncodedNames
from broker_core_spark.arrow_columns import Array, buffer_and_offsets
from broker_core_spark.batch.staging.order_keys import KeyRanges, first_row, key_at, order_key, segment_ids
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.format import begins_segment
from broker_core_spark.store import Store

__all__ = [
    "RunBlock",
    "SortedRun",
    "SortedRunWriter",
    "joined_names",
    "keyed_names",
    "names_digest",
    "read_blocks",
]

#: Bounds of a writer's memory before it writes a run: sorting takes as much again.
RUN_ROWS: Final = 500_000
RUN_BYTES: Final = 48 * 1024 * 1024
#: Names in a block: a task may read so many in vain at each end of its range.
BLOCK_ROWS: Final = 4096


@dataclass(frozen=True, slots=True)
class RunBlock:
    """Bytes ``start`` to ``stop`` of a run's file, their CRC-32, and the number of their names.

    ``first`` is the key of the first one.
    """

    first: bytes
    start: int
    stop: int
    rows: int
    crc: int = 0


@dataclass(frozen=True, slots=True)
class SortedRun:
    """A run: its path, its blocks in order, the keys that begin segments.

    ``names`` counts the given names by (namespace, domain). ``system`` counts the system topics that are left out.
    ``reached`` has a bit for each stretch of the staging area, set if the run has names of it, and ``digests`` has by
    number the digest of each stretch of which it has the expected number of names.
    """

    path: str
    blocks: tuple[RunBlock, ...]
    segment_starts: tuple[bytes, ...]
    names: Mapping[tuple[str, str], int] = field(default_factory=dict)
    system: int = 0
    reached: bytes = b""
    digests: Mapping[int, str] = field(default_factory=dict)


def keyed_names(keys: pa.LargeBinaryArray, properties: Sequence[pa.LargeStringArray] = ()) -> pa.RecordBatch:
    """Names as they are staged: a column ``key``, and a column of values for each property key (null: none)."""
    return pa.record_batch([keys, *properties], ["key", *(f"p{number}" for number in range(len(properties)))])


def joined_names(parts: Sequence[pa.RecordBatch], properties: int) -> pa.RecordBatch:
    """All names of these parts, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    values = [pa.array([], pa.large_string())] * properties
    return pa.concat_batches([keyed_names(pa.array([], pa.large_binary()), values), *parts])


def names_digest(rows: pa.RecordBatch) -> str:
    """SHA-256 over the lengths of the keys (u32) and the keys, 64 hex digits."""
    data, offsets = buffer_and_offsets(rows["key"])
    found = hashlib.sha256(np.diff(offsets).astype("<u4").data)
    found.update(memoryview(data)[int(offsets[0]) : int(offsets[-1])])
    return found.hexdigest()


class SortedRunWriter:
    """Takes names in any order and writes them as runs into a staging area.

    Names outside of its ``key_ranges`` are counted only; ``None`` takes all. Paths of runs are random: a repeated task
    writes other files. The driver hears of one attempt, and the files of the others go with the build.
    """

    def __init__(self, staging: StagingArea) -> None:
        self._staging = staging
        self._store = staging.open()
        self._runs: list[SortedRun] = []
        self._parts: list[pa.RecordBatch] = []
        self._segment_starts: list[pa.LargeBinaryArray] = []
        self._names: Counter[tuple[str, str]] = Counter()
        self._system = 0
        self._rows = 0
        self._bytes = 0

    def add(
        self,
        namespace: str,
        domain: str,
        names: pa.LargeStringArray,
        properties: Sequence[pa.LargeStringArray] = (),
    ) -> None:
        """Take checked local names, in any order and possibly repeated."""
        if not len(names):
            return
        self._names[namespace, domain] += len(names)
        rows = keyed_names(order_key(namespace, domain, names), properties)
        hidden = EncodedNames.hidden(namespace, domain, names)
        if hidden is not None:
            shown = pc.invert(hidden)
            self._system += hidden.true_count
            names, rows = names.filter(shown), rows.filter(shown)
        if self._staging.key_ranges is not None:
            inside = pa.array(_within(rows["key"], self._staging.key_ranges))
            names, rows = names.filter(inside), rows.filter(inside)
        begins = begins_segment(namespace, domain, names, target=self._staging.target)
        self._segment_starts.append(rows["key"].filter(pa.array(begins)))
        for low in range(0, len(rows), RUN_ROWS):
            part = rows.slice(low, RUN_ROWS)
            self._parts.append(part)
            self._rows += len(part)
            self._bytes += part.nbytes
            if self._rows >= RUN_ROWS or self._bytes >= RUN_BYTES:
                self._flush()

    def finish(self) -> list[SortedRun]:
        """All runs. The last one is written, if names or counts are left."""
        if self._rows or self._names:
            self._flush()
        return self._runs

    def _flush(self) -> None:
        run = SortedRun(
            "",
            (),
            tuple(sorted({key for part in self._segment_starts for key in part.to_pylist()})),
            dict(self._names),
            self._system,
        )
        if self._rows:
            path = f"{self._staging.folder}-{uuid.uuid4().hex}.run"
            rows = joined_names(self._parts, len(self._staging.property_keys))
            self._parts.clear()
            rows = rows.take(EncodedNames.sorted_rows(rows["key"]))
            edges = [*(first_row(rows["key"], key) for key, _ in self._staging.stretches), len(rows)]
            digests = {
                number: names_digest(rows[low:high])
                for number, (low, high) in enumerate(pairwise(edges))
                if high - low == self._staging.stretches[number][1]
            }
            parts = [rows.slice(low, BLOCK_ROWS) for low in range(0, len(rows), BLOCK_ROWS)]
            data = [memoryview(_encoded(part)).cast("B") for part in parts]
            spans = pairwise(accumulate(map(len, data), initial=0))
            blocks = [
                RunBlock(key_at(part["key"], 0), *span, len(part), zlib.crc32(block))
                for part, span, block in zip(parts, spans, data, strict=True)
            ]
            self._store.put_new(path, data)
            run = replace(
                run,
                path=path,
                blocks=tuple(blocks),
                reached=np.packbits(np.diff(edges) > 0).tobytes(),
                digests=digests,
            )
        self._runs.append(run)
        self._segment_starts.clear()
        self._names.clear()
        self._system = self._rows = self._bytes = 0


def _within(keys: pa.LargeBinaryArray, key_ranges: KeyRanges) -> Array:
    """Whether each key is in one of the ranges."""
    at = segment_ids([low for low, _ in key_ranges], keys) - 1
    highs = pa.array([high for _, high in key_ranges], pa.large_binary())
    last = highs.take(pa.array(np.maximum(at, 0)))
    inside = pc.or_(pc.equal(pc.binary_length(last), 0), pc.less(keys, last))
    result: Array = inside.to_numpy(zero_copy_only=False) & (at >= 0)
    return result


def _encoded(rows: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_batch(rows)
    return sink.getvalue()


def read_blocks(store: Store, path: str, blocks: Sequence[RunBlock], properties: int) -> pa.RecordBatch:
    """The names of neighbouring blocks of a run, in order."""
    # One column is decompressed sooner than a thread of Arrow's takes it over.
    options = pa.ipc.IpcReadOptions(use_threads=False)
    parts = (
        pa.ipc.open_stream(block, options=options)
        for block in store.get_blocks(path, [(block.start, block.stop, block.crc) for block in blocks])
    )
    return joined_names([batch for part in parts for batch in part], properties)
