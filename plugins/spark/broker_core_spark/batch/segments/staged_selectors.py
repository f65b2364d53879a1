"""The selectors of a build as a file of the staging folder: a task reads only those of its namespaces and group.

For each namespace and domain the file has the keys of its selectors (16 bytes each, sorted), the offsets of their lines
(u64, one more than keys), and their lines, which are canonical JSON.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from broker_core_spark.format import NOTHING_ASKED, NameSelector, SegmentEntry, SelectorKeys, split_keys
from broker_core_spark.store import Store

__all__ = ["AskedOfPlace", "KeptSelectors", "StagedSelectors", "stage_selectors"]

_Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class AskedOfPlace:
    """The selectors of a group, with their keys, and ``every`` key of the namespace and domain."""

    selectors: tuple[tuple[bytes, NameSelector], ...]
    every: SelectorKeys


@dataclass(frozen=True, slots=True)
class StagedSelectors:
    """The places of the selectors of each (namespace, domain): the first byte, their number, and the last byte."""

    path: str
    places: Mapping[_Place, tuple[int, int, int]]

    def read(self, store: Store, place: _Place, group: int = 0, groups: int = 1) -> AskedOfPlace:
        """The selectors of one of ``groups`` groups by ranges of their keys, of equal width."""
        if place not in self.places:
            return AskedOfPlace((), NOTHING_ASKED)
        start, count, _ = self.places[place]
        heads = store.get_range(self.path, start, start + 16 * count + 8 * (count + 1))
        keys = split_keys(heads[: 16 * count])
        every = SelectorKeys.of(keys)
        offsets = np.frombuffer(heads, "<u8", offset=16 * count).tolist()
        low = bisect_left(keys, _first_key(group, groups))
        high = count if group + 1 == groups else bisect_left(keys, _first_key(group + 1, groups))
        if low == high:
            return AskedOfPlace((), every)
        at = start + len(heads)
        lines = store.get_range(self.path, at + offsets[low], at + offsets[high])
        return AskedOfPlace(
            tuple(
                (
                    keys[number],
                    _selector(lines[offsets[number] - offsets[low] : offsets[number + 1] - offsets[low]]),
                )
                for number in range(low, high)
            ),
            every,
        )

    def keys(self, store: Store, place: _Place) -> SelectorKeys:
        """The keys of all selectors of a namespace and domain."""
        if place not in self.places:
            return NOTHING_ASKED
        start, count, _ = self.places[place]
        return SelectorKeys.of(split_keys(store.get_range(self.path, start, start + 16 * count)))

    def of(self, places: Sequence[_Place]) -> StagedSelectors:
        """The selectors of some places, as they are sent to a task."""
        return StagedSelectors(
            self.path, {place: self.places[place] for place in places if place in self.places}
        )


class KeptSelectors:
    """The selectors of each (namespace, domain): those of the last generation, of the new one, and the added ones.

    ``added`` are matched with all names: the ones that only the new generation has, and perhaps others with properties.
    """

    def __init__(
        self, store: Store, before: StagedSelectors, now: StagedSelectors, added: StagedSelectors
    ) -> None:
        self._store = store
        self._now, self._added = now, added
        self.before: Mapping[_Place, SelectorKeys] = {
            place: before.keys(store, place) for place in before.places
        }
        self.now: Mapping[_Place, SelectorKeys] = {place: now.keys(store, place) for place in now.places}
        self._read: dict[tuple[bool, _Place], tuple[tuple[bytes, NameSelector], ...]] = {}

    def changed(self, entry: SegmentEntry) -> bool:
        """Whether the postings of a segment are other ones, even if its names are not."""
        places = {(namespace, domain) for namespace, domain, _ in entry.runs}
        return any(
            place in self._added.places
            or self.before.get(place, NOTHING_ASKED) != self.now.get(place, NOTHING_ASKED)
            for place in places
        )

    def added(self, place: _Place) -> Sequence[tuple[bytes, NameSelector]]:
        """The selectors that are matched with all names, with their keys."""
        return self._selectors(self._added, place)

    def carried(self, place: _Place) -> Sequence[tuple[bytes, NameSelector]]:
        """The other selectors of now: matched with the names that came."""
        added = {key for key, _ in self.added(place)}
        return [item for item in self._selectors(self._now, place) if item[0] not in added]

    def _selectors(self, staged: StagedSelectors, place: _Place) -> tuple[tuple[bytes, NameSelector], ...]:
        known = (staged is self._added, place)
        if known not in self._read:
            self._read[known] = staged.read(self._store, place).selectors
        return self._read[known]


def stage_selectors(
    store: Store, path: str, required: Mapping[_Place, Sequence[NameSelector]]
) -> StagedSelectors:
    """Write the selectors of each (namespace, domain), which are sorted by key."""
    places: dict[_Place, tuple[int, int, int]] = {}
    parts: list[bytes] = []
    at = 0
    for place, selectors in required.items():
        lines = [selector.line for selector in selectors]
        offsets = np.cumsum([0, *map(len, lines)]).astype("<u8")
        block = b"".join([*(selector.key for selector in selectors), offsets.tobytes(), *lines])
        parts.append(block)
        places[place] = (at, len(selectors), at + len(block))
        at += len(block)
    store.put_new(path, b"".join(parts))
    return StagedSelectors(path, places)


def _first_key(group: int, groups: int) -> bytes:
    return (group * 2**128 // groups).to_bytes(16, "big")


def _selector(line: bytes) -> NameSelector:
    record = json.loads(line)
    return NameSelector(record["pattern"], tuple(sorted(record["properties"].items())))
