"""All topics of a namespace as units of a page: their partitions, encoded by kernels a chunk of the table at a time."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from broker_core.listing import TopicChunk
from broker_core.servers.kafka.pages.answer_page import AnswerPage, Key, UnitPlace
from broker_core.service import VisibleTopics
from broker_core.wire.kafka import ZERO_ID, Buffer, Encoded
from broker_core.wire.kafka.topic_fragments import Family, with_operations

__all__ = ["topics_of_page"]

_Array = np.ndarray[Any, Any]
#: The bits of the caller's operations on each topic of a chunk; ``None``: all operations.
_Operations = Callable[[TopicChunk], "_Array | None"]


class _Topics:
    """The topics of a page as they are put together."""

    def __init__(self, family: Family, operations: _Operations, rest: Key) -> None:
        #: The fields of a cursor after the topic and the partition.
        self.rest = rest
        self.family = family
        self.operations = operations
        self.count = 0
        self.pieces: list[Buffer] = []

    def whole(self, chunk: TopicChunk, rows: _Array) -> None:
        """Add topics with all of their partitions. The encoded bytes are not kept: a pass would fill the memory."""
        some = chunk.some(rows)
        bits = None if self.family.operations_end is None else self.operations(some)
        known = chunk.known(self.family.key) if bits is None else None
        if known is None:
            rendered = self.family.layout.render(some)
            rendered = rendered if bits is None else with_operations(rendered, self.family, bits)
            self.pieces.append(bytes(rendered.data))
        else:
            self.pieces.append(bytes(known.rows(rows)))
        self.count += len(rows)

    def part(self, chunk: TopicChunk, row: int, first: int, end: int) -> None:
        """Add a topic with some of its partitions."""
        bits = self.operations(chunk.some(np.array([row])))
        self.count += 1
        self.pieces.append(
            self.family.layout.part(chunk.row(row), first, end, None if bits is None else int(bits[0]))
        )


class _ChunkRun:
    """The partitions of some topics of a chunk, from partition ``first`` of the first one on."""

    stops = True

    def __init__(self, topics: _Topics, chunk: TopicChunk, rows: _Array, first: int) -> None:
        self._topics = topics
        self._chunk = chunk
        self._rows = rows
        self._first = first
        #: The units up to the end of each topic.
        self._ends = np.cumsum(chunk.partitions[rows], dtype=np.int64) - first
        self.size = int(self._ends[-1])

    def take(self, count: int) -> None:
        whole = int(np.searchsorted(self._ends, count, side="right"))
        low = 1 if self._first else 0
        if low:
            self._part(0, self._first, min(self._first + count, int(self._chunk.partitions[self._rows[0]])))
        if whole > low:
            self._topics.whole(self._chunk, self._rows[low:whole])
        rest = count - (int(self._ends[whole - 1]) if whole else 0)
        if rest and whole >= low and whole < len(self._rows):
            self._part(whole, 0, rest)

    def _part(self, number: int, first: int, end: int) -> None:
        self._topics.part(self._chunk, int(self._rows[number]), first, end)

    def place(self, count: int) -> UnitPlace:
        number = int(np.searchsorted(self._ends, count, side="right"))
        before = int(self._ends[number - 1]) if number else -self._first
        topic = self._chunk.row(int(self._rows[number]))
        key = (topic.name.decode(), count - before, *self._topics.rest)
        return UnitPlace(key, uuid.UUID(bytes=topic.topic_id))


def topics_of_page(
    page: AnswerPage, visible: VisibleTopics, family: Family, operations: _Operations
) -> Encoded:
    """The topics of a page as the elements of an array."""
    topics = _Topics(family, operations, page.beginning[2:])
    page.fill(_runs(page, visible, topics))
    page.is_filled = True
    return Encoded(topics.count, topics.pieces)


def _runs(page: AnswerPage, visible: VisibleTopics, topics: _Topics) -> Iterator[_ChunkRun]:
    start = page.start or UnitPlace(page.beginning)
    name = start.key[0].encode("utf-8", "replace")
    first_chunk, first_row = visible.table.from_name(name)
    for number in range(first_chunk, len(visible.table.chunks)):
        chunk, mask = visible.table.chunks[number], visible.masks[number]
        low = first_row if number == first_chunk else 0
        # Each topic has a partition: topics beyond the budget, and one more, are not on the page.
        most = page.limit + 2
        shown = np.arange(len(chunk) - low) if mask is None else np.flatnonzero(mask[low:])
        rows = low + shown[:most]
        first = 0
        if number == first_chunk and len(rows) and chunk.name(int(rows[0])) == name:
            first = _first_of(start, chunk, int(rows[0]))
            if first >= int(chunk.partitions[rows[0]]):
                if page.as_kafka:
                    topics.part(chunk, int(rows[0]), first, first)
                rows, first = rows[1:], 0
        if len(rows):
            yield _ChunkRun(topics, chunk, rows, first)


def _first_of(start: UnitPlace, chunk: TopicChunk, row: int) -> int:
    """The partition that the first topic begins with: 0 if it was recreated since the page before."""
    first: int = start.key[1]
    if start.topic_id == ZERO_ID or chunk.row(row).topic_id in (ZERO_ID.bytes, start.topic_id.bytes):
        return first
    return 0
