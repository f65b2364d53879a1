"""Binary search for names in a selection, by the order of the hash.

Only the selected names are read: others, in a listing that was encoded elsewhere, may not be checked yet.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate

from broker_core.listing.listing_data import ListingData
from broker_core.listing.listing_part import ListingPart
from broker_core.names import hash_order_bytes

__all__ = ["NameSearch"]


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
