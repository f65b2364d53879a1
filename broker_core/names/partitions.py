"""Partitions: the most that a topic may have, and their names, which end in ``-partition-N`` with a canonical ``N``."""

from __future__ import annotations

import re
from typing import Final

__all__ = [
    "MAX_PARTITIONS",
    "MAX_PARTITION_INDEX",
    "PARTITION_SUFFIX",
    "partition_index",
    "partition_name",
    "partitioned_local_name",
]

#: The most partitions that a topic may have; more would be a mistake that fills the memory of every reader.
MAX_PARTITIONS: Final = 1_000_000
PARTITION_SUFFIX: Final = "-partition-"
MAX_PARTITION_INDEX: Final = 2**31 - 1  # partitions are counted in a Java int
_CANONICAL_INDEX = re.compile(r"0|[1-9][0-9]*", re.ASCII)


def partition_index(local: str) -> int:
    """``N`` of a local name that ends in ``-partition-N``, or -1.

    Only a canonical index counts, as in Java's ``TopicName``: ``x-partition-007``, ``x-partition--1`` and
    ``x-partition-`` are no partitions; neither is a bare ``-partition-3``, which would leave no name.
    """
    base, separator, index = local.rpartition(PARTITION_SUFFIX)
    if (
        separator
        and base
        and len(index) <= 10
        and _CANONICAL_INDEX.fullmatch(index)
        and int(index) <= MAX_PARTITION_INDEX
    ):
        return int(index)
    return -1


def partition_name(topic: str, index: int) -> str:
    """The name of a topic's partition, full or local as the topic's own."""
    return f"{topic}{PARTITION_SUFFIX}{index}"


def partitioned_local_name(local: str) -> str:
    """The local name without its partition suffix, if it has one."""
    return local[: local.rindex(PARTITION_SUFFIX)] if partition_index(local) >= 0 else local
