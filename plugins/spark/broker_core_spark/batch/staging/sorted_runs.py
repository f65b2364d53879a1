"""Sorted runs of names in the store, between the readers of the catalogue and the tasks that make segments.

Names are written once, in sorted runs of up to half a million, as compressed blocks. The driver learns little of a run:
the first key of each block, the keys that begin a segment, and the number of names of each namespace. A task reads the
blocks of its range of keys from each run. So nothing is shuffled, nothing is read twice from the catalogue, and few
names pass through a JVM.
"""

from __future__ import annotations

import hashlib
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core import EncodedNames
from broker_core_spark.arrow_columns import Array, buffer_and_offsets
from broker_core_spark.batch.build_errors import InvalidCatalogue
from broker_core_spark.batch.staging.order_keys import KeyRanges, order_key, segment_ids
from broker_core_spark.batch.staging.staging_area import StagingArea
from broker_core_spark.format import begins_segment
from broker_core_spark.store import Store

__all__ = [
    "KeyedNames",
    "RunBlock",
    "SortedRun",
    "SortedRunWriter",
    "joined_names",
    "read_blocks",
]

#: Bounds of a writer's memory before it writes a run: sorting takes as much again.
RUN_ROWS: Final = 500_000
RUN_BYTES: Final = 48 * 1024 * 1024
#: Names in a block: a task may read so many in vain at each end of its range.
BLOCK_ROWS: Final = 4096


@dataclass(frozen=True, slots=True)
class RunBlock:
    """Bytes ``start`` to ``stop`` of a run's file, with ``rows`` names. ``first`` is the key of the first one."""

    first: bytes
    start: int
    stop: int
    rows: int


@dataclass(frozen=True, slots=True)
class SortedRun:
    """A run: its path, its blocks in order, the keys that begin segments.

    ``names`` counts the given names by (namespace, domain). ``system`` counts the system topics that are left out.
    """

    path: str
    blocks: tuple[RunBlock, ...]
    segment_starts: tuple[bytes, ...]
    names: Mapping[tuple[str, str], int] = field(default_factory=dict)
    system: int = 0


@dataclass(frozen=True, slots=True)
class KeyedNames:
    """The keys of names, and a column of values for each property key (null: none)."""

    keys: pa.LargeBinaryArray
    properties: tuple[pa.LargeStringArray, ...]

    def take(self, rows: Array) -> KeyedNames:
        """The names of these rows."""
        index = pa.array(rows)
        return KeyedNames(self.keys.take(index), tuple(column.take(index) for column in self.properties))

    def slice(self, low: int, high: int) -> KeyedNames:
        """Rows ``low`` to ``high``."""
        size = high - low
        return KeyedNames(
            self.keys.slice(low, size), tuple(column.slice(low, size) for column in self.properties)
        )

    def __len__(self) -> int:
        return len(self.keys)

    def digest(self) -> str:
        """SHA-256 over the lengths of the keys (u32) and the keys, 64 hex digits."""
        data, offsets = buffer_and_offsets(self.keys)
        found = hashlib.sha256(np.diff(offsets).astype("<u4").data)
        found.update(memoryview(data)[int(offsets[0]) : int(offsets[-1])])
        return found.hexdigest()


