"""Tallies: how many names of neighbouring segments a selector picks, and their hash, in files of the staging folder.

A tally is an entry of postings, without words. A task has one a selector for all of its neighbouring segments, because
counts, hashes and lengths of parts can be joined. The driver reads the files in order and keeps one tally a selector,
so its memory grows with the questions and not with questions times segments.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import Final

import numpy as np

from broker_core_spark.arrow_columns import Array
from broker_core_spark.format import ENTRY, joined_entries, key_order
from broker_core_spark.store import Store

__all__ = ["TallyBlock", "TallyWriter", "joined_tallies", "read_tallies"]

#: Entries that are held before they are joined.
_HELD: Final = 1_000_000
#: Files that are read together.
_READ_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class TallyBlock:
    """Bytes ``start`` to ``stop`` of a file: the tallies of one namespace and domain, sorted by key.

    ``order`` is the key in front of the neighbouring segments that they are of
    (:mod:`~broker_core_spark.batch.staging.order_keys`).
    """

    namespace: str
    domain: str
    order: bytes
    path: str
    start: int
    stop: int


class _Joining:
    """Joins the tallies of each namespace and domain, which come in the order of segments, now and then."""

    def __init__(self) -> None:
        self._parts: dict[tuple[str, str], list[Array]] = {}
        self._held = 0

    def add(self, place: tuple[str, str], entries: Array) -> None:
        """Add the next tallies of a place."""
        self._parts.setdefault(place, []).append(entries)
        self._held += len(entries)
        if self._held > _HELD:
            self._parts = {known: [tallies] for known, tallies in self.joined().items()}
            # Joined ones are not counted, or many selectors would be joined over and over.
            self._held = 0

    def joined(self) -> dict[tuple[str, str], Array]:
        """All tallies of each place, sorted by key."""
        return {place: joined_tallies(parts) for place, parts in self._parts.items()}


class TallyWriter:
    """Collects the tallies of segments, which come in order."""

    def __init__(self) -> None:
        self._order = b""
        self._open = _Joining()
        self._blocks: list[tuple[tuple[str, str], bytes, Array]] = []

    def begin(self, order: bytes) -> None:
        """Begin neighbouring segments, of which no key is less than ``order``."""
        self._close()
        self._order = order

    def add(self, namespace: str, domain: str, entries: Array) -> None:
        """Add the entries of the next run."""
        if len(entries):
            # A copy: entries may be views of a whole file.
            self._open.add((namespace, domain), entries.copy())

    def finish(self, store: Store, folder: str) -> list[TallyBlock]:
        """Write the file, if there is anything, and give its blocks. ``folder`` is the prefix of its path."""
        self._close()
        if not self._blocks:
            return []
        path = f"{folder}-{uuid.uuid4().hex}.tally"
        store.put_new(path, b"".join(tallies.tobytes() for _, _, tallies in self._blocks))
        blocks: list[TallyBlock] = []
        at = 0
        for place, order, tallies in self._blocks:
            blocks.append(TallyBlock(*place, order, path, at, at + tallies.nbytes))
            at += tallies.nbytes
        return blocks

    def _close(self) -> None:
        self._blocks += [(place, self._order, tallies) for place, tallies in self._open.joined().items()]
        self._open = _Joining()


def joined_tallies(parts: Sequence[Array]) -> Array:
    """One tally a selector, sorted by key, of parts that follow each other."""
    every = np.concatenate([np.empty(0, ENTRY), *parts])
    order, starts = key_order(every["key"])  # parts stay in order
    return joined_entries(every[order], starts)


def read_tallies(store: Store, blocks: Iterable[TallyBlock]) -> dict[tuple[str, str], Array]:
    """The tallies of each namespace and domain over all segments, sorted by key."""
    found = _Joining()
    for place, tallies in _in_order(store, blocks):
        found.add(place, tallies)
    return found.joined()


def _in_order(store: Store, blocks: Iterable[TallyBlock]) -> Iterator[tuple[tuple[str, str], Array]]:
    """The tallies of blocks in the order of segments. Neighbours in a file are read together."""
    ordered = sorted(blocks, key=lambda block: (block.order, block.path, block.start))
    groups = [list(group) for _, group in groupby(ordered, key=lambda block: block.path)]

    def read(wanted: list[TallyBlock]) -> memoryview:
        stop = max(block.stop for block in wanted)
        return memoryview(store.get_range(wanted[0].path, wanted[0].start, stop))

    with ThreadPoolExecutor(_READ_AT_ONCE) as threads:
        # So many at once, and not all of them: they are held until they are joined.
        for first in range(0, len(groups), _READ_AT_ONCE):
            some = groups[first : first + _READ_AT_ONCE]
            for wanted, data in zip(some, threads.map(read, some), strict=True):
                for block in wanted:
                    part = data[block.start - wanted[0].start : block.stop - wanted[0].start]
                    yield (block.namespace, block.domain), np.frombuffer(part, ENTRY)
