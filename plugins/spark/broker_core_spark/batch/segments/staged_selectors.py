"""The selectors of a build as a file of the staging folder: a task reads only those of its namespaces and group.

For each namespace and domain the file has the lines of its selectors, which are canonical JSON, in the order of their
keys.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import accumulate, pairwise
from typing import Final

from broker_core_spark.batch.staging.order_keys import end_of_namespace, first_of_namespace
from broker_core_spark.format import NO_SELECTORS, NameSelector, SegmentEntry, SelectorKeys, line_key
from broker_core_spark.store import Store

__all__ = ["KeptSelectors", "KeyedSelectors", "StagedSelectors", "stage_selectors"]

#: Bytes of one request for the selectors of small namespaces.
_AHEAD: Final = 256 * 1024
_Place = tuple[str, str]
#: Selectors with their keys, in order.
KeyedSelectors = Sequence[tuple[bytes, NameSelector]]


@dataclass(frozen=True, slots=True)
class StagedSelectors:
    """The places of the selectors of each (namespace, domain), in order: the first and the last byte."""

    path: str
    places: Mapping[_Place, tuple[int, int]]

    def read(
        self, store: Store, place: _Place, group: int = 0, groups: int = 1
    ) -> tuple[KeyedSelectors, SelectorKeys]:
        """The selectors of one of ``groups`` groups by ranges of their keys, of equal width, and the keys of all."""
        if place not in self.places:
            return [], NO_SELECTORS
        data = store.get_range(self.path, *self.places[place])
        lines = [(line_key(line), line) for line in data.splitlines()]
        own = [(key, _selector(line)) for key, line in lines if int.from_bytes(key) * groups >> 128 == group]
        return own, SelectorKeys.of(key for key, _ in lines)

    def keys(self, store: Store) -> dict[_Place, SelectorKeys]:
        """The keys of all selectors of each namespace and domain. Neighbours are read by one request."""
        found: dict[_Place, SelectorKeys] = {}
        begin, data = 0, b""
        last = max((high for _, high in self.places.values()), default=0)
        for place, (low, high) in self.places.items():
            if not begin <= low <= high <= begin + len(data):
                begin, data = low, store.get_range(self.path, low, max(high, min(low + _AHEAD, last)))
            found[place] = SelectorKeys.of(map(line_key, data[low - begin : high - begin].splitlines()))
        return found

    def of(self, places: Iterable[_Place]) -> StagedSelectors:
        """The selectors of some places, as they are sent to a task."""
        return StagedSelectors(
            self.path, {place: self.places[place] for place in places if place in self.places}
        )

    def between(self, low: bytes, high: bytes) -> StagedSelectors:
        """The selectors of the namespaces that keys from ``low`` to ``high`` (empty: no end) may have."""
        ordered = list(self.places)
        first = bisect_left(ordered, low, key=lambda place: end_of_namespace(place[0]))
        last = bisect_left(ordered, high, key=lambda place: first_of_namespace(place[0]))
        return self.of(ordered[first : last if high else None])


class KeptSelectors:
    """The selectors of each (namespace, domain): those of the last generation, of the new one, and the added ones.

    ``added`` are matched with all names: the ones that only the new generation has, and perhaps others with properties.
    """

    def __init__(
        self, store: Store, before: StagedSelectors, now: StagedSelectors, added: StagedSelectors
    ) -> None:
        self._added = added
        self.before: Mapping[_Place, SelectorKeys] = before.keys(store)
        self.now = self.before if now == before else now.keys(store)
        self._of_added = cache(partial(added.read, store))
        self._of_now = cache(partial(now.read, store))

    def changed(self, entry: SegmentEntry) -> bool:
        """Whether the selectors of a segment changed, and so its postings even if its names did not."""
        places = {(namespace, domain) for namespace, domain, _ in entry.runs}
        return any(
            place in self._added.places
            or self.before.get(place, NO_SELECTORS) != self.now.get(place, NO_SELECTORS)
            for place in places
        )

    def added(self, place: _Place) -> KeyedSelectors:
        """The selectors that are matched with all names."""
        return self._of_added(place)[0]

    def carried(self, place: _Place) -> KeyedSelectors:
        """The other selectors of the new generation, which are matched with new names alone."""
        added = {key for key, _ in self.added(place)}
        return [item for item in self._of_now(place)[0] if item[0] not in added]


def stage_selectors(
    store: Store, path: str, required: Mapping[_Place, Sequence[NameSelector]]
) -> StagedSelectors:
    """Write the selectors of each (namespace, domain), which are sorted by key."""
    blocks = {
        place: b"".join(selector.line + b"\n" for selector in required[place]) for place in sorted(required)
    }
    edges = accumulate(map(len, blocks.values()), initial=0)
    store.put_new(path, b"".join(blocks.values()))
    return StagedSelectors(path, dict(zip(blocks, pairwise(edges), strict=True)))


def _selector(line: bytes) -> NameSelector:
    record = json.loads(line)
    return NameSelector(record["pattern"], tuple(sorted(record["properties"].items())))
