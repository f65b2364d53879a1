"""Tallies: how many names of neighbouring segments a selector picks, and their hash, in files of the staging folder.

A tally is an entry of postings, without words. A task has one a selector for all of its neighbouring segments, because
counts, hashes and lengths of parts can be joined. The driver reads the files in order and keeps one tally a selector,
so its memory grows with the questions and not with questions times segments.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate, groupby
from typing import Final

import numpy as np

from broker_core_spark.arrow_columns import Array
from broker_core_spark.format import ENTRY, joined_entries, key_order
from broker_core_spark.store import Store

__all__ = ["TallyBlock", "TallyWriter", "joined_tallies", "read_tallies"]

#: Tallies of a place are joined if they are so many times as many as those that were joined before.
_HELD: Final = 4
#: Files that are read together.
_READ_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class TallyBlock:
    """Bytes ``start`` to ``stop`` of a file, and their CRC-32: the tallies of one namespace and domain, sorted by key.

    ``order`` is the key in front of the neighbouring segments that they are of
    (:mod:`~broker_core_spark.batch.staging.order_keys`).
    """

    namespace: str
    domain: str
    order: bytes
    path: str
    start: int
    stop: int
    crc: int


class TallyWriter:
    """Collects the tallies of segments, which come in order."""

    def __init__(self) -> None:
        self._order = b""
        #: The parts for each place of each stretch of neighbouring segments.
        self._parts: dict[tuple[str, str, bytes], list[Array]] = {}

    def begin(self, order: bytes) -> None:
        """Begin neighbouring segments, of which no key is less than ``order``."""
        self._order = order

    def add(self, namespace: str, domain: str, entries: Array) -> None:
        """Add the entries of the next run."""
        if len(entries):
            # A copy: entries may be views of a whole file.
            _add(self._parts.setdefault((namespace, domain, self._order), []), entries.copy())

    def finish(self, store: Store, folder: str) -> list[TallyBlock]:
        """Write the file, if there is anything, and give its blocks. ``folder`` is the prefix of its path."""
        if not self._parts:
            return []
        path = f"{folder}-{uuid.uuid4().hex}.tally"
        tallies = [joined_tallies(parts) for parts in self._parts.values()]
        store.put_new(path, b"".join(joined.tobytes() for joined in tallies))
        ends = accumulate(joined.nbytes for joined in tallies)
        return [
            TallyBlock(*key, path, end - joined.nbytes, end, zlib.crc32(joined.data))
            for key, joined, end in zip(self._parts, tallies, ends, strict=True)
        ]


def _add(parts: list[Array], entries: Array) -> None:
    """Add the next tallies to the parts of a place, of which the first are joined ones."""
    parts.append(entries)
    if sum(map(len, parts)) > _HELD * len(parts[0]):
        parts[:] = [joined_tallies(parts)]


def joined_tallies(parts: Sequence[Array]) -> Array:
    """The tally of each selector, sorted by key, of parts that follow each other."""
    every = np.concatenate(parts)
    order, starts = key_order(every["key"])  # parts stay in order
    return joined_entries(every[order], starts)


def read_tallies(store: Store, blocks: Iterable[TallyBlock]) -> dict[tuple[str, str], Array]:
    """The tallies of each namespace and domain over all segments, sorted by key."""
    found: dict[tuple[str, str], list[Array]] = {}
    for place, tallies in _in_order(store, blocks):
        _add(found.setdefault(place, []), tallies)
    return {place: joined_tallies(parts) for place, parts in found.items()}


def _in_order(store: Store, blocks: Iterable[TallyBlock]) -> Iterator[tuple[tuple[str, str], Array]]:
    """The tallies of blocks in the order of segments. Neighbours in a file are read together."""
    groups = [
        list(group)
        for _, group in groupby(
            sorted(blocks, key=lambda block: (block.order, block.path, block.start)),
            key=lambda block: block.path,
        )
    ]

    def read(wanted: list[TallyBlock]) -> list[memoryview]:
        return [*store.get_blocks(wanted[0].path, [(block.start, block.stop, block.crc) for block in wanted])]

    with ThreadPoolExecutor(_READ_AT_ONCE) as threads:
        # So many at once, and not all of them: they are held until they are joined.
        for first in range(0, len(groups), _READ_AT_ONCE):
            some = groups[first : first + _READ_AT_ONCE]
            for wanted, parts in zip(some, threads.map(read, some), strict=True):
                for block, part in zip(wanted, parts, strict=True):
                    yield (block.namespace, block.domain), np.frombuffer(part, ENTRY)
