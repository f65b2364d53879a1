"""Pages of a listing: consecutive names from one position on, and the position of the next page.

Pages have an order of their own: the topic's name without partition suffix by UTF-16 code units (as Java compares
strings, and as the topics hash does), then the number of the partition. It is neither the order of the hash, which
compares full names (``x-partition-10`` is before ``x-partition-2`` there), nor that of UTF-8 bytes, which puts
characters beyond the BMP after U+E000 to U+FFFF. All of ``non-persistent://`` is before all of ``persistent://``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import total_ordering
from typing import Final, Self

from broker_core.immutable import seal_value
from broker_core.names import MAX_PARTITION_INDEX, TopicName, partition_name, partitioned_local_name

__all__ = ["NO_PARTITION", "Page", "Position"]

#: The partition number of a name that is not a partition.
NO_PARTITION: Final = -1


@total_ordering
@dataclass(frozen=True, slots=True, init=False)
class Position:
    """A position between names: just before the name that it holds. The topic need not exist.

    ``base`` is the topic's full name without partition suffix (``persistent://tenant/namespace/topic``), ``partition``
    the number of one of its partitions, or -1 for the plain name. Positions compare as names do in pages. Raises
    :exc:`~broker_core.errors.InvalidName` for an invalid name, :exc:`TypeError` or :exc:`ValueError` for the rest.
    """

    base: str
    partition: int = NO_PARTITION

    def __new__(cls, base: str, partition: int = NO_PARTITION) -> Self:
        if not isinstance(base, str):
            raise TypeError(f"base must be a topic's full name, not {type(base).__name__}")
        if not isinstance(partition, int) or isinstance(partition, bool):
            raise TypeError(f"partition must be a whole number, not {type(partition).__name__}")
        # The plain values of subclasses of str and int, whose methods could change their answers.
        base, partition = str.__str__(base), int.__index__(partition)
        if not NO_PARTITION <= partition <= MAX_PARTITION_INDEX:
            raise ValueError(f"partition must be -1 (none) to {MAX_PARTITION_INDEX}, not {partition}")
        TopicName.parse(base)
        position = object.__new__(cls)
        _put_base(position, base)
        _put_partition(position, partition)
        return position

    @classmethod
    def of(cls, name: str) -> Position:
        """The position of a full name, as it is listed."""
        topic = TopicName.parse(name)
        base = TopicName(topic.domain, topic.namespace, partitioned_local_name(topic.local))
        return cls(str(base), topic.partition)

    @property
    def name(self) -> str:
        """The full name at this position, if it is listed."""
        return self.base if self.partition < 0 else partition_name(self.base, self.partition)

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Position):
            return NotImplemented
        if self.base == other.base:
            return self.partition < other.partition
        return self.base.encode("utf-16-be") < other.base.encode("utf-16-be")


_put_base, _put_partition = seal_value(Position)


@dataclass(frozen=True, slots=True, init=False)
class Page:
    """The requested part of a listing: at most ``limit`` names, from ``start`` (inclusive; ``None``: the first) on.

    Names are counted, so each partition is one: a topic's partitions may be spread over several pages.
    """

    start: Position | None = None
    limit: int = 1000

    def __new__(cls, start: Position | None = None, limit: int = 1000) -> Self:
        if start is not None and type(start) is not Position:
            raise TypeError(f"start must be a broker_core.Position or None, not {type(start).__name__}")
        if not isinstance(limit, int) or isinstance(limit, bool):
            raise TypeError(f"limit must be a whole number, not {type(limit).__name__}")
        limit = int.__index__(limit)
        if limit < 1:
            raise ValueError(f"limit must be at least 1, not {limit}")
        page = object.__new__(cls)
        _put_start(page, start)
        _put_limit(page, limit)
        return page


_put_start, _put_limit = seal_value(Page)
