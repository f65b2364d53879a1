"""Pages of a selection: its names from a place on, in the order of pages, a block at a time.

Nothing is kept besides the names, which are in the order of the hash. Both orders are the same except for partitions,
which follow their topic in pages. In the order of the hash they come later, at times much later: ``a-partition-0`` has
``a-b`` and ``a-c`` between itself and ``a``. So a block of names in the order of the hash becomes a block in the order
of pages without the partitions of earlier topics, and with later partitions of its own topics. Such a topic is a prefix
of the name after the block, since that name lies between the topic and its partitions.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.chunks.chunk_rows import ChunkRows
from broker_core.listing.fields.fields_codec import decode_fields
from broker_core.listing.listing import Selection, data_of, part_of
from broker_core.listing.listing_data import Pieces
from broker_core.listing.pages.names_of_topic import NameSearch
from broker_core.listing.pages.page import NO_PARTITION, Position
from broker_core.names import (
    PARTITION_SUFFIX,
    Array,
    hash_order_bytes,
    hash_order_key,
    partition_index,
    sorted_rows,
    split_partitions,
)

__all__ = [
    "PageBlock",
    "PageNames",
    "PageStart",
    "PageWalk",
    "first_out_of_order",
    "in_page_order",
    "page_order",
    "topic_ends",
]


def in_page_order(names: pa.LargeStringArray) -> pa.LargeStringArray:
    """Full names, each once, in the order of pages."""
    bases, numbers = split_partitions(names)
    order = page_order(hash_order_key(bases), numbers)
    return names if order is None else names.take(pa.array(order))


def first_out_of_order(names: pa.LargeStringArray) -> int | None:
    """The row of the first full name that is followed by a wrong one; ``None`` if all are in order, each once."""
    bases, numbers = split_partitions(names)
    ascends = _ascends(*_neighbours(hash_order_key(bases)), numbers)
    return None if ascends.all() else int(np.argmin(ascends))


def page_order(key: pa.LargeBinaryArray, numbers: Array | None) -> Array | None:
    """The rows of names in the order of pages (int64); ``None`` if they are in that order already, each once.

    ``key`` is the :func:`~broker_core.names.hash_order.hash_order_key` of their topics, ``numbers`` the number of each
    partition (``None``: no name is one), as :func:`~broker_core.names.name_columns.split_partitions` gives it.
    """
    before, same = _neighbours(key)
    if _ascends(before, same, numbers).all():
        return None
    if (before | same).all():  # the names of each topic are together, as a rule
        order, begins = np.arange(len(key)), before
    else:
        order = sorted_rows(key)
        begins, _ = _neighbours(key.take(pa.array(order)))
    if numbers is None:
        return order
    topic = np.concatenate(([0], np.cumsum(begins)))
    ordered: Array = order[np.lexsort((numbers[order], topic))]
    return ordered


def topic_ends(topics: pa.LargeBinaryArray | pa.LargeStringArray) -> Array:
    """The last row of each run of equal values (int64)."""
    if not len(topics):
        return np.zeros(0, np.int64)
    differs = pc.not_equal(topics[:-1], topics[1:]).to_numpy(zero_copy_only=False)
    return np.append(np.flatnonzero(differs), len(topics) - 1)


def _neighbours(key: pa.LargeBinaryArray) -> tuple[Array, Array]:
    """For each value but the last, whether it is less than the next one, and whether it is equal to it."""
    if len(key) < 2:
        return np.ones(0, bool), np.zeros(0, bool)
    less: Array = pc.less(key[:-1], key[1:]).to_numpy(zero_copy_only=False)
    if less.all():
        return less, ~less
    return less, pc.equal(key[:-1], key[1:]).to_numpy(zero_copy_only=False)


def _ascends(before: Array, same: Array, numbers: Array | None) -> Array:
    """For each name but the last, whether the next one may follow it."""
    return before if numbers is None else before | (same & (numbers[:-1] < numbers[1:]))


#: The most names of a block.
_MOST: Final = 64 * 1024
#: Bytes that a block holds for each name besides its text: offsets, numbers, the order.
_EACH: Final = 64
#: The partitions of a topic after a block are all read if they are no more than these; else the next ones are searched
#: in each chunk that has some.
_ALL: Final = 8 * 1024
_SUFFIX: Final = PARTITION_SUFFIX.encode()
_FIRST: Final = _SUFFIX + b"0"
#: Sorts after the partitions of a topic in the order of the hash: the character after the digits.
_AFTER_PARTITIONS: Final = _SUFFIX + b":"


@dataclass(frozen=True, slots=True)
class PageStart:
    """The place from which names are wanted: a topic, by its key in the order of the hash, and a partition of it."""

    key: bytes = b""
    number: int = NO_PARTITION

    @classmethod
    def of(cls, position: Position | None) -> Self:
        """The place of a position; the first place for ``None``."""
        if position is None:
            return cls()
        return cls(hash_order_bytes(position.base.encode()), position.partition)


@dataclass(frozen=True, slots=True)
class PageNames:
    """Full names in the order of pages: each with its row in the listing, and with its topic.

    ``topics`` are the names without partition suffix, and ``partitions`` (int64) how many partitions each topic has in
    the selection: the highest number and one.
    """

    names: pa.LargeStringArray
    rows: Array
    topics: pa.LargeStringArray
    partitions: Array

    def __len__(self) -> int:
        return len(self.names)

    def first(self, count: int) -> PageNames:
        """At most the first ``count`` names."""
        if len(self) <= count:
            return self
        return PageNames(self.names[:count], self.rows[:count], self.topics[:count], self.partitions[:count])

    def where(self, mask: pa.BooleanArray) -> PageNames:
        """The names for which the mask is true."""
        keep = mask.to_numpy(zero_copy_only=False)
        return PageNames(
            self.names.filter(mask), self.rows[keep], self.topics.filter(mask), self.partitions[keep]
        )


class PageWalk:
    """The names of a selection in the order of pages. Immutable; for any thread."""

    __slots__ = ("_data", "_names", "_part")

    def __init__(self, selection: Selection) -> None:
        self._data = data_of(selection.listing)
        self._part = part_of(selection)
        self._names = NameSearch(self._data, self._part)

    def block(self, start: PageStart, count: int) -> PageBlock:
        """About ``count`` names from a place on, fewer if many are partitions of earlier topics.

        Costs a few binary searches, more if a name has many characters before ``-``.
        """
        begin = self._names.find_key(start.key)
        end = min(begin + min(count, _MOST), len(self._names))
        near = [(begin, end)]
        far: list[tuple[bytes, Pieces]] = []
        following = None
        if end < len(self._names):
            name = self._names.name(end)
            following = PageStart(hash_order_bytes(name))
            for topic, low, high in self._partitions_from(end, name, start.key):
                if high - low <= _ALL:
                    near.append((low, high))
                else:
                    far.append((topic, self._pieces(low, high)))
        pieces = [self._pieces(low, high) for low, high in _outermost(near)]
        return PageBlock(self._data, start, following, pieces, far, end - begin)

    def position(self, number: int) -> Position | None:
        """The position of name ``number``, from 0, in the order of pages; ``None`` after the last name.

        A binary search over names in the order of the hash, at each of which the number of names before its page is
        known: earlier names, and later partitions of earlier topics.
        """
        if number >= len(self._names):
            return None
        place = bisect_right(range(number + 1), number, key=self._before) - 1
        start, before = PageStart(), 0
        if place >= 0:
            start, before = PageStart(hash_order_bytes(self._names.name(place))), self._before(place)
        following: PageStart | None = start
        while following is not None:
            found, following = self.block(following, number - before + 1).read()
            if len(found) > number - before:
                return Position.of(found.names[number - before].as_py())
            before += len(found)
        return None

    def _before(self, at: int) -> int:
        """Number of names, in the order of pages, before a topic that has the name at a place."""
        chunks = self._data.chunks
        return at + sum(
            len(rows)
            for topic, low, high in self._partitions_from(at, self._names.name(at), b"")
            for number, piece in self._pieces(low, high)
            if len(rows := _rows_of(chunks[number], piece, topic))
        )

    def _pieces(self, low: int, high: int) -> Pieces:
        return self._part.stretch(low, high, self._data).pieces_in(self._data)

    def _partitions_from(self, at: int, name: bytes, least: bytes) -> Iterator[tuple[bytes, int, int]]:
        """Topics before ``name``, the name at a place, that have partitions at or after the place; and their range.

        Topics whose keys are before ``least`` are left out.
        """
        common = _common(hash_order_bytes(name), least)
        shortest = max(common + (common < len(least)), name.rfind(b"/") + 2)
        shared = len(name)
        for size in range(len(name) - 1, shortest - 1, -1):
            rest = name[size : size + len(_AFTER_PARTITIONS)]
            if rest[0] > _AFTER_PARTITIONS[0] or rest >= _AFTER_PARTITIONS:
                continue  # the partitions of this prefix are all before the name
            # Shorter topics have their partitions after those of longer ones, where the names share less with `name`.
            # Only `x` and `x-partition` have it the other way round.
            if size > shared and not rest.startswith(_SUFFIX[:-1]):
                continue
            topic = name[:size]
            low = max(self._names.find(topic + _FIRST), at)
            high = self._names.find(topic + _AFTER_PARTITIONS)
            if low < high:
                yield topic, low, high
            shared = min(shared, _common(name, self._names.name(low)) if low < len(self._names) else 0)


class PageBlock:
    """A block of names that are found, and not read yet."""

    __slots__ = ("_count", "_data", "_far", "_following", "_near", "_start")

    def __init__(
        self,
        data: Any,
        start: PageStart,
        following: PageStart | None,
        near: list[Pieces],
        far: list[tuple[bytes, Pieces]],
        count: int,
    ) -> None:
        """``far`` are the partitions of topics that have very many, of which at most ``count`` are read."""
        self._data = data
        self._start = start
        self._following = following
        self._near = near
        self._far = far
        self._count = count

    @property
    def nbytes(self) -> int:
        """Bytes that :meth:`read` takes, about."""
        chunks = self._data.chunks
        size = 0
        for number, rows in (piece for pieces in self._near for piece in pieces):
            size += rows.fields_size(chunks[number]) + _EACH * len(rows)
        for number, rows in (piece for _, pieces in self._far for piece in pieces):
            chunk = chunks[number]
            size += min(len(rows), self._count) * (_EACH + chunk.fields_size // chunk.size)
        return size

    def read(self) -> tuple[PageNames, PageStart | None]:
        """The names in the order of pages, and the start of the names after them."""
        found = list(self._near)
        #: Topics with partitions left out, and how many they have after the block.
        cut: dict[str, int] = {}
        for topic, pieces in self._far:
            least = self._start.number if hash_order_bytes(topic) == self._start.key else 0
            next_ones, count = _next_partitions(self._data.chunks, pieces, topic, least, self._count)
            found.append(next_ones)
            if sum(len(rows) for _, rows in next_ones) >= self._count:
                cut[topic.decode()] = count
        columns = [self._data.column(pieces) for pieces in found]
        names = decode_fields(columns[0] if len(columns) == 1 else pa.concat_arrays(columns))
        rows = np.concatenate([self._data.rows_of(pieces) for pieces in found])
        topics, numbers = split_partitions(names)
        if numbers is None and len(found) == 1:  # as it is
            first = int(self._start.number > NO_PARTITION and self._begins_with(topics))
            names = names[first:]
            return PageNames(names, rows[first:], names, np.zeros(len(names), np.int64)), self._following
        order = self._order(hash_order_key(topics), numbers)
        names, rows, topics = names.take(pa.array(order)), rows[order], topics.take(pa.array(order))
        if numbers is None:
            return PageNames(names, rows, topics, np.zeros(len(names), np.int64)), self._following
        numbers = numbers[order]
        ends = topic_ends(topics)
        counts = numbers[ends].astype(np.int64) + 1
        for topic_cut, count in cut.items():
            at = pc.index(topics.take(pa.array(ends)), pa.scalar(topic_cut, pa.large_string())).as_py()
            counts[at] = max(counts[at], count)
        partitions = np.repeat(counts, np.diff(ends, prepend=-1))
        every = PageNames(names, rows, topics, partitions)
        if not cut:
            return every, self._following
        some = every.first(self._count)
        return some, PageStart(_key(some.topics[-1]), numbers.item(len(some) - 1) + 1)

    def _begins_with(self, topics: pa.LargeStringArray) -> bool:
        """Whether the first topic is the topic of the start."""
        return len(topics) > 0 and _key(topics[0]) == self._start.key

    def _order(self, key: pa.LargeBinaryArray, numbers: Array | None) -> Array:
        """The rows of the names from the start to the following block, in the order of pages."""
        least = pa.scalar(self._start.key, pa.large_binary())
        keep: Array = pc.greater_equal(key, least).to_numpy(zero_copy_only=False)
        if self._following is not None:  # some names between partitions look like partitions
            following = pa.scalar(self._following.key, pa.large_binary())
            keep = keep & pc.less(key, following).to_numpy(zero_copy_only=False)
        if self._start.number > NO_PARTITION:
            same = pc.equal(key, least).to_numpy(zero_copy_only=False)
            own = np.full(len(key), NO_PARTITION) if numbers is None else numbers
            keep = keep & ~(same & (own < self._start.number))
        rows = np.flatnonzero(keep)
        within = page_order(key.take(pa.array(rows)), None if numbers is None else numbers[rows])
        return rows if within is None else rows[within]


def _key(topic: pa.LargeStringScalar) -> bytes:
    return hash_order_bytes(topic.as_buffer().to_pybytes())


def _rows_of(chunk: Chunk, rows: ChunkRows, topic: bytes) -> Array:
    """The rows of a topic and its partitions among some rows of a chunk, by their numbers."""
    form = topic[len(chunk.domain) + 3 :]
    low, high = chunk.forms.range(form, form + b"\0")
    ordered = chunk.forms.rows(np.arange(low, high))
    ordered = ordered[(ordered >= rows.low) & (ordered < rows.high)]
    return ordered if rows.rows is None else ordered[np.isin(ordered, rows.rows)]


def _next_partitions(
    chunks: tuple[Chunk, ...], pieces: Pieces, topic: bytes, least: int, most: int
) -> tuple[Pieces, int]:
    """The first ``most`` partitions of a topic in each piece, from number ``least`` on; and how many it has in all."""
    found = []
    highest = NO_PARTITION
    for number, rows in pieces:
        chunk = chunks[number]
        ordered = _rows_of(chunk, rows, topic)
        if not len(ordered):
            continue

        def partition(row: int, chunk: Chunk = chunk) -> int:
            return partition_index(chunk.name(row).decode().rpartition("/")[2])

        highest = max(highest, partition(ordered.item(-1)))
        at = bisect_left(range(len(ordered)), least, key=lambda place: partition(ordered.item(place)))
        some = ordered[at : at + most]
        if len(some):
            found.append((number, ChunkRows.of(np.sort(some))))
    return tuple(found), highest + 1


def _outermost(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The ranges that are within no other range: the partitions of ``x-partition-1`` are among those of ``x``."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges, key=lambda each: (each[0], -each[1])):
        if not found or found[-1][1] < high:
            found.append((low, high))
    return found


def _common(one: bytes, other: bytes) -> int:
    """The length of the common prefix of two names, in bytes."""
    for at, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return at
    return min(len(one), len(other))
