"""An open generation: looks up the answer to a question in microseconds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from operator import methodcaller
from typing import Final

import numpy as np

from broker_core import BoundedCache, EncodedNames, Listing, Selection
from broker_core.names import Mode
from broker_core.patterns import TopicsPattern
from broker_core.quantities import counted
from broker_core_spark.arrow_columns import Array
from broker_core_spark.format import (
    ENTRY,
    KIND_RANGE,
    KIND_ROWS,
    CanonicalQuestion,
    Manifest,
    StoredPostings,
    entry_index,
    joined_entries,
    key_order,
)
from broker_core_spark.serving.opened.verify_and_map import (
    NOTHING_MAPPED,
    MappedFiles,
    SampleChecks,
    verify_and_map,
)
from broker_core_spark.store import Store, read_manifest

__all__ = ["LISTINGS_BYTES", "RANGES_BYTES", "SELECTIONS_BYTES", "Generation", "PrecomputedAnswer"]

#: Bytes of cached listings of one or two kilobytes: a catalogue may have a hundred thousand namespaces.
LISTINGS_BYTES: Final = 8 * 1024 * 1024
_LISTING: Final = 1536
#: Bytes of cached answers with row numbers. A repeated question gets the same object, of which the broker remembers
#: that it is verified.
SELECTIONS_BYTES: Final = 24 * 1024 * 1024
#: Bytes of cached ranges. Ranges are made in microseconds, so only frequent ones are worth a place.
RANGES_BYTES: Final = 768 * 1024
_ANSWER: Final = 768
#: Looking for the picks of a run takes about as long as hashing so many bytes.
_RUN_BYTES: Final = 4096
#: Entries of all runs of a place that are joined at a time, some 10 MB with the columns made of them.
_ENTRIES_AT_ONCE: Final = 65_536


class PrecomputedAnswer:
    """The answer to one question: topics of the generation's listing, and their hash.

    Both are claims of the generation until :meth:`verify`. Afterwards ``selection`` is one that the core itself
    matched and hashed, or ``fault`` says what is wrong. ``count`` is the number of topics, and ``select`` makes the
    selection when it is first needed. ``work`` is what that and hashing take, as the number of bytes that are hashed
    in the time.
    """

    def __init__(self, select: Callable[[], Selection], count: int, topics_hash: str, work: int = 0) -> None:
        self._select = select
        self._selection: Selection | None = None
        self.count = count
        self.topics_hash = topics_hash
        self.work = work
        self.is_verified = False
        self.fault: str | None = None

    @property
    def selection(self) -> Selection:
        """The topics. Making them takes some nanoseconds for each that is no part of a range."""
        # Not cached_property: in Python 3.11 its lock is that of all answers.
        if self._selection is None:
            self._selection = self._select()
        return self._selection

    def verify(self, pattern: TopicsPattern | None) -> None:
        """Match and hash all topics, whatever time that takes. ``pattern`` is the question's."""
        try:
            found = self.selection if pattern is None else self.selection.matching(pattern)
            if len(found) != self.count:
                self.fault = f"{self.count - len(found)} of its {counted(self.count, 'topic')} do not match"
            elif found.topics_hash != self.topics_hash:
                self.fault = f"the hash of its {counted(self.count, 'topic')} is another one"
            else:
                self._selection = found
        except ValueError as error:  # of mapped bytes that are no names
            self.fault = str(error)
        self.is_verified = True


