"""The names of one topic in a listing (its own name and its partitions), found by binary search.

Only the selected names are read: others, in a listing that was encoded elsewhere, may not be checked yet.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from broker_core.listing.listing import Selection, data_of, part_of
from broker_core.listing.listing_data import ListingData
from broker_core.listing.listing_part import ListingPart
from broker_core.listing.pages.page import NO_PARTITION
from broker_core.names import (
    PARTITION_SUFFIX,
    hash_order_bytes,
    partition_index,
    partitioned_local_name,
    split_partitions,
)

__all__ = ["NameSearch", "few_topic_names", "partitions_of", "topic_names"]


class NameSearch:
    """The names of a part of a listing, as a sequence to search. For any thread."""

    __slots__ = ("_data", "_pieces", "_size", "_starts")

    def __init__(self, data: ListingData, part: ListingPart) -> None:
        self._data = data
        self._size = len(part)
        #: In a whole listing the chunks are searched, without an object for each.
        self._pieces = None if part.is_whole(data) else part.pieces_in(data)
        self._starts = [0, *accumulate(len(rows) for _, rows in self._pieces or ())]

    def __len__(self) -> int:
        return self._size

    def name(self, index: int) -> bytes:
        """The full name at a place, in UTF-8."""
        data = self._data
        if self._pieces is None:
            number = data.chunk_at(index)
            return data.chunks[number].name(index - data.start(number))
        piece = bisect_right(self._starts, index) - 1
        number, rows = self._pieces[piece]
        row = index - self._starts[piece]
        return data.chunks[number].name(rows.low + row if rows.rows is None else rows.rows.item(row))

    def find(self, name: bytes) -> int:
        """The place of the first name that is not before ``name``; the number of names if all are."""
        return self.find_key(hash_order_bytes(name))

    def find_key(self, key: bytes) -> int:
        """The place of the first name that is not before a key of
        :func:`~broker_core.names.hash_order.hash_order_bytes`.
        """
        if self._pieces is None:
            number, row, _ = self._data.place(key)
            return self._data.start(number) + row
        return bisect_left(range(self._size), key, key=self._key)

    def _key(self, index: int) -> bytes:
        return hash_order_bytes(self.name(index))


_FIRST: Final = f"{PARTITION_SUFFIX}0".encode()
#: Sorts after all partitions of a topic: the character after the digits.
_AFTER_PARTITIONS: Final = f"{PARTITION_SUFFIX}:".encode()
_FEW: Final = 64


def topic_names(selection: Selection, topic: str) -> pa.LargeStringArray:
    """The full names that ``topic`` (a full name) is listed by: itself, and its partitions; possibly none."""
    is_plain, others = _candidates(selection, topic)
    few = _own_of_few(topic, others, is_plain=is_plain)
    if few is not None:
        return few
    names = others.names
    bases, _ = split_partitions(names)
    own = names.filter(pc.equal(bases, topic))
    return pa.concat_arrays([pa.array([topic], own.type), own]) if is_plain else own


def few_topic_names(selection: Selection, topic: str) -> pa.LargeStringArray | None:
    """The names of :func:`topic_names`; ``None`` if they may be many, which takes longer."""
    is_plain, others = _candidates(selection, topic)
    return _own_of_few(topic, others, is_plain=is_plain)


def _candidates(selection: Selection, topic: str) -> tuple[bool, Selection]:
    """Whether topic ``x`` is listed by its own name, and the names of its partitions, with a few others such as
    ``x-partition-01`` and ``x-partition-1-partition-2``.

    In the order of the hash, the partitions of a topic are between two names that a search finds.
    """
    search = NameSearch(data_of(selection.listing), part_of(selection))
    name = topic.encode()
    plain = search.find(name)
    is_plain = plain < len(search) and search.name(plain) == name
    return is_plain, selection.range(search.find(name + _FIRST), search.find(name + _AFTER_PARTITIONS))


def _own_of_few(topic: str, others: Selection, *, is_plain: bool) -> pa.LargeStringArray | None:
    """The names of a topic among a few candidates, each read by itself: columns would cost more."""
    if len(others) > _FEW:
        return None
    own = [topic] if is_plain else []
    if len(others):
        start = topic.rindex("/") + 1
        local = topic[start:]
        own += [name for name in others.names.to_pylist() if partitioned_local_name(name[start:]) == local]
    return pa.array(own, pa.large_string())


def partitions_of(names: pa.LargeStringArray, topic: str) -> int | None:
    """Number of partitions of a topic by the names that it is listed by; ``None`` without names."""
    if not len(names):
        return None
    if len(names) <= _FEW:
        start = topic.rindex("/") + 1
        found = (
            NO_PARTITION if name == topic else partition_index(name[start:]) for name in names.to_pylist()
        )
        return max(found) + 1
    bases, numbers = split_partitions(names)
    if numbers is None:
        return 0
    own = numbers[pc.equal(bases, topic).to_numpy(zero_copy_only=False)]
    return int(own.max()) + 1 if len(own) else 0
