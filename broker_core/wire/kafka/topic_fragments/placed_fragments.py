"""The topics of Metadata's and DescribeTopicPartitions' answers with the nodes of their partitions in a cluster.

A placement has all partitions of one topic in the order of their numbers, each as in versions 9 to 13.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.kafka import internal_names
from broker_core.listing import TopicChunk, TopicRow
from broker_core.names import column_data
from broker_core.wire.kafka.api import Api
from broker_core.wire.kafka.fields import Fields
from broker_core.wire.kafka.known_apis import NOT_REQUESTED
from broker_core.wire.kafka.reader import MalformedMessage, Reader, varint
from broker_core.wire.kafka.topic_fragments.family import Family, Layout
from broker_core.wire.kafka.topic_fragments.one_node_fragments import family_version
from broker_core.wire.kafka.writer import unsigned_varint

__all__ = [
    "PlacedAnswer",
    "PlacedTopics",
    "placed_described_family",
    "placed_metadata_family",
    "read_placed_answer",
    "read_placed_topics",
]

_Array = np.ndarray[Any, Any]
#: Converts partitions, given as bytes and the start of each, to another layout; all have the same numbers of replicas,
#: in-sync and offline ones.
_Remake: TypeAlias = Callable[[_Array, _Array, Sequence[int]], pa.LargeBinaryArray]
_BYTES: Final = pa.large_binary()
_NOTHING: Final = pa.scalar(b"", _BYTES)
#: Bytes of a partition before its three arrays of nodes: error, number, leader and epoch.
_FIXED: Final = 14
#: The place of the leader in them, and the error LEADER_NOT_AVAILABLE.
_LEADER: Final = 6
_NO_LEADER_NOW: Final = b"\0\5"
#: Bytes of the leader's epoch, which is before the arrays.
_EPOCH: Final = 4
#: Lengths from here on take more than one byte: no topic has so many replicas.
_LONG: Final = 0x80
_DIGEST: Final = 16
#: Values of a topic in the column of its parts: name, nothing, id, bytes between, partitions, rest.
_PARTS: Final = 6


class PlacedTopics(NamedTuple):
    """Columns of topics, in the order of an answer: names and ids, numbers of partitions (int32), placements."""

    names: pa.LargeBinaryArray
    ids: pa.LargeBinaryArray
    partitions: _Array
    placements: pa.LargeBinaryArray


class PlacedAnswer(NamedTuple):
    """The digest of the topics of an answer, and the topics; ``None`` if their digest is the known one."""

    digest: bytes
    topics: PlacedTopics | None


def read_placed_answer(known: bytes | None, _api: Api, version: int, message: bytes) -> tuple[int, Fields]:
    """The correlation id of an answer of Metadata 10 to 12 about all topics, and a :class:`PlacedAnswer` as ``topics``.

    Raises :exc:`~.reader.MalformedMessage`.
    """
    assert 10 <= version <= 12
    reader = Reader(message)
    number = reader.int32()
    reader.skip_tags()
    throttle = reader.int32()
    for _ in range(reader.elements(compact=True) or 0):
        reader.int32()
        reader.compact_string()
        reader.int32()
        reader.compact_string()
        reader.skip_tags()
    reader.compact_string()
    reader.int32()
    at = reader.at
    count = reader.unsigned_varint() - 1
    if count < 0:
        raise MalformedMessage("an answer about all topics has none")
    # A node without changes answers the same bytes.
    digest = hashlib.blake2b(memoryview(message)[at:], digest_size=_DIGEST).digest()
    topics = None if digest == known else read_placed_topics(message, reader.at, count)[0]
    return number, {"throttle_time_ms": throttle, "topics": PlacedAnswer(digest, topics)}


def read_placed_topics(data: bytes, at: int, count: int) -> tuple[PlacedTopics, int]:
    """``count`` topics of an answer of Metadata 10 to 13, without those that are gone meanwhile, and their end.

    Raises :exc:`~.reader.MalformedMessage`, also for a topic with an error.
    """
    if count > len(data) - at:
        raise MalformedMessage(
            f"the number of topics is {count}, and that of bytes behind it {len(data) - at}"
        )
    edges: list[int] = []
    numbers: list[int] = []
    try:
        for _ in range(count):
            error = data[at] << 8 | data[at + 1]
            size, name_at = varint(data, at + 2)
            id_at = name_at + size - 1
            number, first = varint(data, id_at + 17)
            end = _partitions_end(data, first, number - 1)
            if size < 2 or number < 1 or data[end + 4]:
                raise MalformedMessage(f"a topic at byte {at} has no name, no partitions or unknown fields")
            at = end + 5
            if error == _GONE:
                continue
            if error:
                raise MalformedMessage(f"topic {data[name_at:id_at]!r} has the error {error}")
            edges += (name_at, id_at, id_at, id_at + 16, first, end)
            numbers.append(number - 1)
    except IndexError:
        raise MalformedMessage("the topics end in the middle") from None
    if at > len(data):
        raise MalformedMessage("the topics end in the middle")
    edges.append(at)
    offsets = np.array(edges, np.int64)
    column = pa.LargeBinaryArray.from_buffers(
        _BYTES, len(offsets) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )
    names, ids, placements = (
        column.take(pa.array(np.arange(part, len(column), _PARTS))) for part in (0, 2, 4)
    )
    return PlacedTopics(names, ids, np.array(numbers, np.int32), placements), at


#: UNKNOWN_TOPIC_OR_PARTITION.
_GONE: Final = 3


def _partitions_end(data: bytes, at: int, count: int) -> int:
    """The end of ``count`` partitions, which are in the order of their numbers.

    Nearly always all have the same number of replicas, which slices check at once.
    """
    if not count:
        return at
    size = _partition_size(data, at)
    end = at + size * count
    if count > 1 and end <= len(data):
        second = _FIXED + 1 + 4 * (data[at + _FIXED] - 1)
        third = second + 1 + 4 * (data[at + second] - 1)
        if all(
            data[at + place : end : size] == bytes((data[at + place],)) * count
            for place in (_FIXED, second, third, size - 1)
        ):
            numbers = np.frombuffer(data, np.uint8, end - at, at).reshape(count, size)[:, 2:6]
            _check_order(np.ascontiguousarray(numbers).view(">i4").ravel())
            return end
    for number in range(count):
        if int.from_bytes(data[at + 2 : at + 6]) != number:
            raise MalformedMessage(f"partition {number} of a topic is not at byte {at}")
        at += _partition_size(data, at)
    return at


def _check_order(numbers: _Array) -> None:
    if (numbers != np.arange(len(numbers))).any():
        raise MalformedMessage("the partitions of a topic are not in order")


def _partition_size(data: bytes, at: int) -> int:
    start = at
    at += _FIXED
    for _ in range(3):
        size = data[at]
        if not 0 < size < _LONG:
            raise MalformedMessage(f"a partition at byte {start} has {size} replicas")
        at += 1 + 4 * (size - 1)
    if data[at]:
        raise MalformedMessage(f"a partition at byte {start} has unknown fields")
    return at + 1 - start


# ---- encoding


@lru_cache(maxsize=64)
def placed_metadata_family(
    version: int, operations: int = NOT_REQUESTED, lost: frozenset[int] = frozenset()
) -> Family:
    """The family of a version, for chunks with placements, with the given authorized operations.

    Clients cannot reach the nodes ``lost``: partitions that they lead have no leader, and their replicas are offline.
    """
    first = family_version(version)
    return _family(first, operations if version >= 8 else NOT_REQUESTED, lost)


@lru_cache(maxsize=64)
def _family(version: int, operations: int, lost: frozenset[int]) -> Family:
    flexible = version >= 9
    remake = None if flexible else partial(_plain_rows, version)
    layout = _PlacedLayout(
        b"\0\0", flexible, version >= 10, _no_tail, True, version, operations, remake, lost
    )
    end = None if version < 8 else int(flexible)
    return Family(("placed", version, operations, lost), layout, end)


@lru_cache(maxsize=8)
def placed_described_family(operations: int, lost: frozenset[int] = frozenset()) -> Family:
    """The family of DescribeTopicPartitions, for chunks with placements, with the given authorized operations, and with
    ``lost`` nodes as in :func:`placed_metadata_family`.

    Metadata does not have eligible leader replicas: they are null, which means "not known".
    """
    layout = _PlacedLayout(
        b"\0\0", True, True, _no_tail, True, family_version(10), operations, _described_rows, lost
    )
    return Family(("placed described", operations, lost), layout, 1)


def _no_tail(_internal: bool, _start: int, _stop: int, _operations: int | None) -> bytes:
    raise AssertionError("the tail of a placed topic is made of its placement")


@dataclass(frozen=True, slots=True)
class _PlacedLayout(Layout):
    """The layout of topics whose tails are made from their placements."""

    version: int = 0
    operations: int = NOT_REQUESTED
    remake: _Remake | None = None
    lost: frozenset[int] = frozenset()

    def part(self, topic: TopicRow, start: int, stop: int, operations: int | None) -> bytes:
        assert self.compact  # other versions have no pages
        assert topic.placement is not None
        rows = list(_rows_of(topic.placement))[start:stop]
        placed = pa.array([b"".join(rows)], _BYTES)
        internal = bool(internal_names(pa.array([topic.name], _BYTES))[0])
        return b"".join(
            (
                self.head,
                unsigned_varint(len(topic.name) + 1),
                topic.name,
                topic.topic_id if self.ids else b"",
                self._front(internal, len(rows)),
                self._remade(placed)[0].as_py(),
                self._end(operations),
            )
        )

    def _tails(self, chunk: TopicChunk) -> pa.LargeBinaryArray:
        assert chunk.placements is not None
        keys = internal_names(chunk.names).astype(np.int64) + 2 * chunk.partitions.astype(np.int64)
        distinct, at = np.unique(keys, return_inverse=True)
        fronts = [self._front(bool(key & 1), int(key) >> 1) for key in distinct.tolist()]
        placed, end = self._remade(chunk.placements), pa.scalar(self._end(None), _BYTES)
        return pc.binary_join_element_wise(pa.array(fronts, _BYTES).take(pa.array(at)), placed, end, _NOTHING)

    def _remade(self, placements: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
        if self.lost:
            placements = _remade(placements, partial(_rows_without, [*self.lost]))
        return placements if self.remake is None else _remade(placements, self.remake)

    def _front(self, internal: bool, count: int) -> bytes:
        size = unsigned_varint(count + 1) if self.compact else count.to_bytes(4, "big")
        return (b"" if self.version < 1 else bytes((internal,))) + size

    def _end(self, operations: int | None) -> bytes:
        data = b""
        if self.version >= 8:
            data = (self.operations if operations is None else operations).to_bytes(4, "big", signed=True)
        return data + b"\0" if self.compact else data


def _rows_of(placement: bytes) -> Iterator[bytes]:
    """The partitions of one topic."""
    at = 0
    while at < len(placement):
        size = _partition_size(placement, at)
        yield placement[at : at + size]
        at += size


def _remade(placements: pa.LargeBinaryArray, remake: _Remake) -> pa.LargeBinaryArray:
    """Placements in which each partition is converted."""
    buffer, offsets = column_data(placements)
    data = np.frombuffer(buffer, np.uint8)
    at, ends = offsets[:-1].copy(), offsets[1:]
    topics, starts = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    sizes: list[list[_Array]] = [[np.zeros(0, np.int64)] for _ in range(3)]
    rows = np.flatnonzero(at < ends)
    while len(rows):  # the next partition of all topics that have one
        topics.append(rows)
        starts.append(at[rows])
        place = at[rows] + _FIXED
        for each in sizes:
            each.append(data[place].astype(np.int64) - 1)
            place = place + 1 + 4 * each[-1]
        at[rows] = place + 1
        rows = rows[at[rows] < ends[rows]]
    topic, start = np.concatenate(topics), np.concatenate(starts)
    shapes = np.stack([np.concatenate(each) for each in sizes], axis=1)
    made, found = _by_value(shapes, lambda rows, shape: remake(data, start[rows], shape.tolist()))
    # In the order of topics, and of partitions within a topic.
    taken = made.take(pa.array(np.lexsort((start[found], topic[found]))))
    data_of, edges = column_data(taken)
    firsts = np.searchsorted(np.sort(topic), np.arange(len(placements) + 1))
    return pa.LargeBinaryArray.from_buffers(
        _BYTES, len(placements), [None, pa.py_buffer(np.ascontiguousarray(edges[firsts])), data_of]
    )


def _rows_without(lost: list[int], data: _Array, starts: _Array, shape: Sequence[int]) -> pa.LargeBinaryArray:
    """Partitions without the nodes that clients cannot reach, as a cluster shows nodes that are down."""
    block = _block(data, starts, shape)
    is_led = np.isin(_numbers(block, _LEADER, 1)[:, 0], lost)
    block[is_led, :2] = np.frombuffer(_NO_LEADER_NOW, np.uint8)
    block[is_led, _LEADER : _LEADER + 4] = 0xFF
    replicas = _numbers(block, _FIXED + 1, shape[0])
    at = _FIXED + 2 + 4 * (shape[0] + shape[1])  # of the number of offline replicas
    known = _numbers(block, at + 1, shape[2])
    is_new = np.isin(replicas, lost) & ~(replicas[:, :, None] == known[:, None, :]).any(axis=2)

    def without(rows: _Array, these: _Array) -> pa.LargeBinaryArray:
        some = block[rows]
        size = np.full((len(rows), 1), 1 + shape[2] + these.sum(), np.uint8)
        offline = np.ascontiguousarray(replicas[rows][:, these].astype(">i4")).view(np.uint8)
        no_tags = np.zeros((len(rows), 1), np.uint8)
        return _joined((some[:, :at], size, some[:, at + 1 :], offline.reshape(len(rows), -1), no_tags))

    made, order = _by_value(is_new, without)
    return made.take(pa.array(np.argsort(order)))


def _by_value(
    values: _Array, make: Callable[[_Array, _Array], pa.LargeBinaryArray]
) -> tuple[pa.LargeBinaryArray, _Array]:
    """Fragments of the rows of each distinct value, one after another, and the numbers of the rows."""
    columns, order = [pa.array([], _BYTES)], [np.zeros(0, np.int64)]
    for value in np.unique(values, axis=0):
        rows = np.flatnonzero((values == value).all(axis=1))
        columns.append(make(rows, value))
        order.append(rows)
    return pa.concat_arrays(columns), np.concatenate(order)


def _numbers(block: _Array, at: int, count: int) -> _Array:
    """The int32 numbers from a column of bytes on, as many for each row."""
    return np.ascontiguousarray(block[:, at : at + 4 * count]).view(">i4").reshape(len(block), count)


def _plain_rows(version: int, data: _Array, starts: _Array, shape: Sequence[int]) -> pa.LargeBinaryArray:
    """Partitions for a version of Metadata with lengths of fixed size."""
    block = _block(data, starts, shape)
    pieces = [block[:, : _FIXED - _EPOCH]]
    if version >= 7:
        pieces.append(block[:, _FIXED - _EPOCH : _FIXED])
    place = _FIXED
    for count in shape if version >= 5 else shape[:2]:
        length = np.frombuffer(count.to_bytes(4, "big"), np.uint8)
        pieces += [np.broadcast_to(length, (len(block), 4)), block[:, place + 1 : place + 1 + 4 * count]]
        place += 1 + 4 * count
    return _joined(pieces)


def _described_rows(data: _Array, starts: _Array, shape: Sequence[int]) -> pa.LargeBinaryArray:
    """Partitions for DescribeTopicPartitions: with two more arrays, which are null, before the offline replicas."""
    block = _block(data, starts, shape)
    offline = _FIXED + 2 + 4 * (shape[0] + shape[1])
    null = np.zeros((len(block), 2), np.uint8)
    return _joined([block[:, :offline], null, block[:, offline:], null[:, :1]])  # no tags


def _block(data: _Array, starts: _Array, shape: Sequence[int]) -> _Array:
    """The bytes of partitions, without their tags: a row for each."""
    block: _Array = data[starts[:, None] + np.arange(_FIXED + 3 + 4 * sum(shape))]
    return block


def _joined(pieces: Sequence[_Array]) -> pa.LargeBinaryArray:
    made = np.ascontiguousarray(np.concatenate(pieces, axis=1))
    edges = np.arange(len(made) + 1, dtype=np.int64) * made.shape[1]
    return pa.LargeBinaryArray.from_buffers(
        _BYTES, len(made), [None, pa.py_buffer(edges), pa.py_buffer(made.tobytes())]
    )
