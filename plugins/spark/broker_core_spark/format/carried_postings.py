"""Carrying the postings of a run over to its names after some went and others came: arithmetic on positions.

Only names that came are matched. A selector that loses and gains none keeps its count and hash, and its rows move.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from broker_core import EncodedNames
from broker_core_spark.arrow_columns import Array
from broker_core_spark.format.canonical_question import KEY_BYTES
from broker_core_spark.format.picked_words import joined_rows, packed, stretches, word_counts
from broker_core_spark.format.postings_file import StoredPostings, entry_index
from broker_core_spark.format.segment_layout import ENTRY, KIND_BITS, KIND_RANGE, KIND_ROWS, bit_words

__all__ = ["Hashes", "MovedRows", "carried_postings", "rows_that_came"]

#: CRCs (uint32) and lengths (uint64) of picks.
Hashes: TypeAlias = tuple[Array, Array]
#: Rows of entries that are unpacked at once.
_UNPACKED: Final = 1024 * 1024


def rows_that_came(gone: Array, before: Array) -> Array:
    """The rows of new names, by the deleted rows, and the former row before which each one comes (both ascend)."""
    rows: Array = before - np.searchsorted(gone, before) + np.arange(len(before))
    return rows


@dataclass(frozen=True, slots=True)
class MovedRows:
    """Rows of a run, after some were deleted and others were added.

    ``to`` has the new row of each former one (int32), -1 if it was deleted. ``came`` are the rows of the new ones
    (int64). ``names`` is the number of rows now.
    """

    to: Array
    came: Array
    names: int

    @classmethod
    def of(cls, names: int, gone: Array, before: Array) -> MovedRows:
        """The moves of ``names`` rows. The columns are as for :func:`rows_that_came`."""
        to = np.ones(names + 1, np.int32)
        to[:1] = 0
        to[gone + 1] -= 1
        np.add.at(to, before, 1)
        to = np.cumsum(to[:names], dtype=np.int32)
        to[gone] = -1
        return cls(to, rows_that_came(gone, before), names - len(gone) + len(before))


def carried_postings(
    former: StoredPostings,
    moved: MovedRows,
    picked: Sequence[tuple[bytes, Array]],
    names: EncodedNames | Hashes,
) -> tuple[list[StoredPostings], Hashes]:
    """The postings of the names now in two parts, for :func:`~.postings_merge.merge_postings`, and changed hashes.

    ``former`` are verified postings of the names before, ``picked`` the new rows that selectors pick, by the selectors'
    keys. ``names`` are the names now, or the hashes that were made of them. Raises :exc:`ValueError` for too few.
    """
    size = len(former.entries)
    every, owner, came = _with_new(former.entries, picked)
    own = every["count"].astype(np.int64)
    is_range, is_rows = every["kind"] == KIND_RANGE, every["kind"] == KIND_ROWS
    listed = moved.to[former.words[np.repeat(is_rows[:size], word_counts(former.entries, former.names))]]
    # The number of rows of each selector now, the first and the last one: of what came, then of what stays. What stays
    # of a bitmap is not known yet.
    gained = np.bincount(owner, minlength=len(every))
    counts = gained.copy()
    lows, highs = np.full(len(every), moved.names), np.full(len(every), -1)
    starts, stops = np.flatnonzero(np.diff(owner, prepend=-1)), np.flatnonzero(np.diff(owner, append=-1))
    lows[owner[starts]], highs[owner[stops]] = came[starts], came[stops]
    first, last = every["first"][is_range].astype(np.int64), np.cumsum(own[is_rows])
    for chosen, to, begins, ends in (
        (is_range, moved.to, first, first + own[is_range]),
        (is_rows, listed, last - own[is_rows], last),
    ):
        left, low, high = _left(to, begins, ends, moved.names)
        counts[chosen] += left
        lows[chosen], highs[chosen] = np.minimum(lows[chosen], low), np.maximum(highs[chosen], high)
    stays = (counts == own) & (gained == 0)
    is_one = highs - lows + 1 == counts
    # Rows that are neither shorter as bits nor, now or before, a range: they move as they are.
    keeps = stays & np.where(is_range, is_one, is_rows & ~is_one & (bit_words(moved.names) >= own))
    # Wide entries are mostly ranges, so those that are one again are not packed row by row.
    ranges = is_range & ~stays & is_one & (counts > 0)
    kept, made = every[keeps], every[ranges]
    sizes = word_counts(kept, moved.names)
    kept["first"] = np.where(kept["kind"] == KIND_RANGE, lows[keeps], np.cumsum(sizes) - sizes)
    made["first"], made["count"], made["joined"] = lows[ranges], counts[ranges], 0
    again = ~(keeps | ranges)
    gains = again[owner]
    packing, words = _packed(former, moved, every, again[:size], owner[gains] * moved.names + came[gains])
    made = np.concatenate((made, packing))
    hashes = _hash(made, words, names)
    moves = listed[np.repeat(keeps[is_rows], own[is_rows])].astype("<u4")
    parts = [
        replace(former, names=moved.names, entries=entries, words=column)
        for entries, column in ((kept, moves), (made, words))
    ]
    return parts, hashes


def _with_new(entries: Array, picked: Sequence[tuple[bytes, Array]]) -> tuple[Array, Array, Array]:
    """The entries, and after them one for each selector that gains rows and had none; the number of the entry and the
    row of each gain, in order.

    The new ones are bitmaps, which are packed in any case, of no rows yet.
    """
    found = [entry_index(entries["key"], key) for key, _ in picked]
    own = [len(entries) + at if number is None else number for at, number in enumerate(found)]
    every = np.zeros(len(entries) + len(picked), ENTRY)
    every[: len(entries)] = entries
    every["kind"][len(entries) :] = KIND_BITS
    every["key"][own] = np.frombuffer(b"".join([key for key, _ in picked]), np.uint8).reshape(-1, KEY_BYTES)
    owner = np.repeat(np.array(own, np.int64), [len(rows) for _, rows in picked])
    rows = np.concatenate([np.empty(0, np.int64), *(rows for _, rows in picked)])
    order = np.argsort(owner, kind="stable")
    every["joined"][owner] = 0
    return every, owner[order], rows[order]


def _left(to: Array, begins: Array, ends: Array, names: int) -> tuple[Array, Array, Array]:
    """Of groups of moved rows: the number that stays, the first and the last one. Of none they are ``names`` and -1."""
    stays = to >= 0
    before = np.concatenate((np.zeros(1, np.int32), np.cumsum(stays, dtype=np.int32)))
    now = np.append(to[stays], -1)
    low, high = before[begins], before[ends]
    some = high > low
    return high - low, np.where(some, now[low], names), np.where(some, now[high - 1], -1)


def _packed(
    former: StoredPostings, moved: MovedRows, every: Array, again: Array, came: Array
) -> tuple[Array, Array]:
    """The entries to pack row by row, and their words. ``came`` has, in order, entry times names plus row.

    An entry without the length of its names has not its hash either. Some entries are unpacked at once: a row of a
    bitmap takes 40 bytes meanwhile.
    """
    rows = np.zeros(len(every), np.int64)
    rows[: len(again)] = np.where(again, former.entries["count"], 0)
    result, words, size = [np.empty(0, ENTRY)], [np.empty(0, "<u4")], 0
    for low, high in stretches(rows, _UNPACKED):
        own = again.copy()
        own[:low] = own[high:] = False
        first, last = np.searchsorted(came, (low * moved.names, high * moved.names))
        entries, column = _packed_at_once(former, moved, every, own, came[first:last])
        entries["first"][entries["kind"] != KIND_RANGE] += np.uint64(size)
        size += len(column)
        result.append(entries)
        words.append(column)
    return np.concatenate(result), np.concatenate(words)


def _packed_at_once(
    former: StoredPostings, moved: MovedRows, every: Array, again: Array, came: Array
) -> tuple[Array, Array]:
    packing = former.entries[again]
    rows = moved.to[joined_rows(packing, former.words, former.names)]
    number = np.repeat(np.flatnonzero(again), packing["count"])
    every["joined"][number[rows < 0]] = 0
    places = np.concatenate(((number * moved.names + rows)[rows >= 0], came))
    places.sort(kind="stable")  # merges two parts that are in order
    number, rows = np.divmod(places, moved.names)
    counts = np.bincount(number, minlength=len(every))
    left = np.flatnonzero(counts)
    result, counts = every[left], counts[left]
    result["count"] = counts
    result["kind"], result["first"], words = packed(rows, counts, np.full(len(left), moved.names))
    return result, words


def _hash(entries: Array, words: Array, names: EncodedNames | Hashes) -> Hashes:
    """Give entries that have none their hashes, first of ranges, then of others. Returns these hashes."""
    is_fresh, is_range = entries["joined"] == 0, entries["kind"] == KIND_RANGE
    ranges, others = np.flatnonzero(is_fresh & is_range), np.flatnonzero(is_fresh & ~is_range)
    if isinstance(names, EncodedNames):
        lows, sizes = (entries[column][ranges].astype(np.int64) for column in ("first", "count"))
        counts = entries["count"][others].astype(np.int64)
        parts = [names.crcs_of_ranges(lows, lows + sizes)]
        for low, high in stretches(counts, _UNPACKED):
            rows, own = joined_rows(entries[others[low:high]], words, len(names)), counts[low:high]
            parts.append(names.crcs(rows, np.cumsum(own) - own))
        crcs, joined = (np.concatenate(column) for column in zip(*parts, strict=True))
    else:
        crcs, joined = names
    order = np.concatenate((ranges, others))
    if min(len(crcs), len(joined)) < len(order):
        raise ValueError("hashes are missing")
    entries["crc"][order], entries["joined"][order] = crcs[: len(order)], joined[: len(order)]
    return crcs, joined