class Generation:
    """An open generation, immutable and for any number of threads. :meth:`open` opens one."""

    def __init__(self, manifest: Manifest, opened: MappedFiles) -> None:
        self.manifest = manifest
        self.opened = opened
        #: The row of the first name of each run among all names, and its postings, by namespace and domain.
        self._runs: dict[tuple[str, str], list[tuple[int, StoredPostings]]] = {}
        #: The entry of each selector and the rows of all runs, by indexed namespace and domain.
        self._joined: dict[tuple[str, str], Array] = {}
        for segment in opened.segments.values():
            row = segment.first
            for run in segment.postings:
                self._runs.setdefault((run.namespace, run.domain), []).append((row, run))
                row += run.names
        self._listings = BoundedCache[tuple[str, Mode], Listing](LISTINGS_BYTES)
        self._ranges = BoundedCache[bytes, PrecomputedAnswer](RANGES_BYTES)
        self._answers = BoundedCache[bytes, PrecomputedAnswer](SELECTIONS_BYTES)

    @classmethod
    def open(
        cls,
        store: Store,
        generation: str,
        *,
        directory: str | None = None,
        checks: SampleChecks | None = None,
        before: Generation | None = None,
    ) -> Generation:
        """Fetch, verify and map the generation of an id. Takes seconds for millions of names: call it on a thread.

        Segments of ``before`` are taken from it, and namespaces that it has indexed are indexed.

        ``directory`` is the folder of the private files, which have no names and take up to twice the generation's
        size. Raises :exc:`InvalidGeneration` with the file and the reason, :exc:`NoSuchGeneration`, and
        :exc:`StoreFailed` if the store or the directory fails.
        """
        manifest = read_manifest(store, generation)
        known, indexed = (NOTHING_MAPPED, {}) if before is None else (before.opened, before.indexed)
        made = cls(manifest, verify_and_map(store, manifest, directory, checks or SampleChecks(), known))
        made.index(indexed)
        return made

    @property
    def id(self) -> str:
        return self.manifest.id

    @property
    def indexed(self) -> dict[tuple[str, str], int]:
        """The indexed namespaces and domains, each with the bytes of its index, 48 for each of its questions."""
        return {place: entries.nbytes for place, entries in list(self._joined.items())}

    def unindexed(self, question: CanonicalQuestion) -> list[tuple[str, str]]:
        """The namespace and domains that :meth:`index` is to be called for before :meth:`lookup`: those that lie in
        several segments, of a question that the generation has.
        """
        places = [(question.namespace, domain) for domain in question.domains]
        found = [
            place for place in places if place not in self._joined and len(self._runs.get(place, ())) > 1
        ]
        return found if found and self._has(question.line + b"\n") else []

    def index(self, places: Iterable[tuple[str, str]]) -> None:
        """Join the parts of all answers of these namespaces and domains, if they lie in several segments.

        Takes a second for some million parts: call it on a thread.
        """
        for place in places:
            runs = self._runs.get(place, ())
            if len(runs) > 1:
                self._joined[place] = _joined_runs(runs)

    def lookup(self, question: CanonicalQuestion) -> PrecomputedAnswer | None:
        """The precomputed answer to a question, or ``None``.

        Takes some microseconds, if there is nothing :meth:`unindexed`; else that is indexed first.
        """
        line = question.line + b"\n"  # as the file has it
        known = self._ranges.get(line) or self._answers.get(line)
        if known is not None:
            return known
        if not self._has(line):
            return None
        self.index(self.unindexed(question))
        return self._answer(question, line)

    def _has(self, line: bytes) -> bool:
        """Whether the generation has the question of a line."""
        lines = self.opened.lines
        at = bisect_left(lines, line, key=methodcaller("as_py"))
        return at < len(lines) and lines[at].as_py() == line

    def _answer(self, question: CanonicalQuestion, line: bytes) -> PrecomputedAnswer:
        """The answer to a question of the generation: what its selector picks in each domain, one after the other."""
        places = [
            place for domain in question.domains if (place := (question.namespace, domain)) in self._runs
        ]
        runs = [self._runs[place] for place in places]
        low = runs[0][0][0] if runs else 0
        listing = self._listing(question, low, runs)
        parts = []
        for place, own in zip(places, runs, strict=True):
            row, run = own[0]
            entries = self._joined.get(place, run.entries)
            at = entry_index(entries["key"], question.selector.key)
            if at is not None:
                parts.append((row - low, entries[at : at + 1]))
        size = _ANSWER + 2 * len(line)
        if not parts:
            nothing = PrecomputedAnswer(partial(listing.range, 0, 0), 0, EncodedNames.hash_of_crc(0))
            return self._ranges.put_first(line, nothing, size)
        base, found = parts[0] if len(parts) == 1 else (0, _joined_parts(parts))
        (whole,) = found
        count, topics_hash = int(whole["count"]), EncodedNames.hash_of_crc(int(whole["crc"]))
        if whole["kind"] == KIND_RANGE:
            first = base + int(whole["first"])
            select = partial(listing.range, first, first + count)
            return self._ranges.put_first(
                line, PrecomputedAnswer(select, count, topics_hash, int(whole["joined"])), size
            )
        select = partial(_rows, listing, low, runs, question.selector.key)
        work = int(whole["joined"]) + _RUN_BYTES * sum(map(len, runs))
        return self._answers.put_first(
            line, PrecomputedAnswer(select, count, topics_hash, work), size + 4 * count
        )

    def _listing(
        self, question: CanonicalQuestion, low: int, runs: Sequence[Sequence[tuple[int, StoredPostings]]]
    ) -> Listing:
        """All topics of a question's namespace and mode, which are those of ``runs`` from row ``low`` on."""
        place = question.namespace, question.mode
        known = self._listings.get(place)
        if known is not None:
            return known
        # A view of the generation's names, without a copy.
        fields = self.opened.names.slice(low, sum(run.names for own in runs for _, run in own))
        made = Listing.from_encoded(*place, fields, mapped=True)
        return self._listings.put_first(place, made, _LISTING)


