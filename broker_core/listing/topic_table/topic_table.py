"""The topics of a namespace by name, each with the number of its partitions; immutable, and shared by requests."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from broker_core.listing.topic_table.topic_chunk import TopicChunk
from broker_core.listing.topic_table.topic_table_changes import (
    TableChange,
    changed_chunks,
    chunks_of,
    differences,
)
from broker_core.names import sorted_rows

__all__ = ["Place", "TopicTable"]

_Array = np.ndarray[Any, Any]
Shown: TypeAlias = Callable[[pa.LargeBinaryArray], "_Array | None"]


class Place(NamedTuple):
    """The number of a chunk and of a row in it; the number after the last chunk is the end."""

    chunk: int
    row: int


class TopicTable:
    """A table of topics. ``shown`` selects the names that it has (``None``: all); ``left_out`` counts the others."""

    __slots__ = ("__weakref__", "_firsts", "_shown", "chunks", "left_out", "size")

    def __init__(self, chunks: Sequence[TopicChunk], left_out: int = 0, shown: Shown | None = None) -> None:
        self.chunks = tuple(chunks)
        self.left_out = left_out
        self._shown = shown
        self.size = sum(map(len, self.chunks))
        self._firsts = [chunk.name(0) for chunk in self.chunks]

    @classmethod
    def of_columns(
        cls,
        names: pa.LargeBinaryArray,
        partitions: _Array,
        ids: pa.LargeBinaryArray | None,
        shown: Shown | None = None,
        placements: pa.LargeBinaryArray | None = None,
    ) -> TopicTable:
        """A table of local names in any order, each once, and their numbers of partitions (int32, 0 for none)."""
        kept = None if shown is None else shown(names)
        if kept is not None:
            mask = pa.array(kept)
            names, partitions = names.filter(mask), partitions[kept]
            ids = None if ids is None else ids.filter(mask)
            placements = None if placements is None else placements.filter(mask)
        order = sorted_rows(names)
        if len(order) and (order[1:] < order[:-1]).any():
            rows = pa.array(order)
            names, partitions = names.take(rows), partitions[order]
            ids = None if ids is None else ids.take(rows)
            placements = None if placements is None else placements.take(rows)
        left_out = 0 if kept is None else int(len(kept) - kept.sum())
        made = chunks_of(names, np.maximum(partitions, 1).astype(np.int32), ids, placements)
        return cls(made, left_out, shown)

    @property
    def nbytes(self) -> int:
        """Bytes of all chunks, and of their cached encodings."""
        return sum(chunk.nbytes for chunk in self.chunks)

    def moved(self, changes: Iterable[TableChange]) -> TopicTable:
        """The table after changes, oldest first: unchanged chunks are shared, with their cached encodings."""
        made = list(changes)
        left_out, kept = self.left_out, None
        if self._shown is not None:
            kept = self._shown(pa.array([change.name for change in made], pa.large_binary()))
        if kept is not None:
            left_out += sum(
                (change.partitions is not None) - change.existed
                for change, is_kept in zip(made, kept, strict=True)
                if not is_kept
            )
            made = [change for change, is_kept in zip(made, kept, strict=True) if is_kept]
        return TopicTable(changed_chunks(self.chunks, made), left_out, self._shown)

    def joined(self) -> TopicChunk | None:
        """All topics as one chunk; ``None`` if there are none."""
        return reduce(TopicChunk.joined, self.chunks) if self.chunks else None

    def sharing(self, other: TopicTable) -> TopicTable:
        """This table with the chunks of an earlier one, and their cached encodings, as far as topics are the same."""
        changes = differences(other.joined(), self.joined())
        if changes is None:
            return self
        return TopicTable(changed_chunks(other.chunks, changes), self.left_out, self._shown)

    def from_name(self, name: bytes) -> Place:
        """The place of the first topic whose name is not less."""
        number = max(bisect_right(self._firsts, name) - 1, 0)
        if number == len(self.chunks):
            return Place(0, 0)
        row = self.chunks[number].place(name)
        return Place(number + 1, 0) if row == len(self.chunks[number]) else Place(number, row)
