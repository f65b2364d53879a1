"""The page order of a listing's rows: an index that is built once; each page is a slice of it.

A listing has two orders: that of the hash (full names), and that of matched forms in UTF-8. Pages have a third order
(:mod:`broker_core.listing.page`). Without partitions it equals the order of the hash, and there is no index.
Otherwise the index holds the row at each place, and where each topic's names end: three numbers per name.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.listing.listing import Listing, Selection
from broker_core.listing.page import Position
from broker_core.names.column_sort import sorted_rows
from broker_core.names.hash_order import hash_order_bytes, hash_order_key
from broker_core.names.partition_columns import split_partitions

__all__ = ["BUILD_FACTOR", "PageOrder"]

_Array = np.ndarray[Any, Any]

#: Bytes that building takes, by bytes of the names in their fields; and for each name besides.
BUILD_FACTOR: Final = 4
BUILD_EACH: Final = 80
#: Topics that are looked at together in a search.
_PROBES: Final = 64
#: A selection of so many rows or fewer is put in order as a whole for each page.
_FEW: Final = 32 * 1024


class PageOrder:
    """The places of one listing's rows in the order of pages. Immutable; for any thread.

    It does not refer to its listing, which every method is given, so that it can be remembered as long as that lives.
    ``rows`` is the row at each place (``None``: its own), ``numbers`` the partition there (``None``: none is), ``ends``
    the place behind the last name of each topic (``None``: each name is a topic).
    """

    __slots__ = ("__weakref__", "_places", "ends", "numbers", "rows")

    def __init__(self, rows: _Array | None, numbers: _Array | None, ends: _Array | None) -> None:
        self.rows = rows
        self.numbers = numbers
        self.ends = ends
        self._places: _Array | None = None
        if rows is not None:
            self._places = np.empty_like(rows)
            self._places[rows] = np.arange(len(rows), dtype=rows.dtype)

    @classmethod
    def of(cls, listing: Listing) -> PageOrder:
        """The order of this listing: a second for a million names of which half are partitions."""
        bases, numbers = split_partitions(listing.names)
        if numbers is None:
            return cls(None, None, None)
        kind: Any = np.int32 if len(listing) < 2**31 else np.int64
        rows = sorted_rows(hash_order_key(bases)).astype(kind, copy=False)
        ordered = bases.take(pa.array(rows))
        numbers = numbers[rows]
        ends = np.append(_changes(ordered), len(rows)).astype(kind)
        sizes = np.diff(ends, prepend=0)
        if len(ends) < len(rows):
            # Equal ones came in any order.
            topic = np.repeat(np.arange(len(ends), dtype=kind), sizes)
            within = np.lexsort((numbers, topic))
            rows, numbers = rows[within], numbers[within]
        return cls(rows, numbers, ends)

    @staticmethod
    def build_bytes(listing: Listing) -> int:
        """About what :meth:`of` takes while it runs."""
        return BUILD_FACTOR * listing.all().fields_size + BUILD_EACH * len(listing)

    @property
    def nbytes(self) -> int:
        """Bytes that it holds."""
        return sum(
            int(each.nbytes)
            for each in (self.rows, self.numbers, self.ends, self._places)
            if each is not None
        )

    def find(self, listing: Listing, start: Position | None) -> int:
        """The first place at or behind a position; the number of names where there is none."""
        if start is None:
            return 0
        if self.rows is None:
            # Names are topics here, and a partition stands behind the plain name.
            at, is_there = listing.locate([start.base])
            return int(at[0]) + int(is_there[0] and start.partition >= 0)
        assert self.ends is not None
        assert self.numbers is not None
        topic = self._first_topic(listing, start.base)
        low = int(self.ends[topic - 1]) if topic else 0
        if topic == len(self.ends):
            return low
        high = int(self.ends[topic])
        if start.partition < 0 or self.base_at(listing, low) != start.base:
            return low
        return low + int(np.searchsorted(self.numbers[low:high], start.partition))

    def _first_topic(self, listing: Listing, base: str) -> int:
        """The number of the first topic that is not before ``base``: several are looked at together."""
        assert self.rows is not None
        assert self.ends is not None
        key = pa.scalar(hash_order_bytes(base.encode()), pa.large_binary())
        low, high = 0, len(self.ends)
        while low < high:
            probes = np.unique(np.linspace(low, high - 1, min(_PROBES, high - low)).astype(np.int64))
            probed = np.sort(self.rows[self.ends[probes] - 1])  # in any order: they are only counted
            bases, _ = split_partitions(listing.rows(probed).names)
            before = int(pc.sum(pc.less(hash_order_key(bases), key)).as_py())
            low, high = (
                int(probes[before - 1]) + 1 if before else low,
                int(probes[before]) if before < len(probes) else high,
            )
        return low

    def base_at(self, listing: Listing, place: int) -> str:
        """The topic of the name at a place: its full name without partition suffix."""
        row = place if self.rows is None else int(self.rows[place])
        return Position.of(listing.range(row, row + 1).names[0].as_py()).base

    def rows_at(self, places: _Array) -> _Array:
        """The rows at these places."""
        found: _Array = places if self.rows is None else self.rows[places]
        return found

    def names_at(self, listing: Listing, places: _Array) -> pa.LargeStringArray:
        """The full names at these places."""
        rows = self.rows_at(places)
        ascending = np.argsort(rows, kind="stable")
        names = listing.rows(rows[ascending]).names
        back = np.empty_like(ascending)
        back[ascending] = np.arange(len(rows))
        return names.take(pa.array(back))

    def partitions_at(self, places: _Array) -> _Array:
        """How many partitions the topics at these places have by their names: the highest number and one; int64."""
        if self.numbers is None or self.ends is None:
            return np.zeros(len(places), np.int64)
        topics = np.searchsorted(self.ends, places, side="right")
        last: _Array = self.numbers[self.ends[topics] - 1].astype(np.int64) + 1
        return last

    def walk(self, selection: Selection, start: int, first: int) -> Iterator[_Array]:
        """The places of a selection's rows from ``start`` on, ascending: about ``first`` of them, then twice as many.

        Places are computed one by one: a caller that stops early has paid for one page.
        """
        size = max(first, 64)
        if len(selection) <= _FEW and not selection.is_whole:
            rows = selection.row_array
            places = rows if self._places is None else np.sort(self._places[rows])
            at = int(np.searchsorted(places, start))
            while at < len(places):
                yield places[at : at + size]
                at += size
                size = min(2 * size, _FEW)
            return
        end = len(selection.listing)
        while start < end:
            places = np.arange(start, min(start + size, end))
            yield places if selection.is_whole else places[_are_in(selection, self.rows_at(places))]
            start += size
            size = min(2 * size, _FEW)


def _are_in(selection: Selection, rows: _Array) -> _Array:
    """Which of these rows a selection has."""
    if selection.is_slice:
        low, high = selection.bounds
        inside: _Array = (rows >= low) & (rows < high)
        return inside
    own = selection.row_array
    at = np.minimum(np.searchsorted(own, rows), len(own) - 1)
    found: _Array = own[at] == rows
    return found


def _changes(column: pa.LargeStringArray) -> _Array:
    """The places of values that differ from the one before, but for the first."""
    if len(column) < 2:
        return np.zeros(0, np.int64)
    differs = pc.not_equal(column[:-1], column[1:]).to_numpy(zero_copy_only=False)
    places: _Array = np.flatnonzero(differs) + 1
    return places
