"""The names of one topic in a listing (its own name and its partitions), found by binary search."""

from __future__ import annotations

from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from broker_core.listing.listing import Selection, data_of, part_of
from broker_core.listing.name_search import NameSearch
from broker_core.listing.page import NO_PARTITION
from broker_core.names.partition_columns import split_partitions
from broker_core.names.partition_suffix import PARTITION_SUFFIX, partition_index, partitioned_local_name

__all__ = ["count_partitions", "partitions_of", "topic_names"]

_FIRST: Final = f"{PARTITION_SUFFIX}0".encode()
#: Sorts after all partitions of a topic: the character after the digits.
_BEHIND: Final = f"{PARTITION_SUFFIX}:".encode()
_FEW: Final = 64


def topic_names(selection: Selection, topic: str) -> pa.LargeStringArray:
    """The full names that ``topic`` (a full name) is listed by: itself, and its partitions; possibly none."""
    names = _candidates(selection, topic)
    bases, _ = split_partitions(names)
    # ``topic`` may be a partition itself, and is then listed by its own name.
    own = pc.or_(pc.equal(bases, topic), pc.equal(names, topic))
    return names.filter(own)


def count_partitions(selection: Selection, topic: str) -> int | None:
    """How many partitions a topic has by its names: the highest index and one; ``None`` without names."""
    names = _candidates(selection, topic)
    if len(names) > _FEW:
        return partitions_of(topic_names(selection, topic), topic)
    # With few names, a column costs more than reading each.
    start = topic.rindex("/") + 1
    local = topic[start:]
    numbers = [
        NO_PARTITION if name == topic else partition_index(name[start:])
        for name in names.to_pylist()
        if name == topic or partitioned_local_name(name[start:]) == local
    ]
    return max(numbers) + 1 if numbers else None


def _candidates(selection: Selection, topic: str) -> pa.LargeStringArray:
    """The names of topic ``x``, and a few others, such as ``x-partition-01`` and ``x-partition-1-partition-2``.

    In the order of the hash, the partitions of a topic are between two names that a search finds.
    """
    search = NameSearch(data_of(selection.listing), part_of(selection))
    name = topic.encode()
    plain = search.find(name)
    names = selection.range(search.find(name + _FIRST), search.find(name + _BEHIND)).names
    if plain < len(search) and search.name(plain) == name:
        names = pa.concat_arrays([selection.range(plain, plain + 1).names, names])
    return names


def partitions_of(names: pa.LargeStringArray, topic: str) -> int | None:
    """How many partitions a topic has by the names that it is listed by; ``None`` without names."""
    if not len(names):
        return None
    bases, numbers = split_partitions(names)
    if numbers is None:
        return 0
    own = numbers[pc.equal(bases, topic).to_numpy(zero_copy_only=False)]
    return int(own.max()) + 1 if len(own) else 0
