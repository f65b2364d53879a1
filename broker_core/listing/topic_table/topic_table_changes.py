"""The chunks of a table of topics after some changes: those without a change are shared, and none grows too large."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.listing.topic_table.topic_chunk import NO_ID, TopicChunk

__all__ = ["MOST", "TopicChange", "changed_chunks", "chunks_of"]

#: Topics of a chunk at most, and those below which one is joined with the next.
MOST: Final = 4096
_LEAST: Final = MOST // 8
_Array = np.ndarray[Any, Any]


class TopicChange(NamedTuple):
    """A topic as it is after a change; ``partitions`` is ``None`` where it is gone. It may have ``existed`` before."""

    name: bytes
    partitions: int | None
    topic_id: bytes
    existed: bool


def chunks_of(
    names: pa.LargeBinaryArray, partitions: _Array, ids: pa.LargeBinaryArray | None
) -> list[TopicChunk]:
    """Chunks of about one size, of columns in the order of the names; each has memory of its own."""
    count = -(-len(names) // MOST)
    edges = [len(names) * number // count for number in range(count + 1)] if count else [0]
    return [
        TopicChunk(
            _own(names[low:high]),
            partitions[low:high].copy(),
            None if ids is None else _own(ids[low:high]),
        )
        for low, high in pairwise(edges)
    ]


def changed_chunks(chunks: Sequence[TopicChunk], changes: Iterable[TopicChange]) -> list[TopicChunk]:
    """The chunks after these changes, of which the last of each name holds."""
    firsts = [chunk.name(0) for chunk in chunks]
    by_chunk: dict[int, dict[bytes, TopicChange]] = {}
    for change in changes:
        number = max(bisect_right(firsts, change.name) - 1, 0)
        by_chunk.setdefault(number, {})[change.name] = change
    made: list[TopicChunk] = []
    for number in range(max(len(chunks), 1)):
        chunk = chunks[number] if chunks else None
        changed = by_chunk.get(number)
        if changed is not None:
            made += _changed(chunk, list(changed.values()))
        elif chunk is not None:
            made.append(chunk)
    return list(_joined(made)) if by_chunk else made


def _changed(chunk: TopicChunk | None, changes: list[TopicChange]) -> list[TopicChunk]:
    names = pa.array([change.name for change in changes], pa.large_binary())
    added = [change for change in changes if change.partitions is not None]
    new_names = pa.array([change.name for change in added], pa.large_binary())
    new_partitions = np.array([max(change.partitions or 0, 1) for change in added], np.int32)
    new_ids: pa.LargeBinaryArray | None = pa.array([change.topic_id for change in added], pa.large_binary())
    if chunk is not None:
        kept = pc.invert(pc.is_in(chunk.names, value_set=names))
        new_names = pa.concat_arrays([chunk.names.filter(kept), new_names])
        new_partitions = np.concatenate(
            [chunk.partitions[kept.to_numpy(zero_copy_only=False)], new_partitions]
        )
        new_ids = None if chunk.ids is None else pa.concat_arrays([chunk.ids.filter(kept), new_ids])
    elif all(change.topic_id == NO_ID for change in added):
        new_ids = None
    order = pc.sort_indices(new_names)
    ids = None if new_ids is None else new_ids.take(order)
    return chunks_of(new_names.take(order), new_partitions[order.to_numpy()], ids)


def _joined(chunks: list[TopicChunk]) -> Iterator[TopicChunk]:
    """The same without chunks that are small beside their neighbours."""
    former: TopicChunk | None = None
    for chunk in chunks:
        if former is None:
            former = chunk
        elif min(len(former), len(chunk)) < _LEAST and len(former) + len(chunk) <= MOST:
            former = TopicChunk(
                pa.concat_arrays([former.names, chunk.names]),
                np.concatenate([former.partitions, chunk.partitions]),
                None
                if former.ids is None or chunk.ids is None
                else pa.concat_arrays([former.ids, chunk.ids]),
            )
        else:
            yield former
            former = chunk
    if former is not None:
        yield former


def _own(column: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """A copy, which does not keep the whole column that this is a slice of."""
    return column.take(pa.array(np.arange(len(column))))
