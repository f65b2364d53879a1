"""A generation that is open: verified wholly, copied to private files, mapped, and asked in microseconds."""

from __future__ import annotations

import hashlib
import struct
import threading
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from broker_core.listing import Listing
from broker_core.names import NON_PERSISTENT, PERSISTENT, Mode, NamespaceName
from broker_core.selection import Part, Selection
from broker_core.topics_hash import crc_text
from broker_core_spark.errors import InvalidGeneration, NoSuchGeneration
from broker_core_spark.format.answer_index import IS_RANGE, RECORD
from broker_core_spark.format.manifest import MANIFEST_LIMIT, Manifest, manifest_name
from broker_core_spark.format.mapped_listing import MappedListing
from broker_core_spark.format.opening import Checks, Opened, open_files
from broker_core_spark.format.question import MATCH_ALL, Question
from broker_core_spark.store import Store

__all__ = ["LISTINGS", "Answer", "Generation", "read_manifest"]

#: Listings that are kept, a few kilobytes each: a catalogue may have a hundred thousand namespaces.
LISTINGS: Final = 4096
_KEY: Final = struct.Struct(">QQ")
_RECORD: Final = struct.Struct("<QQIIQQQQ")
assert _RECORD.size == RECORD.itemsize


class Answer:
    """The answer to one question: a selection of the generation's listing whose hash and size are known.

    Give ``selection`` to ``TopicListingResult.success`` with ``topics_hash``; its part says that the pattern was
    applied, so that nobody matches again. ``count`` is the number of topics.
    """

    __slots__ = ("count", "selection", "topics_hash")

    def __init__(self, selection: Selection, count: int, topics_hash: str) -> None:
        self.selection = selection
        self.count = count
        self.topics_hash = topics_hash

    def __repr__(self) -> str:
        return f"<Answer of {self.count} topics, {self.topics_hash}>"


def read_manifest(store: Store, generation: str) -> Manifest:
    """The manifest of a generation by its whole id. Raises :exc:`NoSuchGeneration` and :exc:`InvalidGeneration`."""
    name = manifest_name(generation)
    data = store.get(name, MANIFEST_LIMIT)
    if data is None:
        raise NoSuchGeneration(f"{store.uri}: there is no generation {generation[:12]}")
    if hashlib.sha256(data).hexdigest() != generation:
        raise InvalidGeneration(name, "its checksum is not the one that its name has: it was changed or cut")
    return Manifest.parse(data, name)


class Generation:
    """An open generation; immutable and for any number of threads. Open one with :meth:`open`."""

    def __init__(self, manifest: Manifest, opened: Opened) -> None:
        self.manifest = manifest
        self._opened = opened
        self._high: np.ndarray[Any, Any] = np.frombuffer(opened.keys, "<u8")
        # Signed bytes, as Arrow shows them, would be compared one by one.
        self._records = memoryview(opened.records).cast("B")
        self._lines = memoryview(opened.lines).cast("B")
        self._rows: np.ndarray[Any, Any] = np.frombuffer(opened.rows, "<i4")
        self._listings: dict[tuple[str, Mode], MappedListing] = {}
        self._lock = threading.Lock()

    @classmethod
    def open(
        cls,
        store: Store,
        generation: str,
        *,
        directory: str | None = None,
        checks: Checks | None = None,
    ) -> Generation:
        """Fetch, verify and map a generation by its whole id. Takes seconds for millions of names: call on a thread.

        ``directory`` is where the private files are made (they have no names, and take as much room as the generation
        and once more). Raises :exc:`InvalidGeneration` with the file and the reason, :exc:`NoSuchGeneration`, and
        :exc:`StoreFailed` where the store or the directory fails.
        """
        manifest = read_manifest(store, generation)
        return cls(manifest, open_files(store, manifest, directory, checks or Checks()))

    @property
    def id(self) -> str:
        return self.manifest.id

    @property
    def questions(self) -> int:
        """The number of questions that it answers."""
        return self.manifest.question_count

    @property
    def topics(self) -> int:
        """The number of names in it."""
        return self.manifest.topics

    @property
    def mapped_bytes(self) -> int:
        """Bytes of the private files that are mapped."""
        return self._opened.mapped_bytes

    def has_namespace(self, namespace: str) -> bool:
        """Whether the catalogue had this namespace."""
        return namespace in self.manifest.namespaces

    def version(self, namespace: str) -> int | None:
        """The version of a namespace that the answers are for; ``None`` in a static catalogue.

        Raises :exc:`KeyError` for a namespace that the catalogue did not have.
        """
        return self.manifest.namespaces[namespace]

    def lookup(self, question: Question) -> Answer | None:
        """The answer to a question that was precomputed, else ``None``. Takes some microseconds."""
        line = question.line
        high, low = _KEY.unpack_from(hashlib.sha256(line).digest())
        at = int(self._high.searchsorted(np.uint64(high)))
        while at < len(self._high) and int(self._high[at]) == high:
            found, line_at, line_size, crc, count, first, fields, kind = _RECORD.unpack_from(
                self._records, at * _RECORD.size
            )
            if found == low and self._lines[line_at : line_at + line_size] == line:
                return self._answer(question, crc, count, first, fields, kind)
            at += 1
        return None

    def _answer(self, question: Question, crc: int, count: int, first: int, fields: int, kind: int) -> Answer:
        listing = self._listing(question.namespace, question.mode)
        text = question.selector.pattern
        if kind == IS_RANGE:
            part = Part(first, first + count, None, MATCH_ALL if text is None else text)
        else:
            rows = self._rows[first : first + count]
            part = Part(int(rows[0]), int(rows[-1]) + 1, rows, text)
        hash_text = crc_text(crc)
        part.hash, part.fields_size = hash_text, fields
        return Answer(Selection(listing, part), count, hash_text)

    def listing(self, namespace: str, mode: Mode) -> Listing | None:
        """All topics of a namespace, over the map; ``None`` where the catalogue did not have the namespace."""
        return self._listing(namespace, mode) if self.has_namespace(namespace) else None

    def _listing(self, namespace: str, mode: Mode) -> MappedListing:
        known = self._listings.get((namespace, mode))
        if known is not None:
            return known
        start, others, names = self._opened.namespaces.get(namespace, (0, 0, 0))
        low = start if mode.lists(NON_PERSISTENT) else start + others
        high = start + names if mode.lists(PERSISTENT) else start + others
        made = MappedListing(
            NamespaceName.parse(namespace),
            mode,
            _column(self._opened.fields, self._opened.field_offsets, low, high),
            _column(self._opened.joined, self._opened.joined_offsets, low, high),
            others if mode.lists(NON_PERSISTENT) else 0,
        )
        with self._lock:
            while len(self._listings) >= LISTINGS:
                del self._listings[next(iter(self._listings))]
            return self._listings.setdefault((namespace, mode), made)

    def all_questions(self) -> Iterator[Question]:
        """All questions that it answers, one at a time."""
        for line in bytes(self._lines).splitlines():
            yield Question.parse(line)

    def __repr__(self) -> str:
        return f"<Generation {self.id[:12]}: {self.questions} questions, {self.topics} topics>"


def _column(data: pa.Buffer, offsets: pa.Buffer, low: int, high: int) -> pa.LargeBinaryArray:
    """Rows ``low`` to ``high`` of the generation's names; nothing is copied."""
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), high - low, [None, offsets, data], null_count=0, offset=low
    )
