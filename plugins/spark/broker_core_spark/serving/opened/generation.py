"""An open generation: looks up the answer to a question in microseconds."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cached_property, partial
from operator import methodcaller
from typing import Final

import numpy as np

from broker_core import BoundedCache, EncodedNames, Listing, Selection
from broker_core.names import Mode
from broker_core.patterns import TopicsPattern
from broker_core.quantities import counted
from broker_core_spark.format import (
    KIND_RANGE,
    CanonicalQuestion,
    Manifest,
    StoredPostings,
    entry_index,
    joined_entries,
    joined_rows,
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
#: Bytes of an answer for each run that it has topics of.
_PART: Final = 128


class PrecomputedAnswer:
    """The answer to one question: topics of the generation's listing, and their hash.

    Both are claims of the generation until :meth:`verify`. Afterwards ``selection`` is one that the core itself
    matched and hashed, or ``fault`` says what is wrong. ``count`` is the number of topics, ``names_bytes`` are the
    bytes of their names, and ``select`` makes the selection when it is first needed.
    """

    def __init__(
        self, select: Callable[[], Selection], count: int, topics_hash: str, names_bytes: int = 0
    ) -> None:
        self._select = select
        self.count = count
        self.topics_hash = topics_hash
        self.names_bytes = names_bytes
        self.is_verified = False
        self.fault: str | None = None

    @cached_property
    def selection(self) -> Selection:
        """The topics. Making them takes some nanoseconds for each that is no part of a range."""
        return self._select()

    def verify(self, pattern: TopicsPattern | None) -> None:
        """Match and hash the topics, as slowly as that is. ``pattern`` is the question's."""
        try:
            found = self.selection if pattern is None else self.selection.matching(pattern)
            if len(found) != self.count:
                self.fault = f"{self.count - len(found)} of its {counted(self.count, 'topic')} do not match"
            elif found.topics_hash != self.topics_hash:
                self.fault = f"the hash of its {counted(self.count, 'topic')} is another one"
            else:
                self.selection = found
        except ValueError as error:  # of mapped bytes that are no names
            self.fault = str(error)
        self.is_verified = True


class Generation:
    """An open generation, immutable and for any number of threads. :meth:`open` opens one."""

    def __init__(self, manifest: Manifest, opened: MappedFiles) -> None:
        self.manifest = manifest
        self.opened = opened
        #: By namespace and domain: the row of the first name of each run among all names, and its postings.
        self._runs: dict[tuple[str, str], list[tuple[int, StoredPostings]]] = {}
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

        Segments of ``before`` are taken from it.

        ``directory`` is the folder of the private files, which have no names and take up to twice the generation's
        size. Raises :exc:`InvalidGeneration` with the file and the reason, :exc:`NoSuchGeneration`, and
        :exc:`StoreFailed` if the store or the directory fails.
        """
        manifest = read_manifest(store, generation)
        known = NOTHING_MAPPED if before is None else before.opened
        return cls(manifest, verify_and_map(store, manifest, directory, checks or SampleChecks(), known))

    @property
    def id(self) -> str:
        return self.manifest.id

    def lookup(self, question: CanonicalQuestion) -> PrecomputedAnswer | None:
        """The precomputed answer to a question, or ``None``. Takes some microseconds for each run of its namespace."""
        line = question.line + b"\n"  # as the file has it
        known = self._ranges.get(line) or self._answers.get(line)
        if known is not None:
            return known
        lines = self.opened.lines
        at = bisect_left(lines, line, key=methodcaller("as_py"))
        if at == len(lines) or lines[at].as_py() != line:
            return None
        return self._answer(question, line)

    def _answer(self, question: CanonicalQuestion, line: bytes) -> PrecomputedAnswer:
        """The answer to a question of the generation: what its selector picks in each run, one after the other."""
        runs = [
            run for domain in question.domains for run in self._runs.get((question.namespace, domain), ())
        ]
        listing = self._listing(question, runs)
        key = question.selector.key
        parts = [
            (row - runs[0][0], run, at)
            for row, run in runs
            if (at := entry_index(run.entries["key"], key)) is not None
        ]
        if not parts:
            nothing = PrecomputedAnswer(partial(listing.range, 0, 0), 0, EncodedNames.hash_of_crc(0))
            return self._ranges.put_first(line, nothing, _ANSWER + 2 * len(line))
        entries = np.concatenate([run.entries[at : at + 1] for _, run, at in parts])
        (whole,) = joined_entries(entries, np.zeros(1, np.int64))
        count = int(whole["count"])
        firsts = entries["first"].astype(np.int64) + [row for row, _, _ in parts]
        ends = firsts + entries["count"]
        is_range = (entries["kind"] == KIND_RANGE).all() and (firsts[1:] == ends[:-1]).all()
        select = (
            partial(listing.range, int(firsts[0]), int(ends[-1]))
            if is_range
            else partial(_rows, listing, parts)
        )
        answer = PrecomputedAnswer(
            select, count, EncodedNames.hash_of_crc(int(whole["crc"])), int(whole["joined"])
        )
        size = _ANSWER + 2 * len(line)
        if is_range:
            return self._ranges.put_first(line, answer, size)
        return self._answers.put_first(line, answer, size + _PART * len(parts) + 4 * count)

    def _listing(self, question: CanonicalQuestion, runs: Sequence[tuple[int, StoredPostings]]) -> Listing:
        """All topics of a question's namespace and mode, which are those of ``runs``."""
        place = question.namespace, question.mode
        known = self._listings.get(place)
        if known is not None:
            return known
        # A view of the generation's names, without a copy.
        low = runs[0][0] if runs else 0
        fields = self.opened.names.slice(low, sum(run.names for _, run in runs))
        made = Listing.from_encoded(*place, fields, mapped=True)
        return self._listings.put_first(place, made, _LISTING)


def _rows(listing: Listing, parts: Sequence[tuple[int, StoredPostings, int]]) -> Selection:
    """The picks of an entry of each run, which begins at a row of the listing."""
    picked = (
        row + joined_rows(run.entries[at : at + 1], run.words, run.names).astype(np.int32)
        for row, run, at in parts
    )
    return listing.rows(np.concatenate(list(picked)))
