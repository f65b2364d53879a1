"""The picks of a selector in a run, as its entry and words: a range, row numbers, or a bitmap if that is shorter."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from broker_core.quantities import counted
from broker_core_spark.arrow_columns import Array
from broker_core_spark.format.segment_layout import KIND_BITS, KIND_RANGE, KIND_ROWS, bit_words

__all__ = [
    "Matches",
    "check_matches",
    "joined_rows",
    "packed",
    "rows_of_bits",
    "stretches",
    "unpacked",
    "word_counts",
]

#: The names of a run that a selector picks: ``[low, high)``, or ascending row numbers.
Matches: TypeAlias = "tuple[int, int] | np.ndarray[Any, Any]"


def check_matches(picked: Matches, names: int) -> int:
    """The number of rows. Raises :exc:`ValueError` for rows beyond ``names``, and for rows that do not ascend."""
    if isinstance(picked, tuple):
        low, high = int(picked[0]), int(picked[1])
        if not 0 <= low <= high <= names:
            raise ValueError(f"a range from {low} to {high} of {counted(names, 'name')}")
        return high - low
    if not len(picked):
        return 0
    if picked.ndim != 1 or picked.dtype.kind not in "iu" or not (picked[1:] > picked[:-1]).all():
        raise ValueError("row numbers are one column of ascending integers, each once")
    low, high = int(picked[0]), int(picked[-1]) + 1
    if low < 0 or high > names:
        raise ValueError(f"row numbers from {low} to {high - 1} of {counted(names, 'name')}")
    return len(picked)


def packed(rows: Array, counts: Array, names: Array) -> tuple[Array, Array, Array]:
    """The canonical form of many groups of ascending ``rows`` at once: neighbouring rows are a range.

    ``counts`` are the rows of each group, at least one, and ``names`` the number of names that it picks from. Gives a
    kind a group (uint32), the first row of a range or the position of the group's first word (uint64), and the words of
    all groups.
    """
    stops = np.cumsum(counts)
    firsts = rows[stops - counts].astype(np.int64)
    bitmap_words = bit_words(names)
    is_range = rows[stops - 1] - firsts + 1 == counts
    is_bits = ~is_range & (bitmap_words < counts)
    is_rows = ~(is_range | is_bits)
    sizes = np.where(is_bits, bitmap_words, np.where(is_rows, counts, 0))
    kinds = np.where(is_range, KIND_RANGE, np.where(is_bits, KIND_BITS, KIND_ROWS)).astype(np.uint32)
    words = np.empty(int(sizes.sum()), "<u4")
    words[np.repeat(is_rows, sizes)] = rows[np.repeat(is_rows, counts)]
    if is_bits.any():
        starts = 32 * (np.cumsum(sizes[is_bits]) - sizes[is_bits])
        bits = np.zeros(32 * int(sizes[is_bits].sum()), bool)
        bits[rows[np.repeat(is_bits, counts)] + np.repeat(starts, counts[is_bits])] = True
        words[np.repeat(is_bits, sizes)] = np.packbits(bits, bitorder="little").view("<u4")
    return kinds, np.where(is_range, firsts, np.cumsum(sizes) - sizes).astype(np.uint64), words


def word_counts(entries: Array, names: int) -> Array:
    """The number of words of each entry of a run (int64)."""
    kind = entries["kind"]
    counts: Array = np.where(kind == KIND_ROWS, entries["count"], 0).astype(np.int64)
    counts[kind == KIND_BITS] = bit_words(names)
    return counts


def rows_of_bits(words: Array) -> Array:
    """The row numbers of a bitmap (int64)."""
    return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little").view(bool))


def unpacked(entry: Any, words: Array, names: int) -> Matches:
    """The picks of one entry of a run, from the words of the run."""
    kind, first, count = int(entry["kind"]), int(entry["first"]), int(entry["count"])
    if kind == KIND_RANGE:
        return first, first + count
    if kind == KIND_ROWS:
        return words[first : first + count]
    return rows_of_bits(words[first : first + bit_words(names)])


def stretches(counts: Array, most: int) -> Iterator[tuple[int, int]]:
    """Stretches of entries with these numbers of rows, about ``most`` in each, to be unpacked one after the other."""
    ends = np.flatnonzero(np.diff(np.cumsum(counts) // most)) + 1
    return pairwise([0, *ends.tolist(), len(counts)])


def joined_rows(entries: Array, words: Array, names: int) -> Array:
    """The rows that many entries of a run of ``names`` names pick, one after the other (int64)."""
    count = entries["count"].astype(np.int64)
    begins = np.cumsum(count) - count
    rows: Array = np.arange(int(count.sum())) + np.repeat(entries["first"].astype(np.int64) - begins, count)
    is_listed = np.repeat(entries["kind"] == KIND_ROWS, count)
    rows[is_listed] = words[rows[is_listed]]
    for number in np.flatnonzero(entries["kind"] == KIND_BITS).tolist():
        begin = int(begins[number])
        rows[begin : begin + int(count[number])] = unpacked(entries[number], words, names)
    return rows