class SortedRunWriter:
    """Takes names in any order and writes them as runs into a staging area.

    Names outside of its ``key_ranges`` are counted only, those outside of its ``namespaces`` are not; ``None`` takes
    all. Paths of runs are random: a repeated task writes other files. The driver hears of one attempt, and the files of
    the others go with the build.
    """

    def __init__(self, staging: StagingArea) -> None:
        self._staging = staging
        self._store = staging.open()
        self._parts: list[KeyedNames] = []
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
        *,
        check: bool = True,
    ) -> Iterator[SortedRun]:
        """Take local names, in any order and possibly repeated. Gives each run that becomes full.

        Raises :exc:`InvalidCatalogue` for an invalid name.
        """
        if not len(names) or (
            self._staging.namespaces is not None and namespace not in self._staging.namespaces
        ):
            return
        if check:
            try:
                EncodedNames.check(names)
            except ValueError as error:  # of a name
                raise InvalidCatalogue(f"{error} (in {domain}://{namespace})") from None
        self._names[namespace, domain] += len(names)
        hidden = EncodedNames.hidden(namespace, domain, names)
        if hidden is not None:
            shown = pc.invert(hidden)
            self._system += hidden.true_count
            names = names.filter(shown)
            properties = [column.filter(shown) for column in properties]
        keys = order_key(namespace, domain, names)
        if self._staging.key_ranges is not None:
            inside = pa.array(_within(keys, self._staging.key_ranges))
            names, keys = names.filter(inside), keys.filter(inside)
            properties = [column.filter(inside) for column in properties]
        if not len(names):
            return
        begins = begins_segment(namespace, domain, names, target=self._staging.target)
        self._segment_starts.append(keys.filter(pa.array(begins)))
        for low in range(0, len(names), RUN_ROWS):
            part = KeyedNames(keys, tuple(properties)).slice(low, min(low + RUN_ROWS, len(names)))
            self._parts.append(part)
            self._rows += len(part)
            self._bytes += sum(_size(column) for column in (part.keys, *part.properties))
            if self._rows >= RUN_ROWS or self._bytes >= RUN_BYTES:
                yield self._flush()

    def finish(self) -> Iterator[SortedRun]:
        """The last run, if names or counts are left."""
        if self._rows or self._names or self._system:
            yield self._flush()

    def _flush(self) -> SortedRun:
        blocks: list[RunBlock] = []
        path = ""
        if self._rows:
            path = f"{self._staging.folder}-{uuid.uuid4().hex}.run"
            rows = joined_names(self._parts, len(self._staging.property_keys))
            self._parts.clear()
            rows = rows.take(EncodedNames.sorted_rows(rows.keys))
            with tempfile.SpooledTemporaryFile(max_size=RUN_BYTES) as file:
                for low in range(0, len(rows), BLOCK_ROWS):
                    part = rows.slice(low, min(low + BLOCK_ROWS, len(rows)))
                    start = file.tell()
                    file.write(_encoded(part))
                    blocks.append(RunBlock(part.keys[0].as_py(), start, file.tell(), len(part)))
                file.seek(0)
                self._store.put_new(path, cast(BinaryIO, file))
        cuts = sorted({key for part in self._segment_starts for key in part.to_pylist()})
        run = SortedRun(path, tuple(blocks), tuple(cuts), dict(self._names), self._system)
        self._segment_starts.clear()
        self._names.clear()
        self._system = self._rows = self._bytes = 0
        return run


def _size(column: pa.LargeBinaryArray | pa.LargeStringArray) -> int:
    offsets = buffer_and_offsets(column)[1]
    return int(offsets[-1] - offsets[0]) + 8 * len(column)


def _within(keys: pa.LargeBinaryArray, key_ranges: KeyRanges) -> Array:
    """Whether each key is in one of the ranges."""
    at = segment_ids([low for low, _ in key_ranges], keys) - 1
    highs = pa.array([high for _, high in key_ranges], pa.large_binary())
    last = highs.take(pa.array(np.maximum(at, 0)))
    inside = pc.or_(pc.equal(pc.binary_length(last), 0), pc.less(keys, last))
    result: Array = inside.to_numpy(zero_copy_only=False) & (at >= 0)
    return result


def _encoded(rows: KeyedNames) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    names = ["key", *(f"p{number}" for number in range(len(rows.properties)))]
    batch = pa.record_batch([rows.keys, *rows.properties], names)
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def read_blocks(store: Store, path: str, blocks: Iterable[RunBlock], properties: int) -> KeyedNames:
    """The names of neighbouring blocks of a run, in order."""
    wanted = list(blocks)
    start, stop = wanted[0].start, wanted[-1].stop
    data = memoryview(store.get_range(path, start, stop))
    parts: list[KeyedNames] = []
    for block in wanted:
        source = pa.BufferReader(data[block.start - start : block.stop - start])
        with pa.ipc.open_stream(source) as reader:
            for batch in reader:
                keys, *values = batch.columns
                parts.append(KeyedNames(keys, tuple(values)))
    return joined_names(parts, properties)


def joined_names(parts: Sequence[KeyedNames], properties: int) -> KeyedNames:
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return KeyedNames(
            pa.array([], pa.large_binary()), tuple(pa.array([], pa.large_string()) for _ in range(properties))
        )
    return KeyedNames(
        pa.concat_arrays([part.keys for part in parts]),
        tuple(pa.concat_arrays([part.properties[number] for part in parts]) for number in range(properties)),
    )
