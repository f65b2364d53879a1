"""An open generation: looks up the answer to a question in microseconds."""

from __future__ import annotations

import hashlib
import struct
from typing import Final

import numpy as np

from broker_core import BoundedCache, EncodedNames, Listing, Selection
from broker_core.names import NON_PERSISTENT, PERSISTENT, Mode
from broker_core.patterns import TopicsPattern
from broker_core.quantities import counted
from broker_core_spark.arrow_columns import Array
from broker_core_spark.format import CanonicalQuestion, Manifest
from broker_core_spark.serving.opened.answer_index import IS_RANGE, RECORD
from broker_core_spark.serving.opened.verify_and_map import MappedFiles, SampleChecks, verify_and_map
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
_ANSWER: Final = 512
_KEY: Final = struct.Struct(">QQ")
_RECORD: Final = struct.Struct("<QQIIQQQ")
assert _RECORD.size == RECORD.itemsize


class PrecomputedAnswer:
    """The answer to one question: topics of the generation's listing, and their hash.

    Both are claims of the generation until :meth:`verify`. Afterwards ``selection`` is one that the core itself
    matched and hashed, or ``fault`` says what is wrong. ``count`` is the number of topics.
    """

    __slots__ = ("count", "fault", "is_verified", "selection", "topics_hash")

    def __init__(self, selection: Selection, count: int, topics_hash: str) -> None:
        self.selection = selection
        self.count = count
        self.topics_hash = topics_hash
        self.is_verified = False
        self.fault: str | None = None

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
        self._high: Array = np.frombuffer(opened.keys, "<u8")
        # Arrow shows signed bytes, which are compared one by one.
        self._records = memoryview(opened.records).cast("B")
        self._lines = memoryview(opened.lines).cast("B")
        self._rows: Array = np.frombuffer(opened.rows, "<i4")
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

        ``directory`` is the folder of the private files, which have no names and take twice the generation's size.
        Raises :exc:`InvalidGeneration` with the file and the reason, :exc:`NoSuchGeneration`, and :exc:`StoreFailed` if
        the store or the directory fails.
        """
        manifest = read_manifest(store, generation)
        known = None if before is None else before.opened
        return cls(manifest, verify_and_map(store, manifest, directory, checks or SampleChecks(), known))

    @property
    def id(self) -> str:
        return self.manifest.id

    def lookup(self, question: CanonicalQuestion) -> PrecomputedAnswer | None:
        """The precomputed answer to a question, or ``None``. Takes some microseconds."""
        line = question.line
        known = self._ranges.get(line) or self._answers.get(line)
        if known is not None:
            return known
        high, low = _KEY.unpack_from(hashlib.sha256(line).digest())
        at = int(self._high.searchsorted(np.uint64(high)))
        while at < len(self._high) and int(self._high[at]) == high:
            found, line_at, line_size, crc, count, first, kind = _RECORD.unpack_from(
                self._records, at * _RECORD.size
            )
            if found == low and self._lines[line_at : line_at + line_size] == line:
                answer = self._answer(question, crc, count, first, kind)
                size = _ANSWER + 2 * len(line)
                if kind == IS_RANGE:
                    return self._ranges.put_first(line, answer, size)
                return self._answers.put_first(line, answer, size + 4 * count)
            at += 1
        return None

    def _answer(
        self, question: CanonicalQuestion, crc: int, count: int, first: int, kind: int
    ) -> PrecomputedAnswer:
        listing = self._listing(question.namespace, question.mode)
        if kind == IS_RANGE:
            selection = listing.range(first, first + count)
        else:
            selection = listing.rows(self._rows[first : first + count])
        return PrecomputedAnswer(selection, count, EncodedNames.hash_of_crc(crc))

    def _listing(self, namespace: str, mode: Mode) -> Listing:
        """All topics of a namespace."""
        known = self._listings.get((namespace, mode))
        if known is not None:
            return known
        start, others, names = self.opened.namespaces.get(namespace, (0, 0, 0))
        low = start if mode.lists(NON_PERSISTENT) else start + others
        high = start + names if mode.lists(PERSISTENT) else start + others
        # A view of the generation's names, without a copy.
        fields = self.opened.names(low, high - low)
        made = Listing.from_encoded(namespace, mode, fields, mapped=True)
        return self._listings.put_first((namespace, mode), made, _LISTING)
