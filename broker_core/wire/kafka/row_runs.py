"""Runs of consecutive rows of one layout, which differ in the length of the name alone; found by columns."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Final, TypeAlias

import numpy as np

__all__ = ["FEW_ROWS", "STEP", "Irregular", "RowRun"]

_Array: TypeAlias = np.ndarray[Any, Any]

#: So few rows are not worth columns.
FEW_ROWS: Final = 32
#: Rows that are read one after another before a run is looked for again; twice as many each time if it was short.
STEP: Final = 16
#: Rows after the first one that are looked at before columns are made of them.
_LOOKED_AT: Final = 2
#: Rows of a run that are looked at first, and at once after them: columns of more would take memory.
_FIRST: Final = 128
_MOST: Final = 8192
#: A length, with one byte for null and for an empty text, that takes one byte.
_SHORT: Final = 0x80


class Irregular(Exception):
    """The row has tagged fields, or a length of several bytes."""


class RowRun:
    """The rows from an offset on that have the layout of the first.

    ``scan`` reads one row, and gives its end, the offsets of the lengths of its texts and of its other lengths, and its
    places: lists of offsets, but for those at ``counts``.
    """

    def __init__(self, scan: Callable[[bytes, int], tuple[Any, ...]], counts: Sequence[bool]) -> None:
        self._scan = scan
        self._counts = counts

    def extend(self, lists: Sequence[array[int]], data: bytes, at: int, most: int) -> tuple[int, int]:
        """Put the places of up to ``most`` rows into the lists; returns the number of rows and their end."""
        try:
            end, texts, others, *places = self._scan(data, at)
        except (Irregular, IndexError):
            return 0, at
        if not self._goes_on(data, end, _layout(data, texts, others)):
            return 0, at
        bytes_of = np.frombuffer(data, np.uint8)
        name = next((each for each in texts if data[each] > 1), None)
        marks = [each for each in (*texts, *others) if each != name]
        kept = [place for place, is_count in zip(places, self._counts, strict=True) if not is_count]
        # All offsets of the first row: of lengths, then of places.
        offsets = np.array([*marks, *chain(*kept)], np.int64)
        wanted, after = bytes_of[offsets[: len(marks)]], None if name is None else offsets > name
        offsets -= at
        begin, done, size = at, 0, _FIRST
        while done < most and end <= len(data):
            count = min(size, most - done)
            longer: _Array | int = 0
            if name is None:
                starts = at + np.arange(count, dtype=np.int64) * (end - begin)
            else:
                starts = _starts(data, at, count, name - begin, end - begin - data[name])
                lengths = bytes_of[starts + (name - begin)].astype(np.int64)
                starts = starts[: _first_false((lengths > 0) & (lengths < _SHORT))]
                longer = lengths[: len(starts)] - data[name]
            ends = starts + (end - begin) + longer
            there = _first_false(ends <= len(data))
            found = starts[:there, None] + offsets
            if after is not None and not isinstance(longer, int):
                found += longer[:there, None] * after
            there = _first_false((bytes_of[found[:, : len(marks)]] == wanted).all(axis=1))
            found = found[:there].astype(np.int32)
            low = len(marks)
            for column, place, is_count in zip(lists, places, self._counts, strict=True):
                if is_count:
                    column.extend(place * there)
                else:
                    column.frombytes(found[:, low : low + len(place)].tobytes())
                    low += len(place)
            done += there
            if there:
                at = int(ends[there - 1])
            if there < size:
                break
            size = _MOST
        return done, at

    def _goes_on(self, data: bytes, at: int, layout: bytes) -> bool:
        """Whether the next rows have a layout: rows of two layouts by turns are not worth columns."""
        for _ in range(_LOOKED_AT):
            try:
                at, texts, others, *_ = self._scan(data, at)
            except (Irregular, IndexError):
                return False
            if _layout(data, texts, others) != layout:
                return False
        return True


def _layout(data: bytes, texts: Sequence[int], others: Sequence[int]) -> bytes:
    """The lengths of a row, but that of its name."""
    name = next((place for place in texts if data[place] > 1), None)
    return bytes(data[place] for place in (*texts, *others) if place != name)


def _starts(data: bytes, at: int, count: int, name: int, rest: int) -> _Array:
    """The offsets of so many rows, if each has so many bytes besides its name, whose length is at an offset in it."""
    places = array("q")
    add = places.append
    at += name
    try:
        for _ in range(count):
            length = data[at]
            add(at)
            at += length + rest
    except IndexError:  # the bytes end before
        pass
    return np.frombuffer(places, np.int64) - name


def _first_false(values: _Array) -> int:
    """The number of true values before the first other one."""
    return len(values) if values.all() else int(values.argmin())
