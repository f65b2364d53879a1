"""The index of answers: for each question, the rows of the namespace's listing, their hash and their count.

A segment counts rows from its own first name and has only its part of a hash. The parts are joined once, when a
generation is opened, so that a question is one look-up later. All steps work on columns over all questions of a
namespace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from broker_core import EncodedNames
from broker_core.names import NON_PERSISTENT, PERSISTENT
from broker_core_spark.arrow_columns import Array
from broker_core_spark.format import (
    DOMAIN_ORDER,
    ENTRY,
    KIND_RANGE,
    KIND_ROWS,
    CanonicalQuestion,
    StoredPostings,
    joined_rows,
    key_order,
    split_keys,
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


class NamespacePostings:
    """Collects the postings of one namespace run by run, and makes the answers to its questions.

    Entries wait in a file. Answers are made for a range of the selectors' keys at a time, so that the memory does not
    grow with questions times runs.
    """

    def __init__(self, namespace: str, first: int, scratch: PrivateFile, entries: PrivateFile) -> None:
        """``first`` is the number of names before it.

        ``scratch`` holds the row numbers and bitmaps, ``entries`` the entries until the answers are made.
        """
        self.namespace = namespace
        self.first = first
        self._runs: dict[str, list[_Run]] = {domain: [] for domain in DOMAIN_ORDER}
        self._scratch = scratch
        self._entries = entries

    @property
    def names(self) -> int:
        return sum(map(self._names, DOMAIN_ORDER))

    @property
    def others(self) -> int:
        """The number of non-persistent names, which come first."""
        return self._names(NON_PERSISTENT)

    def _names(self, domain: str) -> int:
        runs = self._runs[domain]
        return runs[-1].base + runs[-1].names if runs else 0

    def add(self, run: StoredPostings) -> None:
        """Add the next run of its domain."""
        entries = run.entries.copy()
        has_words = entries["kind"] != KIND_RANGE
        entries["first"][has_words] += self._scratch.size // 4
        self._scratch.write(run.words)
        start = self._entries.size // ENTRY.itemsize
        self._entries.write(entries)
        made = _Run(start, start + len(entries), self._names(run.domain), run.names)
        self._runs[run.domain].append(made)

    def answers(self, questions: Sequence[CanonicalQuestion], rows_file: PrivateFile) -> Array:
        """A :data:`RECORD` for each question, without its key and its line.

        Row numbers are appended to ``rows_file`` as int32, counted from the first name of the question's mode.
        """
        records = np.zeros(len(questions), RECORD)
        runs = [run for own in self._runs.values() for run in own]
        ranges = -(-sum(run.stop - run.start for run in runs) // _ENTRIES_AT_ONCE)
        if not ranges:
            return records
        stored = np.frombuffer(self._entries.mapped(), ENTRY)
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
            parts = _Parts(
                stored,
                {
                    name: {run: cuts[run][number : number + 2] for run in own}
                    for name, own in self._runs.items()
                },
            )
            own = [(questions[index], keys[index]) for index in asked.tolist()]
            records[asked] = self._answers(parts, own, rows_file)
        return records

    def _answers(
        self, parts: _Parts, questions: Sequence[tuple[CanonicalQuestion, bytes]], rows_file: PrivateFile
    ) -> Array:
        records = np.zeros(len(questions), RECORD)
        question, number, shifts = parts.of_questions(questions, self.others)
        if not len(question):
            return records
        starts = np.flatnonzero(np.diff(question, prepend=-1))
        answered = question[starts]
        entries, names = parts.entries[number], parts.names[number]
        # The rows of a domain come after the rows of the domain before it.
        bases = parts.bases[number] + shifts
        crcs, _ = EncodedNames.joined_crcs(entries["crc"], entries["joined"], starts)
        each = entries["count"].astype(np.int64)
        counts = np.add.reduceat(each, starts)
        records["crc"][answered], records["count"][answered] = crcs, counts
        has_words = entries["kind"] != KIND_RANGE
        first = entries["first"].astype(np.int64) + np.where(has_words, 0, bases)
        follows = np.ones(len(first), bool)
        follows[1:] = first[1:] == first[:-1] + each[:-1]
        follows[starts] = True
        follows &= ~has_words
        is_range = np.logical_and.reduceat(follows, starts)
        ranges = answered[is_range]
        records["first"][ranges] = first[starts[is_range]]
        scattered = np.flatnonzero(~is_range)
        records["kind"][answered[scattered]] = KIND_ROWS
        ends = np.append(starts[1:], len(first))
        if not len(scattered):
            return records
        scratch = np.frombuffer(self._scratch.mapped(), "<u4")
        # Blocks of a bounded number of rows.
        stops = np.flatnonzero(np.diff(np.cumsum(counts[scattered]) // _ROWS_AT_ONCE)) + 1
        for group in np.split(scattered, stops):
            members = np.concatenate([np.arange(starts[one], ends[one]) for one in group])
            rows = joined_rows(entries[members], scratch, names[members])
            rows += np.repeat(bases[members], each[members])
            sizes = counts[group]
            begins = np.cumsum(sizes) - sizes
            records["first"][answered[group]] = rows_file.size // 4 + begins
            rows_file.write(rows.astype("<i4"))
        return records


class _Parts:
    """Entries of the runs of a namespace, sorted by domain, key and run: for each the first row of its run, and the
    names in it.
    """

    def __init__(self, stored: Array, domains: Mapping[str, Mapping[_Run, Sequence[int]]]) -> None:
        """``domains`` has the first and the last number of the entries of each run, which are in ``stored``."""
        self._places: dict[str, dict[bytes, tuple[int, int]]] = {}
        columns = [(np.empty(0, ENTRY), np.empty(0, np.int64), np.empty(0, np.int64))]
        at = 0
        for name, runs in domains.items():
            entries = np.concatenate([columns[0][0], *(stored[slice(*numbers)] for numbers in runs.values())])
            places = np.array([(run.base, run.names) for run in runs], np.int64).reshape(-1, 2)
            places = np.repeat(places, [stop - start for start, stop in runs.values()], axis=0)
            order, starts = key_order(entries["key"])  # runs stay in order
            counts = np.diff(starts, append=len(entries))
            spans = zip((at + starts).tolist(), counts.tolist(), strict=True)
            keys = split_keys(entries["key"][order[starts]])
            self._places[name] = dict(zip(keys, spans, strict=True))
            columns.append((entries[order], *places[order].T))
            at += len(entries)
        self.entries, self.bases, self.names = map(np.concatenate, zip(*columns, strict=True))

    def of_questions(
        self, questions: Sequence[tuple[CanonicalQuestion, bytes]], others: int
    ) -> tuple[Array, Array, Array]:
        """The question, the entry and the shift of the rows of each part of an answer, question by question.

        Each question has its key.
        """
        slices: list[tuple[int, int, int, int]] = []  # question, first entry, entries, shift
        for index, (question, key) in enumerate(questions):
            for domain in question.domains:
                found = self._places[domain].get(key)
                if found is not None:
                    shift = others if domain == PERSISTENT and NON_PERSISTENT in question.domains else 0
                    slices.append((index, *found, shift))
        number, first, count, shift_of = np.array(slices, np.int64).reshape(-1, 4).T
        within = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
        return np.repeat(number, count), np.repeat(first, count) + within, np.repeat(shift_of, count)


def _high(keys: Array) -> Array:
    """The first halves of keys, as numbers that sort as the keys do."""
    return np.ascontiguousarray(keys).view(">u8").reshape(-1, 2)[:, 0].astype(np.uint64)
