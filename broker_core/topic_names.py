"""The names that one topic is listed by, found in a listing without looking at the others."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.names import PARTITION_SUFFIX
from broker_core.partition_columns import split_partitions
from broker_core.selection import Selection

__all__ = ["partitions_of", "topic_names"]

#: Behind the digits in any order of names.
_BEHIND = chr(ord("9") + 1)


def topic_names(selection: Selection, topic: str) -> pa.LargeStringArray:
    """The full names that ``topic`` (a full name) is listed by: itself, and its partitions; possibly none.

    In the order of the hash, the partitions of a topic are between two names that can be searched for.
    """
    (plain, low, high), (is_plain, _, _) = selection.listing.locate(
        [topic, f"{topic}{PARTITION_SUFFIX}0", f"{topic}{PARTITION_SUFFIX}{_BEHIND}"]
    )
    rows = np.arange(low, high)
    if is_plain:
        rows = np.insert(rows, 0, plain)
    if not selection.is_whole:
        rows = rows[np.isin(rows, selection.row_array)]
    names = selection.listing.rows(rows).names
    bases, _ = split_partitions(names)
    # Others are among them: x-partition-01 is a topic of its own, x-partition-1-partition-2 one of x-partition-1. What
    # is asked for may be a partition itself, and then has its name.
    own = pc.or_(pc.equal(bases, topic), pc.equal(names, topic))
    return names.filter(own)


def partitions_of(names: pa.LargeStringArray, topic: str) -> int | None:
    """How many partitions a topic has by its listed names: the highest index and one; ``None`` where there are none."""
    if not len(names):
        return None
    bases, numbers = split_partitions(names)
    if numbers is None:
        return 0
    own = numbers[pc.equal(bases, topic).to_numpy(zero_copy_only=False)]
    return int(own.max()) + 1 if len(own) else 0
