"""Sorted runs of names in the store: how topics get from whoever reads the catalogue to whoever makes segments.

Names are written once, in sorted runs of up to a million, each a file of compressed blocks. What the driver is told of
a run is small: the first key of each block, the keys that begin a segment, and how many names each namespace has. A
task that makes segments reads the few blocks of each run that its range of keys is in. So nothing is shuffled by
hashing (one large namespace is many ranges), nothing is read twice from the catalogue, and no name passes through a JVM
that need not.
"""

from __future__ import annotations

import json
import tempfile
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Final, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core import EncodedNames
from broker_core_spark.arrow_columns import buffer_and_offsets
from broker_core_spark.batch.errors import InvalidCatalogue
from broker_core_spark.batch.staging.order_keys import order_key, segment_ids
from broker_core_spark.format.segment_boundaries import begins_segment
from broker_core_spark.store import Store

__all__ = [
    "KeyRanges",
    "KeyedNames",
    "RunBlock",
    "SortedRun",
    "SortedRunWriter",
    "block_schema",
    "joined_names",
    "read_blocks",
]

#: Bounds of what a writer holds until it sorts and writes it.
RUN_ROWS: Final = 1_000_000
RUN_BYTES: Final = 96 * 1024 * 1024
#: Names in a block: what a task may read in vain at either end of its range.
BLOCK_ROWS: Final = 8192

_Array = np.ndarray[Any, Any]
#: Half-open ranges of keys, sorted and disjoint; an empty ``high`` has no end.
KeyRanges = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True, slots=True)
class RunBlock:
    """Bytes ``start`` to ``stop`` of a run's file hold ``rows`` names, the first of which has the key ``first``."""

    first: bytes
    start: int
    stop: int
    rows: int


@dataclass(frozen=True, slots=True)
class SortedRun:
    """What is known of one run: its path, blocks in order, keys that begin segments, and names per namespace.

    ``names`` counts by (namespace, domain) what was given, ``system`` those that brokers hide and that are left out.
    """

    path: str
    blocks: tuple[RunBlock, ...]
    segment_starts: tuple[bytes, ...]
    names: Mapping[tuple[str, str], int] = field(default_factory=dict)
    system: int = 0

    def to_bytes(self) -> bytes:
        """For the way from a task to the driver, and from there to other tasks."""
        record = {
            "path": self.path,
            "blocks": [[block.first.hex(), block.start, block.stop, block.rows] for block in self.blocks],
            "segment_starts": [key.hex() for key in self.segment_starts],
            "names": [[*place, count] for place, count in self.names.items()],
            "system": self.system,
        }
        return json.dumps(record).encode()

    @classmethod
    def parse(cls, data: bytes) -> SortedRun:
        """The reverse of :meth:`to_bytes`."""
        record = json.loads(data)
        return cls(
            record["path"],
            tuple(RunBlock(bytes.fromhex(first), *rest) for first, *rest in record["blocks"]),
            tuple(map(bytes.fromhex, record["segment_starts"])),
            {(namespace, domain): count for namespace, domain, count in record["names"]},
            record["system"],
        )


@dataclass(frozen=True, slots=True)
class KeyedNames:
    """Names by their keys, and for each property key a column of values (null: has none)."""

    keys: pa.LargeBinaryArray
    properties: tuple[pa.LargeStringArray, ...]

    def take(self, rows: _Array) -> KeyedNames:
        """These rows of it."""
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


def block_schema(properties: int) -> pa.Schema:
    """The columns of a block."""
    values = [(f"p{number}", pa.large_string()) for number in range(properties)]
    return pa.schema([("key", pa.large_binary()), *values])


class SortedRunWriter:
    """Takes names in any order and writes them as runs, whose paths begin with ``folder``.

    ``key_ranges`` are those that matter (``None``: all); of other names only the number is kept. ``target`` is the size
    of segments. Names of runs are random: a task that is tried again writes other files, of which nobody is told, and
    which go with the others of the build.
    """

    def __init__(
        self, store: Store, folder: str, *, properties: int, target: int, key_ranges: KeyRanges | None = None
    ) -> None:
        self._store = store
        self._folder = folder
        self._properties = properties
        self._target = target
        self._key_ranges = key_ranges
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
        """Take local names, in any order and perhaps some twice; gives a run where one has become full.

        Raises :exc:`InvalidCatalogue` for the first that can be no topic's name.
        """
        if not len(names):
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
        if self._key_ranges is not None:
            inside = pa.array(_within(keys, self._key_ranges))
            names, keys = names.filter(inside), keys.filter(inside)
            properties = [column.filter(inside) for column in properties]
        if not len(names):
            return
        begins = begins_segment(namespace, domain, names, target=self._target)
        self._segment_starts.append(keys.filter(pa.array(begins)))
        for low in range(0, len(names), RUN_ROWS):
            part = KeyedNames(keys, tuple(properties)).slice(low, min(low + RUN_ROWS, len(names)))
            self._parts.append(part)
            self._rows += len(part)
            self._bytes += sum(_size(column) for column in (part.keys, *part.properties))
            if self._rows >= RUN_ROWS or self._bytes >= RUN_BYTES:
                yield self._flush()

    def finish(self) -> Iterator[SortedRun]:
        """The last run, if there is something left to write or to tell."""
        if self._rows or self._names or self._system:
            yield self._flush()

    def _flush(self) -> SortedRun:
        blocks: list[RunBlock] = []
        path = ""
        if self._rows:
            path = f"{self._folder}-{uuid.uuid4().hex}.run"
            rows = joined_names(self._parts, self._properties)
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


def _within(keys: pa.LargeBinaryArray, key_ranges: KeyRanges) -> _Array:
    """Which keys are in one of the ranges."""
    at = segment_ids([low for low, _ in key_ranges], keys) - 1
    highs = pa.array([high for _, high in key_ranges], pa.large_binary())
    last = highs.take(pa.array(np.maximum(at, 0)))
    inside = pc.or_(pc.equal(pc.binary_length(last), 0), pc.less(keys, last))
    result: _Array = inside.to_numpy(zero_copy_only=False) & (at >= 0)
    return result


def _encoded(rows: KeyedNames) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    schema = block_schema(len(rows.properties))
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with pa.ipc.new_stream(sink, schema, options=options) as writer:
        writer.write_batch(pa.record_batch([rows.keys, *rows.properties], schema=schema))
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
