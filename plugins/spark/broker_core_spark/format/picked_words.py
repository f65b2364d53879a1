"""What a selector picks of a run, as its entry and words: a range, row numbers, or a bitmap where that is shorter."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from broker_core_spark.format.segment_layout import KIND_BITS, KIND_RANGE, KIND_ROWS, bit_words

__all__ = ["Matches", "divided", "joined_rows", "packed", "rows_of_bits", "unpacked", "word_counts"]

#: The names of a run that a selector picks: ``[low, high)``, or ascending row numbers.
Matches: TypeAlias = "tuple[int, int] | np.ndarray[Any, Any]"
_Array = np.ndarray[Any, Any]
_NONE: Final = np.empty(0, "<u4")


def divided(picked: Matches, bounds: Sequence[int]) -> Iterator[tuple[int, Matches]]:
    """(number, matches) of each stretch of rows between neighbouring ``bounds`` (ascending, from 0) that has any.

    The matches of a stretch are counted from its first row. Stretches without matches cost next to nothing.
    """
    if isinstance(picked, tuple):
        low, high = picked
        if low < high:
            for number in range(bisect_right(bounds, low) - 1, bisect_left(bounds, high)):
                first, last = bounds[number], bounds[number + 1]
                yield number, (max(low, first) - first, min(high, last) - first)
    elif len(picked):
        cuts = np.searchsorted(picked, np.array(bounds, picked.dtype))
        for number in np.flatnonzero(cuts[1:] > cuts[:-1]).tolist():
            part: _Array = picked[cuts[number] : cuts[number + 1]]
            yield number, part - np.asarray(bounds[number], picked.dtype)


def packed(picked: Matches, names: int) -> tuple[int, int, int, _Array]:
    """(kind, first row of a range, count, words) of matches in canonical form: neighbouring rows are a range.

    Raises :exc:`ValueError` for rows beyond the run's ``names``, and for rows that do not ascend.
    """
    if isinstance(picked, tuple):
        low, high = int(picked[0]), int(picked[1])
        if not 0 <= low <= high <= names:
            raise ValueError(f"a range from {low} to {high} of {names} names")
        return KIND_RANGE, low, high - low, _NONE
    if not len(picked):
        return KIND_RANGE, 0, 0, _NONE
    if picked.ndim != 1 or picked.dtype.kind not in "iu" or not (picked[1:] > picked[:-1]).all():
        raise ValueError("row numbers are one column of ascending integers, each once")
    low, high = int(picked[0]), int(picked[-1]) + 1
    if low < 0 or high > names:
        raise ValueError(f"row numbers from {low} to {high - 1} of {names} names")
    if high - low == len(picked):
        return KIND_RANGE, low, high - low, _NONE
    words = bit_words(names)
    if words >= len(picked):
        return KIND_ROWS, 0, len(picked), picked.astype("<u4", copy=False)
    bits = np.zeros(32 * words, bool)
    bits[picked] = True
    return KIND_BITS, 0, len(picked), np.packbits(bits, bitorder="little").view("<u4")


def word_counts(entries: _Array, names: int) -> _Array:
    """The number of words of each entry of a run (int64)."""
    kind = entries["kind"]
    counts: _Array = np.where(kind == KIND_ROWS, entries["count"], 0).astype(np.int64)
    counts[kind == KIND_BITS] = bit_words(names)
    return counts


def rows_of_bits(words: _Array) -> _Array:
    """The row numbers of a bitmap (int64)."""
    return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little"))


def unpacked(entry: Any, words: _Array, names: int) -> Matches:
    """What one entry of a run picks, from the words of the run."""
    kind, first, count = int(entry["kind"]), int(entry["first"]), int(entry["count"])
    if kind == KIND_RANGE:
        return first, first + count
    if kind == KIND_ROWS:
        return words[first : first + count]
    return rows_of_bits(words[first : first + bit_words(names)])


def joined_rows(entries: _Array, words: _Array, names: int) -> _Array:
    """The rows that many entries of a run pick, one entry after the other (int64)."""
    count = entries["count"].astype(np.int64)
    begins = np.cumsum(count) - count
    rows: _Array = np.arange(int(count.sum())) + np.repeat(entries["first"].astype(np.int64) - begins, count)
    is_listed = np.repeat(entries["kind"] == KIND_ROWS, count)
    rows[is_listed] = words[rows[is_listed]]
    for number in np.flatnonzero(entries["kind"] == KIND_BITS).tolist():
        begin = int(begins[number])
        rows[begin : begin + int(count[number])] = unpacked(entries[number], words, names)
    return rows
