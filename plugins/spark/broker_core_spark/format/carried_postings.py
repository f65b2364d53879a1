"""Carrying the postings of a run over to its names after some went and others came: arithmetic on positions.

Only names that came are matched. A selector that loses and gains none keeps its count and hash, and its rows move.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from broker_core_spark.arrow_columns import Array
from broker_core_spark.format.picked_words import joined_rows, packed, word_counts
from broker_core_spark.format.postings_file import StoredPostings, entry_index
from broker_core_spark.format.segment_layout import ENTRY, KIND_BITS, KIND_RANGE, KIND_ROWS, bit_words

__all__ = ["GivenHashes", "HashedNames", "MovedRows", "RecordedHashes", "carried_postings"]


class HashedNames(Protocol):
    """Names, of which groups of rows have a CRC and a length, as :class:`~broker_core.EncodedNames` gives them."""

    def __len__(self) -> int: ...
    def crcs(self, rows: Array, starts: Array) -> tuple[Array, Array]: ...
    def crcs_of_ranges(self, lows: Array, highs: Array) -> tuple[Array, Array]: ...


class RecordedHashes:
    """Names whose CRCs and lengths are kept, in the order in which :func:`carried_postings` uses them."""

    def __init__(self, names: HashedNames) -> None:
        self._names = names
        self._found = [(np.empty(0, np.uint32), np.empty(0, np.uint64))]

    def __len__(self) -> int:
        return len(self._names)

    def crcs(self, rows: Array, starts: Array) -> tuple[Array, Array]:
        self._found.append(self._names.crcs(rows, starts))
        return self._found[-1]

    def crcs_of_ranges(self, lows: Array, highs: Array) -> tuple[Array, Array]:
        self._found.append(self._names.crcs_of_ranges(lows, highs))
        return self._found[-1]

    @property
    def found(self) -> tuple[Array, Array]:
        """All CRCs and lengths so far."""
        crcs, sizes = zip(*self._found, strict=True)
        return np.concatenate(crcs), np.concatenate(sizes)


@dataclass(slots=True)
class GivenHashes:
    """``names`` names whose CRCs and lengths were recorded. Raises :exc:`ValueError` if too few were."""

    names: int
    recorded: tuple[Array, Array]

    def __len__(self) -> int:
        return self.names

    def crcs(self, _rows: Array, starts: Array) -> tuple[Array, Array]:
        crcs, sizes = self.recorded
        count = len(starts)
        if len(crcs) < count or len(sizes) < count:
            raise ValueError("hashes are missing")
        self.recorded = crcs[count:], sizes[count:]
        return crcs[:count], sizes[:count]

    def crcs_of_ranges(self, lows: Array, _highs: Array) -> tuple[Array, Array]:
        return self.crcs(lows, lows)


@dataclass(frozen=True, slots=True)
class MovedRows:
    """Rows of a run, after some were deleted and others were added (int64).

    ``to`` has the new row of each former one, -1 if it was deleted. ``came`` are the rows of the new ones.
    """

    to: Array
    came: Array

    @classmethod
    def of(cls, names: int, gone: Array, before: Array) -> MovedRows:
        """The moves of ``names`` rows, by the deleted rows, and the former row before which each new one comes (both
        ascend).
        """
        stays = np.ones(names, bool)
        stays[gone] = False
        to = np.cumsum(stays) - 1 + np.cumsum(np.bincount(before, minlength=names + 1)[:names])
        to[~stays] = -1
        went = np.concatenate((np.zeros(1, np.int64), np.cumsum(~stays)))
        return cls(to, before - went[before] + np.arange(len(before)))


def carried_postings(
    former: StoredPostings, moved: MovedRows, names: HashedNames, picked: Iterable[tuple[bytes, Array]]
) -> list[StoredPostings]:
    """The postings of ``names`` in two parts, for :func:`~.postings_merge.merge_postings`.

    ``former`` are verified postings of the names before, ``picked`` the new rows that selectors pick, by the selectors'
    keys.
    """
    entries, to = former.entries, moved.to
    lost, again, listed = _changed(former, to, len(names))
    numbers, rows, came = _numbered(entries, picked)
    again[came[came < len(entries)]] = True
    stays = ~again
    kept = entries[stays]
    is_rows = kept["kind"] == KIND_ROWS
    counts = kept["count"].astype(np.int64)
    kept["first"][kept["kind"] == KIND_RANGE] = to[kept["first"][kept["kind"] == KIND_RANGE].astype(np.int64)]
    kept["first"][is_rows] = (np.cumsum(counts * is_rows) - counts * is_rows)[is_rows]
    all_rows = entries["kind"] == KIND_ROWS
    own = listed[np.repeat(stays[all_rows], entries["count"][all_rows])]

    def part(found: Array, words: Array) -> StoredPostings:
        return StoredPostings(
            former.namespace, former.domain, former.asked_digest, len(names), found, words.astype("<u4")
        )

    return [part(kept, own), part(*_packed(former, moved, names, lost, again, (numbers, rows, came)))]


def _changed(former: StoredPostings, to: Array, names: int) -> tuple[Array, Array, Array]:
    """The entries that lose a row, the ones to pack again, and the new rows of all that are listed as numbers.

    A bitmap is always packed again, and its lost rows are not known yet.
    """
    entries = former.entries
    first, count = entries["first"].astype(np.int64), entries["count"].astype(np.int64)
    is_range, is_rows = entries["kind"] == KIND_RANGE, entries["kind"] == KIND_ROWS
    has_words = ~is_range
    listed = to[former.words[np.repeat(is_rows[has_words], word_counts(entries, former.names)[has_words])]]
    lost = np.zeros(len(entries), bool)
    lows, highs = np.zeros(len(entries), np.int64), np.zeros(len(entries), np.int64)
    if is_range.any():
        went = np.concatenate((np.zeros(1, np.int64), np.cumsum(to < 0)))
        begin, end = first[is_range], first[is_range] + count[is_range]
        lost[is_range] = went[end] > went[begin]
        lows[is_range], highs[is_range] = to[begin], to[end - 1]
    if is_rows.any():
        ends = np.cumsum(count[is_rows])
        begins = ends - count[is_rows]
        lost[is_rows] = np.logical_or.reduceat(listed < 0, begins)
        lows[is_rows], highs[is_rows] = listed[begins], listed[ends - 1]
    # An entry that is neither shorter as bits nor, now or before, a range: its rows move as they are.
    again = lost | (entries["kind"] == KIND_BITS) | ((highs - lows + 1 == count) != is_range)
    again |= is_rows & (bit_words(names) < count)
    return lost, again, listed


def _numbered(
    entries: Array, picked: Iterable[tuple[bytes, Array]]
) -> tuple[list[bytes], list[Array], Array]:
    """The keys, the rows and the number of the entry of each selector: without an entry, a number after them."""
    keys: list[bytes] = []
    rows: list[Array] = []
    numbers: list[int] = []
    for key, found in picked:
        if not len(found):
            continue
        at = entry_index(entries["key"], key)
        numbers.append(len(entries) + len(keys) if at is None else at)
        keys.append(key)
        rows.append(found)
    return keys, rows, np.array(numbers, np.int64)


def _packed(
    former: StoredPostings,
    moved: MovedRows,
    names: HashedNames,
    lost: Array,
    again: Array,
    picked: tuple[list[bytes], list[Array], Array],
) -> tuple[Array, Array]:
    """The entries that are packed again, and the new entries of selectors that had none, with their words."""
    keys, found, numbers = picked
    ranges, again = _ranges(former.entries, moved, names, again, picked)
    wanted = np.append(again, np.ones(len(keys), bool))[numbers]
    keys, found, numbers = (
        [key for key, own in zip(keys, wanted, strict=True) if own],
        [rows for rows, own in zip(found, wanted, strict=True) if own],
        numbers[wanted],
    )
    entries = former.entries[again]
    every = np.zeros(len(former.entries) + len(picked[0]), ENTRY)  # by number
    if keys:
        every["key"][numbers] = np.frombuffer(b"".join(keys), np.uint8).reshape(-1, 16)
    every[: len(former.entries)] = former.entries
    hashed = np.zeros(len(every), bool)
    hashed[: len(lost)] = lost
    hashed[numbers] = True
    rows = moved.to[joined_rows(entries, former.words, former.names)]
    number = np.repeat(np.flatnonzero(again), entries["count"])
    gone = rows < 0
    hashed[number[gone]] = True
    if gone.any():
        number, rows = number[~gone], rows[~gone]
    if keys:
        came = np.repeat(numbers, [len(one) for one in found]) * len(names) + np.concatenate(found)
        came.sort()
        places = np.searchsorted(number * len(names) + rows, came)
        number = np.insert(number, places, came // len(names))
        rows = np.insert(rows, places, came % len(names))
    counts = np.bincount(number, minlength=len(every))
    left = np.flatnonzero(counts)
    result, counts = every[left], counts[left]
    result["count"] = counts
    result["kind"], result["first"], words = packed(rows, counts, np.full(len(left), len(names)))
    is_range = result["kind"] == KIND_RANGE
    chosen = hashed[left] & is_range
    low = result["first"][chosen].astype(np.int64)
    result["crc"][chosen], result["joined"][chosen] = names.crcs_of_ranges(low, low + counts[chosen])
    chosen = hashed[left] & ~is_range
    own = counts[chosen]
    crcs = names.crcs(rows[np.repeat(chosen, counts)], np.cumsum(own) - own)
    result["crc"][chosen], result["joined"][chosen] = crcs
    return np.concatenate((ranges, result)), words


def _ranges(
    entries: Array,
    moved: MovedRows,
    names: HashedNames,
    again: Array,
    picked: tuple[list[bytes], list[Array], Array],
) -> tuple[Array, Array]:
    """The entries that were a range and are one again, and the entries left to pack, row by row.

    Entries of the whole run and other wide ones are mostly ranges.
    """
    at = np.flatnonzero(again & (entries["kind"] == KIND_RANGE))
    begin = entries["first"][at].astype(np.int64)
    stay = np.flatnonzero(moved.to >= 0)
    first, last = np.searchsorted(stay, begin), np.searchsorted(stay, begin + entries["count"][at])
    counts = last - first
    lows, highs = np.full(len(at), len(names)), np.full(len(at), -1)
    left = counts > 0
    lows[left], highs[left] = moved.to[stay[first[left]]], moved.to[stay[last[left] - 1]]
    place = {number: row for row, number in enumerate(at.tolist())}
    for number, rows in zip(picked[2].tolist(), picked[1], strict=True):
        row = place.get(number)
        if row is not None:
            counts[row] += len(rows)
            lows[row], highs[row] = min(lows[row], rows[0]), max(highs[row], rows[-1])
    same = (counts > 0) & (highs - lows + 1 == counts)
    found = entries[at[same]]
    found["first"], found["count"] = lows[same], counts[same]
    found["crc"], found["joined"] = names.crcs_of_ranges(lows[same], highs[same] + 1)
    others = again.copy()
    others[at[same | (counts == 0)]] = False
    return found, others
