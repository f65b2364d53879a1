"""The chunks of a table of topics after some changes: unchanged ones are shared, and none grows too large."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.listing.topic_table.topic_chunk import NO_ID, TopicChunk

__all__ = ["MOST", "TableChange", "changed_chunks", "chunks_of", "differences"]

#: The most topics of a chunk, and the number below which it is joined with the next.
MOST: Final = 4096
_LEAST: Final = MOST // 8
#: So many names are searched without making Python objects of a whole chunk.
_FEW: Final = 4
#: So many topics, and one in so many of all besides, may differ for chunks to be shared.
_SHARED: Final = 50
_SHARED_PART: Final = 8
_Array = np.ndarray[Any, Any]


class TableChange(NamedTuple):
    """A topic as it is after a change; ``partitions`` is ``None`` if it is gone. It may have ``existed`` before."""

    name: bytes
    partitions: int | None
    topic_id: bytes
    existed: bool
    placement: bytes | None = None


def chunks_of(
    names: pa.LargeBinaryArray,
    partitions: _Array,
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


def _order(chunk: TopicChunk, changes: Sequence[TableChange], used: int) -> _Array:
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
