"""A family of versions that encode topics in the same way, and the kernels that encode its chunks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.kafka import INTERNAL, LONGEST, internal_names
from broker_core.listing import RenderedChunk, TopicChunk, TopicRow
from broker_core.wire.kafka.writer import unsigned_varint

__all__ = ["Family", "Layout", "ids_column", "partition_block", "with_operations"]

_Array = np.ndarray[Any, Any]
_BYTES: Final = pa.large_binary()
_NOTHING: Final = pa.scalar(b"", _BYTES)
_LENGTHS: Final = range(LONGEST + 1)


@dataclass(frozen=True, slots=True)
class Family:
    """A family of versions. ``key`` identifies it; ``operations_end`` is the number of bytes after the authorized
    operations of each topic (of 4 bytes), ``None`` if it has none.
    """

    key: tuple[object, ...]
    layout: Layout = field(compare=False)
    operations_end: int | None = field(default=None, compare=False)

    def of(self, chunk: TopicChunk) -> RenderedChunk:
        """The encoded topics of a chunk, which are cached with it."""
        return chunk.rendered(self.key, self.layout.render)


@dataclass(frozen=True, slots=True)
class Layout:
    """The parts of a topic, in order: ``head``, its name after the length, its id (``ids``), and ``tail``.

    The tail depends on whether the topic is internal, on the range of its partitions, and on its authorized operations
    (``None``: those of the family). ``compact`` lengths have a variable size.
    """

    head: bytes
    compact: bool
    ids: bool
    tail: Callable[[bool, int, int, int | None], bytes]
    by_partitions: bool = True

    def render(self, chunk: TopicChunk) -> RenderedChunk:
        """The encoded topics of a chunk."""
        parts = [_heads(self.head, self.compact).take(pc.binary_length(chunk.names)), chunk.names]
        if self.ids:
            parts.append(ids_column(chunk))
        parts.append(self._tails(chunk))
        joined = pc.binary_join_element_wise(*parts, _NOTHING)
        return RenderedChunk.of_column(joined)

    def part(self, topic: TopicRow, start: int, stop: int, operations: int | None) -> bytes:
        """One topic with its partitions from ``start`` on, without ``stop``."""
        size = unsigned_varint(len(topic.name) + 1) if self.compact else len(topic.name).to_bytes(2, "big")
        tail = self.tail(topic.name.decode() in INTERNAL, start, stop, operations)
        return b"".join((self.head, size, topic.name, topic.topic_id if self.ids else b"", tail))

    def _tails(self, chunk: TopicChunk) -> pa.LargeBinaryArray | pa.LargeBinaryScalar:
        keys = internal_names(chunk.names).astype(np.int64)
        if self.by_partitions:
            keys += 2 * chunk.partitions.astype(np.int64)
        if len(keys) and (keys == keys[0]).all():  # most tables have topics of one kind
            key = int(keys[0])
            return pa.scalar(self.tail(bool(key & 1), 0, key >> 1, None), _BYTES)
        distinct, at = np.unique(keys, return_inverse=True)
        tails = [self.tail(bool(key & 1), 0, int(key) >> 1, None) for key in distinct.tolist()]
        return pa.array(tails, _BYTES).take(pa.array(at))


@lru_cache(maxsize=16)
def _heads(head: bytes, compact: bool) -> pa.LargeBinaryArray:
    """``head`` followed by the length, for each length."""
    return pa.array(
        [head + (unsigned_varint(size + 1) if compact else size.to_bytes(2, "big")) for size in _LENGTHS],
        _BYTES,
    )


def ids_column(chunk: TopicChunk) -> pa.LargeBinaryArray:
    """The id of each topic; the zero id if none is known."""
    if chunk.ids is not None:
        return chunk.ids
    offsets = np.arange(len(chunk) + 1, dtype=np.int64) * 16
    return pa.LargeBinaryArray.from_buffers(
        _BYTES, len(chunk), [None, pa.py_buffer(offsets), pa.py_buffer(bytes(16 * len(chunk)))]
    )


def with_operations(rendered: RenderedChunk, family: Family, operations: _Array) -> RenderedChunk:
    """A copy with the authorized operations (int32) of each topic."""
    assert family.operations_end is not None
    data = np.frombuffer(rendered.data, np.uint8).copy()
    at = rendered.offsets[1:] - family.operations_end - 4
    bits = operations.astype(">i4").view(np.uint8).reshape(-1, 4)
    for byte in range(4):
        data[at + byte] = bits[:, byte]
    return RenderedChunk(memoryview(data.data), rendered.offsets)


def partition_block(first: bytes, count: int, start: int = 0, at: int = 2) -> bytes:
    """The partitions from ``start`` to ``count``, encoded like number 0 (``first``), with the number at byte ``at``."""
    numbers: Sequence[int] = range(start, max(count, start))
    block = np.tile(np.frombuffer(first, np.uint8), (len(numbers), 1))
    block[:, at : at + 4] = np.asarray(numbers, ">i4").reshape(-1, 1).view(np.uint8)
    return block.tobytes()
