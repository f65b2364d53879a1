"""Runs of rows of one layout, found by columns: in a run all lengths but the name's are those of the row before."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

__all__ = ["FEW_ROWS", "STEP", "Irregular", "RowRun"]

_Array: TypeAlias = np.ndarray[Any, Any]

#: Rows that are not worth columns.
FEW_ROWS: Final = 32
#: Rows that are read one after another before a run is looked for again; twice as many each time if it was short.
STEP: Final = 16
#: Rows of a run that are looked at first.
_FIRST: Final = 128
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
        bytes_of = np.frombuffer(data, np.uint8)
        name = next((each for each in texts if data[each] > 1), None)
        marks = np.array([each for each in (*texts, *others) if each != name], np.int64)
        wanted = bytes_of[marks] if len(marks) else bytes_of[:0]
        begin, done, size = at, 0, _FIRST
        while done < most and end <= len(data):
            count = min(size, most - done)
            if name is None:
                starts = at + np.arange(count, dtype=np.int64) * (end - begin)
            else:
                starts = _starts(data, at, count, name - begin, end - begin - data[name])
            longer = np.zeros_like(starts)
            if name is not None:
                lengths = bytes_of[starts + (name - begin)].astype(np.int64)
                longer = lengths - data[name]
                starts = starts[: _first_false((lengths > 0) & (lengths < _SHORT))]
            ends = starts + (end - begin) + longer[: len(starts)]
            starts = starts[: _first_false(ends <= len(data))]
            if len(marks):
                behind = _moved(marks, begin, name, starts, longer)
                starts = starts[: _first_false((bytes_of[behind] == wanted).all(axis=1))]
            for found, place, is_count in zip(lists, places, self._counts, strict=True):
                if is_count:
                    found.extend(place * len(starts))
                else:
                    moved = _moved(np.array(place, np.int64), begin, name, starts, longer)
                    found.frombytes(moved.astype(np.int32).tobytes())
            done += len(starts)
            if not len(starts):
                break
            at = int(ends[len(starts) - 1])
            if len(starts) < size:
                break
            size *= 4
        return done, at


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


def _moved(offsets: _Array, begin: int, name: int | None, starts: _Array, longer: _Array) -> _Array:
    """By row the offsets that those of the first row are in it."""
    found: _Array = starts[:, None] + (offsets - begin)
    if name is not None:
        found += longer[: len(starts), None] * (offsets > name)
    return found


def _first_false(values: _Array) -> int:
    """The number of true values before the first other one."""
    return len(values) if values.all() else int(values.argmin())