def _rows(
    listing: Listing, low: int, runs: Sequence[Sequence[tuple[int, StoredPostings]]], key: bytes
) -> Selection:
    """The picks of a selector in each run, one after the other. The listing begins at row ``low``."""
    picked = [row - low + run.rows(key).astype(np.int32) for own in runs for row, run in own]
    return listing.rows(np.concatenate(picked))


def _joined_runs(runs: Sequence[tuple[int, StoredPostings]]) -> Array:
    """The entry of each selector and the rows of all runs, as :func:`_joined_parts` gives it, in stretches of keys."""
    # Keys are hashes, so that stretches of equal width have about as many entries.
    stretches = sum(len(run.entries) for _, run in runs) // _ENTRIES_AT_ONCE + 1
    bounds = [(number * 2**64 // stretches).to_bytes(8) for number in range(stretches)]
    cuts = [
        [
            *(bisect_left(run.entries["key"], bound, key=np.ndarray.tobytes) for bound in bounds),
            len(run.entries),
        ]
        for _, run in runs
    ]
    joined = []
    for number in range(stretches):
        own = [
            (row - runs[0][0], run.entries[cut[number] : cut[number + 1]])
            for cut, (row, run) in zip(cuts, runs, strict=True)
        ]
        joined.append(_joined_parts(own))
    return np.concatenate(joined)


def _joined_parts(parts: Sequence[tuple[int, Array]]) -> Array:
    """The entry of each selector, without words and sorted by key, of its entries in parts that follow each other.

    Each part begins at a row, from which its own rows are counted. The kind tells ranges from other rows.
    """
    # numpy.concatenate takes ten times as long for many short columns of records.
    entries = np.frombuffer(b"".join([own.data for _, own in parts]), ENTRY)
    bases = np.repeat([row for row, _ in parts], [len(own) for _, own in parts])
    order, starts = key_order(entries["key"])  # parts stay in order
    entries = entries[order]
    firsts = entries["first"].astype(np.int64) + bases[order]
    follows = np.append(True, firsts[1:] == firsts[:-1] + entries["count"][:-1])
    follows[starts] = True
    is_range = np.logical_and.reduceat(follows & (entries["kind"] == KIND_RANGE), starts)
    joined = joined_entries(entries, starts)
    joined["first"] = firsts[starts]
    joined["kind"] = np.where(is_range, KIND_RANGE, KIND_ROWS)
    return joined
