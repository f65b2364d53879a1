"""Writing and reading a postings file: the picks of each selector in the runs of a segment.

A file of a generation has all selectors of its segment. A part that a task stages has some of them, and
:mod:`.postings_merge` joins parts.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from broker_core import EncodedNames
from broker_core_spark.arrow_columns import Array
from broker_core_spark.format import segment_layout
from broker_core_spark.format.framed_file import FramedWriter, open_frame, section_buffers
from broker_core_spark.format.picked_words import joined_rows
from broker_core_spark.format.selector_keys import SelectorKeys

__all__ = [
    "PostingsWriter",
    "RunPostings",
    "StoredPostings",
    "entry_index",
    "joined_entries",
    "read_postings",
]


@dataclass(frozen=True, slots=True)
class RunPostings:
    """The postings of a run of ``names`` names: entries sorted by key, and their words one after the other.

    ``entries`` have the type :data:`~.segment_layout.ENTRY`. ``words`` is a sequence of columns (uint32).
    """

    names: int
    entries: Array
    words: Sequence[Array]

    @property
    def joined_words(self) -> Array:
        """The words as one column."""
        return np.concatenate([np.empty(0, "<u4"), *self.words])


class PostingsWriter(FramedWriter):
    """The writer of one postings file."""

    def __init__(self) -> None:
        super().__init__(segment_layout.POSTINGS)

    def add_run(self, namespace: str, domain: str, postings: RunPostings, selectors: SelectorKeys) -> None:
        """Append the postings of a run, in the order of all names. ``selectors`` are the keys of all."""
        run = {"namespace": namespace, "domain": domain, "selectors": selectors.digest}
        sizes = (postings.names, len(postings.entries), sum(map(len, postings.words)))
        words = (np.ascontiguousarray(part, "<u4") for part in postings.words)
        self.add(run, sizes, [postings.entries], words)


@dataclass(frozen=True, slots=True)
class StoredPostings:
    """The postings of a run in an open file: views of its buffer, of which only the sizes are checked.

    ``selectors_digest`` is the digest of all selectors that the run is matched with. ``entries`` are those of the
    selectors that pick names, of the type :data:`~.segment_layout.ENTRY`, sorted by key.
    """

    namespace: str
    domain: str
    selectors_digest: str
    names: int
    entries: Array
    words: Array

    def rows(self, key: bytes) -> Array:
        """The rows that the selector of a key picks, ascending (int64)."""
        at = entry_index(self.entries["key"], key)
        found = self.entries[:0] if at is None else self.entries[at : at + 1]
        return joined_rows(found, self.words, self.names)


def entry_index(keys: Array, key: bytes) -> int | None:
    """The number of a selector's key among sorted ``keys``, or ``None``."""
    at = bisect_left(keys, key, key=np.ndarray.tobytes)
    return at if at < len(keys) and keys[at].tobytes() == key else None


def joined_entries(entries: Array, starts: Array) -> Array:
    """The entry of each selector, without words, of its entries in parts that follow each other: its names of all.

    ``starts`` are the first entries of the selectors.
    """
    joined: Array = entries[starts]
    if len(starts) < len(entries):
        joined["count"] = np.add.reduceat(entries["count"], starts)
        joined["crc"], joined["joined"] = EncodedNames.joined_crcs(entries["crc"], entries["joined"], starts)
    return joined


def read_postings(buffer: pa.Buffer, file: str) -> list[StoredPostings]:
    """The runs of a postings file. ``file`` is its name in errors. Raises :exc:`InvalidGeneration`."""
    runs: list[StoredPostings] = []
    for record, place in open_frame(segment_layout.POSTINGS, buffer, file):
        entries, words = section_buffers(buffer, place, file)
        runs.append(
            StoredPostings(
                record["namespace"],
                record["domain"],
                record["selectors"],
                place.names,
                np.frombuffer(entries, segment_layout.ENTRY),
                np.frombuffer(words, "<u4"),
            )
        )
    return runs
