"""The names that a topic is listed by: its plain name, some of its partitions, or both.

A catalogue holds one row per topic, and this is that row's compact form of the names it stands for: ``*`` is the plain
name, numbers and ranges are partitions. ``*,0-2,10`` of ``orders`` lists ``orders``, ``orders-partition-0`` to ``-2``
and ``orders-partition-10``, as a broker may: partitions are listed one by one, with gaps where some were never
created, and the name of a partitioned topic itself is not listed.

docs/reference/pulsar-behaviour.md#what-a-broker-lists
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from broker_core.names.partitions import partition_name

__all__ = ["NOTHING", "PLAIN", "ListedNames", "count_listed", "merge_listed"]


@dataclass(frozen=True, slots=True)
class ListedNames:
    """The plain name and ranges of partition indices ``(first, last)``: inclusive, ascending, not adjacent."""

    plain: bool
    ranges: tuple[tuple[int, int], ...] = ()

    @classmethod
    def of(cls, index: int) -> ListedNames:
        """One name: a partition's index, or -1 for the plain name."""
        return PLAIN if index < 0 else cls(plain=False, ranges=((index, index),))

    @classmethod
    def partitioned(cls, count: int) -> ListedNames:
        """The partitions 0 to ``count - 1``; a topic of 0 partitions is a plain one, as in Pulsar."""
        return _first(count) if count > 0 else PLAIN

    @classmethod
    def of_indices(cls, indices: Iterable[int]) -> ListedNames:
        """Partitions by their indices, in any order."""
        ranges: list[tuple[int, int]] = []
        for index in sorted(set(indices)):
            if ranges and index == ranges[-1][1] + 1:
                ranges[-1] = (ranges[-1][0], index)
            else:
                ranges.append((index, index))
        return cls(plain=False, ranges=tuple(ranges))

    @classmethod
    def parse(cls, text: str) -> ListedNames:
        """The reverse of ``str()``."""
        return _parse(text)

    def __str__(self) -> str:
        if not self.plain and len(self.ranges) == 1:  # the usual case
            ((first, last),) = self.ranges
            return str(first) if first == last else f"{first}-{last}"
        parts = ["*"] if self.plain else []
        parts += [str(first) if first == last else f"{first}-{last}" for first, last in self.ranges]
        return ",".join(parts)

    def __bool__(self) -> bool:
        return self.plain or bool(self.ranges)

    def __len__(self) -> int:
        return int(self.plain) + sum(last - first + 1 for first, last in self.ranges)

    def __contains__(self, index: object) -> bool:
        """Whether a partition's index is listed; -1 stands for the plain name."""
        if not isinstance(index, int):
            return False
        return self.plain if index < 0 else any(first <= index <= last for first, last in self.ranges)

    def __or__(self, other: ListedNames) -> ListedNames:
        return ListedNames(self.plain or other.plain, _joined([*self.ranges, *other.ranges]))

    def without(self, other: ListedNames) -> ListedNames:
        """The names that are listed here and not in ``other``."""
        ranges = list(self.ranges)
        for low, high in other.ranges:
            cut: list[tuple[int, int]] = []
            for first, last in ranges:
                if last < low or first > high:
                    cut.append((first, last))
                    continue
                if first < low:
                    cut.append((first, low - 1))
                if last > high:
                    cut.append((high + 1, last))
            ranges = cut
        return ListedNames(self.plain and not other.plain, tuple(ranges))

    @property
    def partitions(self) -> int:
        """The number of partitions that clients get: the highest index and one, or 0 without any."""
        return self.ranges[-1][1] + 1 if self.ranges else 0

    def indices(self) -> Iterator[int]:
        """The indices of the listed partitions, ascending."""
        for first, last in self.ranges:
            yield from range(first, last + 1)

    def names(self, base: str) -> Iterator[str]:
        """The names that are listed, made from the topic's own (full or local)."""
        if self.plain:
            yield base
        for index in self.indices():
            yield partition_name(base, index)


PLAIN = ListedNames(plain=True)
NOTHING = ListedNames(plain=False)


def count_listed(text: str) -> int:
    """Number of names that a compact form lists; a function of SQL."""
    return len(_parse(text))


def merge_listed(one: str, other: str) -> str:
    """The union of two compact forms, as a compact form; a function of the SQL of imports."""
    if one == other or not other:
        return one
    return str(_parse(one) | _parse(other)) if one else other


def _joined(ranges: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    if len(ranges) < 2:
        return tuple(ranges)
    ranges.sort()
    joined = [ranges[0]]
    for first, last in ranges[1:]:
        if first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined)


@lru_cache(maxsize=1024)
def _first(count: int) -> ListedNames:
    """The first ``count`` partitions (at least 1), cached: topics that are made together mostly have one number."""
    return ListedNames(plain=False, ranges=((0, count - 1),))


@lru_cache(maxsize=1024)
def _parse(text: str) -> ListedNames:
    plain = False
    ranges: list[tuple[int, int]] = []
    for part in text.split(",") if text else ():
        if part == "*":
            plain = True
            continue
        first, _, last = part.partition("-")
        ranges.append((int(first), int(last or first)))
    return ListedNames(plain, tuple(ranges))
