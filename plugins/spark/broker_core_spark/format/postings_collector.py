"""Collecting the picks of selectors in neighbouring runs of names: columns over all entries, no object for each.

The names of many small segments are matched together, and most selectors pick a few names of many of them. So rows are
kept as selectors give them until there are enough; then they become entries and words of all runs at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from broker_core import EncodedNames
from broker_core_spark.arrow_columns import Array
from broker_core_spark.format.picked_words import Matches, check_matches, packed, word_counts
from broker_core_spark.format.postings_file import RunPostings, joined_entries
from broker_core_spark.format.segment_layout import ENTRY, KIND_RANGE

__all__ = ["PostingsCollector"]

#: Rows that wait to become words: a dense selector takes a bit a name then.
_WAITING: Final = 262_144
#: Words of an entry, on average, from which on they are written as they are: copying them would take memory.
_LONG: Final = 1024


class PostingsCollector:
    """Takes the picks of selectors among ``names``, in any order, and gives the postings of each run.

    The runs lie between neighbouring ``bounds`` (ascending, from 0 to the number of names); without bounds all names
    are one.
    """

    def __init__(self, names: EncodedNames, bounds: Sequence[int] | None = None) -> None:
        self._names = names
        self._bounds = np.array([0, len(names)] if bounds is None else bounds, np.int64)
        self._sizes = np.diff(self._bounds)
        self._run_of = np.repeat(np.arange(len(self._sizes), dtype=np.int32), self._sizes)
        self._keys: dict[bytes, int] = {}
        self._ranges: list[tuple[int, int, int]] = []
        self._rows: list[tuple[int, Array]] = []
        self._waiting = 0
        #: Entries with the number of their selector and run, selector by selector. ``first`` counts all words.
        self._blocks: list[tuple[Array, Array, Array]] = []
        self._words = np.empty(0, "<u4")

    def add(self, key: bytes, picked: Matches) -> None:
        """Add the picks of the selector of a key. A selector that picks nothing may be left out.

        Raises :exc:`ValueError` for a key that comes twice, and for numbers that are no rows.
        """
        number = len(self._keys)
        if self._keys.setdefault(key, number) != number:
            raise ValueError(f"the matches of the selector {key.hex()} come twice")
        count = check_matches(picked, len(self._names))
        if not count:
            return
        if isinstance(picked, tuple):
            self._ranges.append((number, *picked))
            return
        self._rows.append((number, picked))
        self._waiting += count
        if self._waiting >= _WAITING:
            self._pack_rows()

    def finish(self) -> tuple[Array, Iterator[RunPostings]]:
        """The entry of each selector over all names, unordered and without words, and the postings of each run.

        Nothing is added afterwards.
        """
        self._pack_rows()
        self._pack_ranges()
        nothing = np.empty(0, np.int32)
        numbers, runs, entries = (
            np.concatenate(column)
            for column in zip((nothing, nothing, np.empty(0, ENTRY)), *self._blocks, strict=True)
        )
        self._blocks.clear()
        totals = joined_entries(entries, np.flatnonzero(np.diff(numbers, prepend=-1)))
        return totals, self._each_run(numbers, runs, entries)

    def _each_run(self, numbers: Array, runs: Array, entries: Array) -> Iterator[RunPostings]:
        order = np.argsort(runs.astype(np.int64) * len(self._keys) + self._ranks()[numbers])
        bounds = np.searchsorted(runs[order], np.arange(len(self._sizes) + 1))
        entries = entries[order]
        del numbers, runs, order
        for size, first, last in zip(self._sizes.tolist(), bounds[:-1], bounds[1:], strict=True):
            yield _run(size, entries[first:last], self._words)

    def _ranks(self) -> Array:
        """The place of each selector in the order of keys."""
        ordered = sorted(self._keys)
        ranks = np.empty(len(ordered), np.int32)
        ranks[[self._keys[key] for key in ordered]] = np.arange(len(ordered), dtype=np.int32)
        return ranks

    def _pack_rows(self) -> None:
        if not self._rows:
            return
        selectors = np.array([number for number, _ in self._rows], np.int32)
        counts = np.array([len(rows) for _, rows in self._rows])
        every = np.concatenate([rows for _, rows in self._rows]).astype(np.int64, copy=False)
        self._rows.clear()
        self._waiting = 0
        runs = self._run_of[every]
        begins = np.ones(len(every), bool)
        begins[1:] = runs[1:] != runs[:-1]
        begins[np.cumsum(counts)[:-1]] = True
        starts = np.flatnonzero(begins)
        numbers = np.repeat(selectors, np.add.reduceat(begins, np.cumsum(counts) - counts, dtype=np.int64))
        runs = runs[starts]
        counts = np.diff(starts, append=len(every))
        crcs = self._names.crcs(every, starts)
        every -= np.repeat(self._bounds[runs], counts)
        kinds, firsts, words = packed(every, counts, self._sizes[runs])
        first = len(self._words)
        firsts[kinds != KIND_RANGE] += np.uint64(first)
        self._words.resize(first + len(words), refcheck=False)  # nobody has a view of it yet
        self._words[first:] = words
        self._blocks.append((numbers, runs, self._entries(numbers, counts, crcs, kinds, firsts)))

    def _pack_ranges(self) -> None:
        if not self._ranges:
            return
        selectors, lows, highs = np.array(self._ranges, np.int64).T
        self._ranges.clear()
        first = self._run_of[lows]
        count = self._run_of[highs - 1] - first + 1
        ends = np.cumsum(count)
        runs = np.arange(int(ends[-1])) - np.repeat(ends - count - first, count)
        lows = np.maximum(np.repeat(lows, count), self._bounds[runs])
        highs = np.minimum(np.repeat(highs, count), self._bounds[runs + 1])
        numbers = np.repeat(selectors.astype(np.int32), count)
        crcs = self._names.crcs_of_ranges(lows, highs)
        entries = self._entries(numbers, highs - lows, crcs, KIND_RANGE, lows - self._bounds[runs])
        self._blocks.append((numbers, runs.astype(np.int32), entries))

    def _entries(
        self, numbers: Array, counts: Array, crcs: tuple[Array, Array], kinds: Any, firsts: Array
    ) -> Array:
        entries = np.zeros(len(numbers), ENTRY)
        keys = np.frombuffer(b"".join(self._keys), np.uint8).reshape(-1, 16)
        entries["key"], entries["kind"] = keys[numbers], kinds
        entries["count"], entries["first"] = counts, firsts
        entries["crc"], entries["joined"] = crcs
        return entries


def _run(names: int, entries: Array, words: Array) -> RunPostings:
    """The postings of one run, of entries whose ``first`` counts the words of all runs."""
    counts = word_counts(entries, names)
    starts = entries["first"].astype(np.int64)
    places = np.cumsum(counts) - counts
    has_words = counts > 0
    entries["first"][has_words] = places[has_words]
    counts, starts, places = counts[has_words], starts[has_words], places[has_words]
    total = int(counts.sum())
    if total > _LONG * len(counts):
        return RunPostings(
            names,
            entries,
            [words[start:stop] for start, stop in zip(starts, starts + counts, strict=True)],
        )
    return RunPostings(names, entries, [words[np.arange(total) + np.repeat(starts - places, counts)]])
