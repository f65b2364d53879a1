"""Look-ups of many names in a listing: each search is bounded by the names that were found before it.

If many answers of one listing get the same changes, the places of their names are remembered with the listing.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np

from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.chunks.memo_key import Remembered
from broker_core.listing.fields.fields_codec import SHORT_FIELD, name_start
from broker_core.listing.listing_data import ListingData
from broker_core.names import hash_order_bytes

__all__ = ["Place", "locate", "places", "remembered_places"]

_Array = np.ndarray[Any, Any]

#: The number of a chunk, the row of it where a name is or would be inserted, and whether it is there.
Place: TypeAlias = tuple[int, int, bool]
#: With fewer names than one for so many chunks, reading the first name of every chunk costs more.
_CHUNKS_A_NAME: Final = 8
#: Fewer names are looked up again each time.
_REMEMBERED: Final = 64
#: No key has this byte (:mod:`~broker_core.names.hash_order`).
_BETWEEN_KEYS: Final = b"\xf8"


def locate(data: ListingData, keys: Sequence[bytes]) -> tuple[_Array, _Array]:
    """For each key of a name, in any order, its row or the row where it would be (int64), and whether it is there."""
    rows, present = np.zeros(len(keys), np.int64), np.zeros(len(keys), bool)
    if all(before <= key for before, key in pairwise(keys)):
        order: Sequence[int] = range(len(keys))
    else:
        order = sorted(range(len(keys)), key=keys.__getitem__)
        keys = [keys[index] for index in order]
    if data.chunks:
        for index, (number, row, is_there) in zip(order, places(data, keys), strict=True):
            rows[index] = data.start(number) + row
            present[index] = is_there
    return rows, present


def places(data: ListingData, keys: Sequence[bytes], low: int = 0, high: int | None = None) -> list[Place]:
    """The place of each key of a name (:func:`~broker_core.names.hash_order.hash_order_bytes`); keys ascend.

    Only the chunks number ``low`` to ``high`` are searched.
    """
    if len(keys) * _CHUNKS_A_NAME <= len(data.chunks) or len(keys) < 2:
        return [data.place(key, low, high) for key in keys]
    firsts, last = data.first_keys, len(data.chunks) if high is None else high
    found: list[Place] = []
    begin = 0
    while begin < len(keys):
        behind = bisect_right(firsts, keys[begin], low, last)
        if behind == low:
            found.append((low, 0, False))
            begin += 1
            continue
        end = len(keys) if behind == last else bisect_left(keys, firsts[behind], begin)
        found += _places_in(data.chunks[behind - 1], behind - 1, keys[begin:end])
        begin = end
    return found


def remembered_places(data: ListingData, keys: Sequence[bytes]) -> list[Place]:
    """The place of each key of a name in all chunks. The listing remembers many, if it has room for them."""
    if len(keys) < _REMEMBERED:
        return places(data, keys)
    digest = hashlib.blake2b(_BETWEEN_KEYS.join(keys), digest_size=16).digest()
    memo_key = (Remembered.PLACES, digest), None
    known: _Array | None = data.memo.get(memo_key)
    if known is None:
        known = np.array(places(data, keys), np.int32)
        data.memo.put(memo_key, known, known.nbytes)
    return [(number, row, is_there == 1) for number, row, is_there in known.tolist()]


def _places_in(chunk: Chunk, number: int, keys: Sequence[bytes]) -> list[Place]:
    data, offsets = memoryview(chunk.fields), chunk.field_offsets.data

    def key_at(row: int) -> bytes:
        start, stop = offsets[row], offsets[row + 1]
        head = 2 if stop - start <= SHORT_FIELD else name_start(stop - start)
        return hash_order_bytes(data[start + head : stop].tobytes())

    found: list[Place] = [(number, 0, False)] * len(keys)
    # (keys from, to; rows from, to): the one in the middle is looked up, and bounds those on both sides.
    left = [(0, len(keys), 0, chunk.size)]
    while left:
        low, high, first, last = left.pop()
        middle = (low + high) // 2
        key = keys[middle]
        row = bisect_left(range(last), key, first, last, key=key_at)
        is_there = row < chunk.size and key_at(row) == key
        found[middle] = number, row, is_there
        if low < middle:
            left.append((low, middle, first, row))
        if middle + 1 < high:
            left.append((middle + 1, high, row, last))
    return found
