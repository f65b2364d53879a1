"""The topics of a namespace by name, as Kafka clients are shown them; immutable, and shared by all that ask."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from broker_core.kafka.topic_names import legal_names
from broker_core.listing.topic_table.topic_chunk import TopicChunk, TopicRow
from broker_core.listing.topic_table.topic_table_changes import TopicChange, changed_chunks, chunks_of
from broker_core.names.column_sort import sorted_rows

__all__ = ["Place", "TopicTable"]

_Array = np.ndarray[Any, Any]


class Place(NamedTuple):
    """A row of a chunk, both by their number; a chunk behind the last one is the end."""

    chunk: int
    row: int


class TopicTable:
    """``left_out`` counts the topics whose names Kafka cannot have, and which are not in the chunks."""

    __slots__ = ("__weakref__", "_firsts", "chunks", "left_out", "size")

    def __init__(self, chunks: Sequence[TopicChunk], left_out: int = 0) -> None:
        self.chunks = tuple(chunks)
        self.left_out = left_out
        self.size = sum(map(len, self.chunks))
        self._firsts = [chunk.name(0) for chunk in self.chunks]

    @classmethod
    def of_columns(
        cls, names: pa.LargeBinaryArray, partitions: _Array, ids: pa.LargeBinaryArray | None
    ) -> TopicTable:
        """Of local names in any order, each once, and of numbers of partitions (int32), 0 for a topic without."""
        legal = legal_names(names)
        if legal is not None:
            shown = pa.array(legal)
            names, partitions = names.filter(shown), partitions[legal]
            ids = None if ids is None else ids.filter(shown)
        order = sorted_rows(names)
        if len(order) and (order[1:] < order[:-1]).any():
            rows = pa.array(order)
            names, partitions = names.take(rows), partitions[order]
            ids = None if ids is None else ids.take(rows)
        left_out = 0 if legal is None else int(len(legal) - legal.sum())
        return cls(chunks_of(names, np.maximum(partitions, 1).astype(np.int32), ids), left_out)

    @property
    def nbytes(self) -> int:
        """Bytes of all chunks, and of all that was rendered of them."""
        return sum(chunk.nbytes for chunk in self.chunks)

    def moved(self, changes: Iterable[TopicChange]) -> TopicTable:
        """The table after these changes, oldest first: chunks without a change are shared, with what is rendered."""
        shown = list(changes)
        left_out = self.left_out
        legal = legal_names(pa.array([change.name for change in shown], pa.large_binary()))
        if legal is not None:
            left_out += sum(
                (change.partitions is not None) - change.existed
                for change, is_legal in zip(shown, legal, strict=True)
                if not is_legal
            )
            shown = [change for change, is_legal in zip(shown, legal, strict=True) if is_legal]
        return TopicTable(changed_chunks(self.chunks, shown), left_out)

    def row(self, name: bytes) -> TopicRow | None:
        """The topic of this name; a binary search."""
        number, row = self.from_name(name)
        if number == len(self.chunks):
            return None
        found = self.chunks[number].row(row)
        return found if found.name == name else None

    def from_name(self, name: bytes) -> Place:
        """Where the first topic is whose name is not less."""
        number = max(bisect_right(self._firsts, name) - 1, 0)
        if number == len(self.chunks):
            return Place(0, 0)
        row = self.chunks[number].place(name)
        return Place(number + 1, 0) if row == len(self.chunks[number]) else Place(number, row)
