"""Pages of topics in the order of their names, as DescribeTopicPartitions has them: a budget of partitions, a cursor.

A page ends where its budget is used up: within a topic, or at the end of one, and then the cursor is at the next topic
that is visible. Nothing is remembered between pages: a cursor may name a topic that is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from broker_core.kafka.acls.bindings import TOPIC_OPERATIONS
from broker_core.listing.topic_table import TopicChunk
from broker_core.service import VisibleTopics
from broker_core.wire.kafka import Buffer, Encoded
from broker_core.wire.kafka.topic_fragments import described_family, described_topic, with_operations

__all__ = ["Cursor", "Page", "page"]

_Array = np.ndarray[Any, Any]
#: Partitions of a chunk.
_HEAVY: Final = 50_000


class Cursor(NamedTuple):
    """Where a page begins: at a partition of the first topic whose name is not less; that of another topic, at 0."""

    topic_name: str
    partition_index: int


@dataclass(frozen=True, slots=True)
class Page:
    """Topics as the elements of an array, and where the next page begins; ``None`` after the last one."""

    topics: Encoded
    next: Cursor | None


class _Topics:
    """The topics of a page as they are put together."""

    def __init__(self) -> None:
        self.count = 0
        self.pieces: list[Buffer] = []

    def add(self, count: int, piece: Buffer) -> None:
        if count:
            self.count += count
            self.pieces.append(piece)

    def page(self, following: Cursor | None) -> Page:
        return Page(Encoded(self.count, self.pieces), following)


def page(
    visible: VisibleTopics,
    start: Cursor,
    budget: int,
    node_id: int,
    operations: Callable[[TopicChunk], _Array | None],
) -> Page:
    """The page from ``start`` on with ``budget`` partitions, one at least; ``operations`` are those of the caller."""
    first_chunk, first_row = visible.table.from_name(start.topic_name.encode("utf-8", "replace"))
    topics = _Topics()
    for number in range(first_chunk, len(visible.table.chunks)):
        chunk, mask = visible.table.chunks[number], visible.masks[number]
        low = first_row if number == first_chunk else 0
        # Each topic has a partition: those behind the budget, and one more, are not on the page.
        if mask is None:
            rows = np.arange(low, min(len(chunk), low + budget + 2))
        else:
            rows = low + np.flatnonzero(mask[low:])[: budget + 2]
        if not len(rows):
            continue
        bits = operations(chunk)

        def one(
            row: int, first: int, end: int, chunk: TopicChunk = chunk, bits: _Array | None = bits
        ) -> bytes:
            told = TOPIC_OPERATIONS if bits is None else int(bits[row])
            return described_topic(chunk.row(row), node_id, first, end, told)

        if (
            not topics.count
            and start.partition_index
            and chunk.name(int(rows[0])) == start.topic_name.encode()
        ):
            row, first = int(rows[0]), start.partition_index
            left = max(int(chunk.partitions[row]) - first, 0)
            topics.add(1, one(row, first, first + min(left, budget)))
            if left > budget:
                return topics.page(Cursor(start.topic_name, first + budget))
            budget -= left
            rows = rows[1:]
        ends = np.cumsum(chunk.partitions[rows], dtype=np.int64)
        whole = int(np.searchsorted(ends, budget, side="right"))
        if whole:
            topics.add(whole, _whole(chunk, rows[:whole], node_id, bits))
            budget -= int(ends[whole - 1])
        if whole < len(rows):
            row = int(rows[whole])
            if budget:
                topics.add(1, one(row, 0, budget))
            return topics.page(Cursor(chunk.name(row).decode(), budget))
    return topics.page(None)


def _whole(chunk: TopicChunk, rows: _Array, node_id: int, bits: _Array | None) -> Buffer:
    """Topics with all of their partitions.

    A chunk of so many partitions that pages have a small part of it is not encoded as a whole.
    """
    if chunk.partition_count > _HEAVY:
        told = [TOPIC_OPERATIONS if bits is None else int(bits[row]) for row in rows]
        topics = [chunk.row(int(row)) for row in rows]
        return b"".join(
            described_topic(topic, node_id, 0, topic.partitions, operations)
            for topic, operations in zip(topics, told, strict=True)
        )
    family = described_family(node_id)
    rendered = family.of(chunk)
    if bits is not None:
        rendered = with_operations(rendered, family, bits)
    low, high = int(rows[0]), int(rows[-1]) + 1
    if high - low == len(rows):
        return rendered.piece(low, high)
    mask = np.zeros(len(chunk), bool)
    mask[rows] = True
    return rendered.joined(mask)
