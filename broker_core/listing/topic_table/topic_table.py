"""The topics of a namespace by name, each with the number of its partitions; immutable, and shared by requests.

After some changes unchanged chunks are shared, and none grows too large.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.listing.topic_table.topic_chunk import NO_ID, TopicChunk
from broker_core.names import Array, sorted_rows

__all__ = ["MOST", "Place", "TableChange", "TopicTable", "changed_chunks", "chunks_of", "differences"]


#: The most topics of a chunk, and the number below which it is joined with the next.
MOST: Final = 4096
_LEAST: Final = MOST // 8
#: So many names are searched without making Python objects of a whole chunk.
_FEW: Final = 4
#: So many topics, and one in so many of all besides, may differ for chunks to be shared.
_SHARED: Final = 50
_SHARED_PART: Final = 8


class TableChange(NamedTuple):
    """A topic as it is after a change; ``partitions`` is ``None`` if it is gone. It may have ``existed`` before."""

    name: bytes
    partitions: int | None
    topic_id: bytes
    existed: bool
    placement: bytes | None = None


def chunks_of(
    names: pa.LargeBinaryArray,
    partitions: Array,
    ids: pa.LargeBinaryArray | None,
    placements: pa.LargeBinaryArray | None = None,
) -> list[TopicChunk]:
    """Chunks of about one size, of columns in the order of the names; each has memory of its own."""
    return [
        TopicChunk(
            _own(names[low:high]),
            partitions[low:high].copy(),
            None if ids is None else _own(ids[low:high]),
            None if placements is None else _own(placements[low:high]),
        )
        for low, high in _edges(len(names))
    ]


def _edges(size: int) -> Iterator[tuple[int, int]]:
    count = -(-size // MOST)
    return pairwise([size * number // count for number in range(count + 1)] if count else [])


def changed_chunks(chunks: Sequence[TopicChunk], changes: Iterable[TableChange]) -> list[TopicChunk]:
    """The chunks after some changes; the last change of each name counts."""
    last = sorted({change.name: change for change in changes}.values())
    added = _added(last)
    if not chunks:
        is_known = any(change.topic_id != NO_ID for change in last if change.partitions is not None)
        return chunks_of(added.names, added.partitions, added.ids if is_known else None)
    names = [change.name for change in last]
    made: list[TopicChunk] = []
    low = used = 0
    for number, chunk in enumerate(chunks, 1):
        high = bisect_left(names, chunks[number].name(0)) if number < len(chunks) else len(names)
        changed = last[low:high]
        if changed:
            order = _order(chunk, changed, used)
            made += [chunk.picked(added, order[first:end]) for first, end in _edges(len(order))]
            used += sum(change.partitions is not None for change in changed)
        else:
            made.append(chunk)
        low = high
    return list(_joined(made)) if last else made


def differences(old: TopicChunk | None, new: TopicChunk | None) -> list[TableChange] | None:
    """The changes from old to new topics; ``None`` if so much differs that nothing is worth sharing."""
    if old is None or new is None:
        return None
    place = pc.index_in(new.names, value_set=old.names)
    is_new = place.is_null().to_numpy(zero_copy_only=False)
    found = place.fill_null(0)
    differs = is_new | (new.partitions != old.partitions[found.to_numpy()])
    for mine, theirs in ((new.ids, old.ids), (new.placements, old.placements)):
        if (mine is None) is not (theirs is None):
            return None
        if mine is not None and theirs is not None:
            differs |= pc.not_equal(mine, theirs.take(found)).to_numpy(zero_copy_only=False)
    gone = pc.invert(pc.is_in(old.names, value_set=new.names)).to_numpy(zero_copy_only=False)
    if differs.sum() + gone.sum() > len(new) // _SHARED_PART + _SHARED:
        return None
    changes = [TableChange(old.name(row), None, NO_ID, existed=True) for row in np.flatnonzero(gone).tolist()]
    for row in np.flatnonzero(differs).tolist():
        name, partitions, topic_id, placement = new.row(row)
        changes.append(TableChange(name, partitions, topic_id, not is_new[row], placement))
    return changes


def _added(changes: Iterable[TableChange]) -> TopicChunk:
    """The topics that exist after the changes."""
    shown = [change for change in changes if change.partitions is not None]
    placements = [change.placement for change in shown]
    return TopicChunk(
        pa.array([change.name for change in shown], pa.large_binary()),
        np.array([max(change.partitions or 0, 1) for change in shown], np.int32),
        pa.array([change.topic_id for change in shown], pa.large_binary()),
        None if None in placements else pa.array(placements, pa.large_binary()),
    )


def _order(chunk: TopicChunk, changes: Sequence[TableChange], used: int) -> Array:
    """The topics after changes, in the order of the names: row numbers of the chunk and, after these, of all added
    topics, of which ``used`` belong to earlier changes.
    """
    size = len(chunk)
    name, place = chunk.name, chunk.place
    if len(changes) > _FEW:
        names = chunk.names.to_pylist()
        name, place = names.__getitem__, partial(bisect_left, names)
    gone, put = [], []
    for change in changes:
        row = place(change.name)
        if row < size and name(row) == change.name:
            gone.append(row)
        if change.partitions is not None:
            put.append(row)
    dropped, places = np.array(gone, np.int64), np.array(put, np.int64)
    kept = np.delete(np.arange(size), dropped)
    return np.insert(kept, places - np.searchsorted(dropped, places), size + used + np.arange(len(put)))


def _joined(chunks: list[TopicChunk]) -> Iterator[TopicChunk]:
    """The chunks, small ones joined with their neighbours."""
    former: TopicChunk | None = None
    for chunk in chunks:
        if former is None:
            former = chunk
        elif min(len(former), len(chunk)) < _LEAST and len(former) + len(chunk) <= MOST:
            former = former.joined(chunk)
        else:
            yield former
            former = chunk
    if former is not None:
        yield former


def _own(column: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """A copy of a slice, which does not keep the whole column in memory."""
    return column.take(pa.array(np.arange(len(column))))


Shown: TypeAlias = Callable[[pa.LargeBinaryArray], "Array | None"]


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
        partitions: Array,
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
