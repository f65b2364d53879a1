"""The index of answers: for each question, the rows of the namespace's listing, their hash and their count.

A segment counts rows from its own first name and has only its part of a hash. The parts are joined once, when a
generation is opened, so that a question is one look-up later. All steps work on columns over all questions of a
namespace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from broker_core import EncodedNames
from broker_core.names import NON_PERSISTENT, PERSISTENT
from broker_core_spark.arrow_columns import Array
from broker_core_spark.format import (
    DOMAIN_ORDER,
    ENTRY,
    KIND_BITS,
    KIND_RANGE,
    KIND_ROWS,
    CanonicalQuestion,
    StoredPostings,
    bit_words,
    rows_of_bits,
)
from broker_core_spark.store import PrivateFile

__all__ = ["IS_RANGE", "RECORD", "NamespacePostings"]

#: The answer to a question. ``first`` is the first row of a range, or the position of its rows in the file of rows.
RECORD: Final = np.dtype(
    [
        ("low", "<u8"),  # second half of the question's key
        ("line", "<u8"),  # position of the question in the questions file
        ("line_size", "<u4"),
        ("crc", "<u4"),
        ("count", "<u8"),
        ("first", "<u8"),
        ("kind", "<u8"),
    ]
)
IS_RANGE: Final = KIND_RANGE
_ROWS_AT_ONCE: Final = 4_000_000
#: Some 20 MB with the columns made of them.
_ENTRIES_AT_ONCE: Final = 65_536


@dataclass(frozen=True, slots=True)
class _Run:
    """Entries ``start`` to ``stop`` of the file of entries: the entries of a run, its first row, and its names."""

    start: int
    stop: int
    base: int
    names: int


@dataclass(slots=True)
class _Domain:
    """The names of one domain, and its runs."""

    names: int = 0
    runs: list[_Run] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Entries:
    """Entries of one domain, run by run, and for each the first row and the names of its run."""

    entries: Array
    bases: Array
    sizes: Array


class NamespacePostings:
    """Collects the postings of one namespace run by run, and makes the answers to its questions.

    Entries wait in a file. Answers are made for a range of the selectors' keys at a time, so that the memory does not
    grow with questions times runs.
    """

    def __init__(self, scratch: PrivateFile, entries: PrivateFile) -> None:
        """``scratch`` holds the row numbers and bitmaps, ``entries`` the entries until the answers are made."""
        self._domains = {domain: _Domain() for domain in DOMAIN_ORDER}
        self._scratch = scratch
        self._entries = entries

    @property
    def names(self) -> int:
        return sum(domain.names for domain in self._domains.values())

    @property
    def others(self) -> int:
        """The number of non-persistent names, which come first."""
        return self._domains[NON_PERSISTENT].names

    def add(self, run: StoredPostings) -> None:
        """Add the next run of its domain."""
        domain = self._domains[run.domain]
        entries = run.entries.copy()
        has_words = entries["kind"] != KIND_RANGE
        entries["first"][has_words] += self._scratch.size // 4
        self._scratch.write(run.words)
        start = self._entries.size // ENTRY.itemsize
        self._entries.write(entries)
        domain.runs.append(_Run(start, start + len(entries), domain.names, run.names))
        domain.names += run.names

    def answers(self, questions: Sequence[CanonicalQuestion], rows_file: PrivateFile) -> Array:
        """A :data:`RECORD` for each question, without its key and its line.

        Row numbers are appended to ``rows_file`` as int32, counted from the first name of the question's mode.
        """
        records = np.zeros(len(questions), RECORD)
        runs = [run for domain in self._domains.values() for run in domain.runs]
        ranges = -(-sum(run.stop - run.start for run in runs) // _ENTRIES_AT_ONCE)
        if not ranges:
            return records
        stored = self._entries.array(ENTRY)
        # Keys are hashes, so that ranges of equal width have about as many entries.
        bounds = np.array([number * 2**64 // ranges for number in range(1, ranges)], np.uint64)
        cuts = {
            run: [
                run.start,
                *(run.start + np.searchsorted(_high(stored["key"][run.start : run.stop]), bounds)).tolist(),
                run.stop,
            ]
            for run in runs
        }
        keys = [question.selector.key for question in questions]
        places = np.searchsorted(
            bounds, _high(np.frombuffer(b"".join(keys), np.uint8).reshape(-1, 16)), side="right"
        )
        for number in np.unique(places).tolist():
            asked = np.flatnonzero(places == number)
            parts = _Parts.of(
                {
                    name: _between(stored, {run: cuts[run][number : number + 2] for run in domain.runs})
                    for name, domain in self._domains.items()
                }
            )
            own = [(questions[index], keys[index]) for index in asked.tolist()]
            records[asked] = self._answers(parts, own, rows_file)
        return records

    def _answers(
        self, parts: _Parts, questions: Sequence[tuple[CanonicalQuestion, bytes]], rows_file: PrivateFile
    ) -> Array:
        records = np.zeros(len(questions), RECORD)
        starts, picked, shifts = parts.of_questions(questions, self.others)
        if not len(starts):
            return records
        answered = np.unique(picked.question)
        crcs, _ = EncodedNames.joined_crcs(
            parts.entries["crc"][picked.entry], parts.entries["joined"][picked.entry], starts
        )
        counts = np.add.reduceat(parts.count[picked.entry], starts)
        records["crc"][answered], records["count"][answered] = crcs, counts
        # `shifts` moves the rows of a domain after the rows of the domain before it.
        first = parts.first[picked.entry] + np.where(
            parts.has_words[picked.entry], 0, parts.base[picked.entry] + shifts
        )
        follows = np.ones(len(first), bool)
        follows[1:] = first[1:] == first[:-1] + parts.count[picked.entry][:-1]
        follows[starts] = True
        follows &= ~parts.has_words[picked.entry]
        is_range = np.logical_and.reduceat(follows, starts)
        ranges = answered[is_range]
        records["first"][ranges] = first[starts[is_range]]
        scattered = np.flatnonzero(~is_range)
        records["kind"][answered[scattered]] = KIND_ROWS
        ends = np.append(starts[1:], len(first))
        scratch = self._scratch.array("<u4") if len(scattered) else np.empty(0, np.uint32)
        for group in _blocks(scattered, counts):
            members = np.concatenate([np.arange(starts[one], ends[one]) for one in group])
            entry = picked.entry[members]
            rows = _expanded(parts, entry, parts.base[entry] + shifts[members], scratch)
            sizes = counts[group]
            begins = np.cumsum(sizes) - sizes
            records["first"][answered[group]] = rows_file.size // 4 + begins
            rows_file.write(rows.astype("<i4"))
        return records


@dataclass(frozen=True, slots=True)
class _Picked:
    """The parts of answers, question by question: the question and the entry of each."""

    question: Array
    entry: Array


class _Parts:
    """All entries of a namespace, sorted by domain, key and run."""

    def __init__(
        self,
        entries: Array,
        base: Array,
        names: Array,
        places: dict[str, dict[bytes, tuple[int, int]]],
    ) -> None:
        self.entries = entries
        self.base = base
        self.names = names
        self.count = entries["count"].astype(np.int64)
        self.first = entries["first"].astype(np.int64)
        self.has_words: Array = entries["kind"] != KIND_RANGE
        self.is_bits: Array = entries["kind"] == KIND_BITS
        self._places = places

    @classmethod
    def of(cls, domains: Mapping[str, _Entries]) -> _Parts:
        places: dict[str, dict[bytes, tuple[int, int]]] = {}
        nothing = np.empty(0, np.int64)
        all_entries, all_bases, all_sizes = [np.empty(0, ENTRY)], [nothing], [nothing]
        at = 0
        for name, domain in domains.items():
            entries = domain.entries
            halves = np.ascontiguousarray(entries["key"]).view(">u8").reshape(-1, 2)
            order = np.lexsort((halves[:, 1], halves[:, 0]))  # stable: runs stay in order
            entries, halves = entries[order], halves[order]
            differs = np.ones(len(entries), bool)
            differs[1:] = (halves[1:] != halves[:-1]).any(axis=1)
            starts = np.flatnonzero(differs)
            counts = np.diff(np.append(starts, len(entries)))
            keys = entries["key"][starts].tobytes()
            places[name] = {
                keys[16 * index : 16 * index + 16]: (at + int(start), int(count))
                for index, (start, count) in enumerate(zip(starts, counts, strict=True))
            }
            all_entries.append(entries)
            all_bases.append(domain.bases[order])
            all_sizes.append(domain.sizes[order])
            at += len(entries)
        return cls(np.concatenate(all_entries), np.concatenate(all_bases), np.concatenate(all_sizes), places)

    def of_questions(
        self, questions: Sequence[tuple[CanonicalQuestion, bytes]], others: int
    ) -> tuple[Array, _Picked, Array]:
        """(first part of each answered question, the parts, the shift of their rows); each question has its key."""
        slices: list[tuple[int, int, int, int]] = []  # question, first entry, entries, shift
        for index, (question, key) in enumerate(questions):
            for domain in question.domains:
                found = self._places[domain].get(key)
                if found is not None:
                    shift = others if domain == PERSISTENT and NON_PERSISTENT in question.domains else 0
                    slices.append((index, *found, shift))
        if not slices:
            empty = np.empty(0, np.int64)
            return empty, _Picked(empty, empty), empty
        question_of, first, count, shift_of = np.array(slices, np.int64).T
        ends = np.cumsum(count)
        within = np.arange(int(ends[-1])) - np.repeat(ends - count, count)
        picked = _Picked(np.repeat(question_of, count), np.repeat(first, count) + within)
        begins = np.ones(len(picked.question), bool)
        begins[1:] = picked.question[1:] != picked.question[:-1]
        return np.flatnonzero(begins), picked, np.repeat(shift_of, count)


def _between(stored: Array, runs: Mapping[_Run, Sequence[int]]) -> _Entries:
    """The entries between two numbers of each of these runs of a domain."""
    counts = [stop - start for start, stop in runs.values()]
    return _Entries(
        np.concatenate([np.empty(0, stored.dtype), *(stored[start:stop] for start, stop in runs.values())]),
        np.repeat(np.array([run.base for run in runs], np.int64), counts),
        np.repeat(np.array([run.names for run in runs], np.int64), counts),
    )


def _high(keys: Array) -> Array:
    """The first halves of keys, as numbers that sort as the keys do."""
    return np.ascontiguousarray(keys).view(">u8").reshape(-1, 2)[:, 0].astype(np.uint64)


def _blocks(groups: Array, counts: Array) -> Iterator[Array]:
    """The groups in blocks of a bounded number of rows."""
    block: list[int] = []
    rows = 0
    for group in groups.tolist():
        if block and rows + int(counts[group]) > _ROWS_AT_ONCE:
            yield np.array(block, np.int64)
            block, rows = [], 0
        block.append(group)
        rows += int(counts[group])
    if block:
        yield np.array(block, np.int64)


def _expanded(parts: _Parts, entry: Array, base: Array, scratch: Array) -> Array:
    """The row numbers of entries, joined: counted from the first row of a range, or read from ``scratch``."""
    first, count = parts.first[entry], parts.count[entry]
    ends = np.cumsum(count)
    within = np.arange(int(ends[-1])) - np.repeat(ends - count, count)
    values = np.repeat(first, count) + within
    read = np.repeat(parts.has_words[entry] & ~parts.is_bits[entry], count)
    values[read] = scratch[values[read]]
    for at in np.flatnonzero(parts.is_bits[entry]).tolist():
        words = bit_words(int(parts.names[entry[at]]))
        bits = scratch[int(first[at]) : int(first[at]) + words]
        values[int(ends[at] - count[at]) : int(ends[at])] = rows_of_bits(bits)
    result: Array = values + np.repeat(base, count)
    return result
