"""A selection with a few topics taken out and a few put in, as a listing of its own: no search.

Chunks that the selection has whole, and where nothing changed, are shared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.errors import InvalidListing
from broker_core.listing.block_hashes import joined
from broker_core.listing.build_chunks import cut_chunk, joined_chunks
from broker_core.listing.chunk import Chunk
from broker_core.listing.chunk_rows import ChunkRows
from broker_core.listing.chunk_size import chunk_size
from broker_core.listing.chunk_splice import spliced_chunk
from broker_core.listing.listing_data import ListingData
from broker_core.listing.listing_part import Part
from broker_core.names import NON_PERSISTENT, PERSISTENT
from broker_core.names.hash_order import hash_order_key
from broker_core.names.name_columns import column_data

__all__ = ["own_chunks", "spliced_data"]

_Array = np.ndarray[Any, Any]


def own_chunks(data: ListingData, part: Part) -> list[Chunk]:
    """The topics of a part as chunks of their own; those that it has whole are shared, small ones are joined."""
    pieces = part.pieces_in(data)
    data.check(pieces)
    made: list[Chunk] = []
    open_: list[tuple[Chunk, ChunkRows]] = []
    size = 0
    for number, rows in pieces:
        chunk = data.chunks[number]
        is_shared = len(rows) == chunk.size and (chunk.fields_size >= chunk_size().least or len(pieces) == 1)
        own = rows.fields_size(chunk)
        if open_ and (is_shared or open_[0][0].domain != chunk.domain or size + own > chunk_size().made):
            made.append(_copied(open_))
            open_, size = [], 0
        if is_shared:
            made.append(chunk)
        else:
            open_.append((chunk, rows))
            size += own
    if open_:
        made.append(_copied(open_))
    return made


def _copied(pieces: Sequence[tuple[Chunk, ChunkRows]]) -> Chunk:
    """Rows of chunks of one domain as a chunk of its own."""
    first = pieces[0][0]
    columns = [chunk.column(rows.low, rows.high, rows.rows) for chunk, rows in pieces]
    if len(columns) == 1 and pieces[0][1].rows is not None:
        fields, offsets = column_data(columns[0])  # it was gathered
    else:
        fields, offsets = column_data(pa.concat_arrays(columns))
    made = Chunk(first.namespace, first.domain, fields, offsets)
    if all(rows.is_hashed for _, rows in pieces):
        made.know_crc(joined([rows.text(chunk) for chunk, rows in pieces]))
    return made


def spliced_data(
    base: ListingData, part: Part, gone: Any, put: Any, other: ListingData, added: Part
) -> ListingData:
    """What a listing holds of the topics of ``part`` without the positions ``gone``, with those of ``added`` in
    between: see :meth:`~broker_core.listing.listing.Selection.spliced`. Its hash is known.
    """
    gone, put = _positions(gone, len(part) - 1, once=True), _positions(put, len(part), once=False)
    if len(put) != len(added):
        raise ValueError(f"{len(put)} places for {len(added)} topics")
    fresh = own_chunks(other, added)
    if base.namespace != other.namespace or not all(base.mode.lists(chunk.domain) for chunk in fresh):
        raise InvalidListing(f"topics of {_shown(other)} do not belong between those of {_shown(base)}")
    kept = own_chunks(base, part)
    made: list[Chunk] = []
    begin = first = 0
    for domain in (NON_PERSISTENT, PERSISTENT):
        own = [chunk for chunk in kept if chunk.domain == domain]
        end = begin + sum(chunk.size for chunk in own)
        addition = [chunk for chunk in fresh if chunk.domain == domain]
        last = first + sum(chunk.size for chunk in addition)
        mine = put[first:last] - begin
        if len(mine) and (int(mine[0]) < 0 or int(mine[-1]) > end - begin):
            raise InvalidListing(
                "topics were put in between that do not belong there in the order of the hash"
            )
        lost = gone[(gone >= begin) & (gone < end)] - begin
        made += _domain(own, lost, mine, joined_chunks(addition) if addition else None)
        begin, first = end, last
    if len(put):
        _check_borders(made)
    data = ListingData(base.namespace, base.mode, made)
    data.range_hash(0, data.size)
    return data


def _domain(own: Sequence[Chunk], gone: _Array, put: _Array, fresh: Chunk | None) -> Iterator[Chunk]:
    """The chunks of one domain, with positions that count in it."""
    if not own:
        if fresh is not None:
            yield from cut_chunk(fresh)
        return
    begin = 0
    first = 0
    for number, chunk in enumerate(own):
        end = begin + chunk.size
        last = len(put) if number == len(own) - 1 else int(np.searchsorted(put, end))
        lost = gone[(gone >= begin) & (gone < end)] - begin
        if last > first or len(lost):
            addition = None if fresh is None or first == last else _stretch(fresh, first, last)
            places = put[first:last] - begin
            made = spliced_chunk(chunk, lost, places, addition)
            _check_order(made, lost, places)
            yield from cut_chunk(made)
        else:
            yield chunk
        begin, first = end, last


def _stretch(chunk: Chunk, low: int, high: int) -> Chunk:
    return chunk if high - low == chunk.size else _copied([(chunk, ChunkRows(low, high))])


def _check_order(made: Chunk, gone: _Array, put: _Array) -> None:
    """Raise :exc:`InvalidListing` where what was put in does not belong there; the others stand as they stood."""
    if not len(put):
        return
    fresh = put - np.searchsorted(gone, put) + np.arange(len(put))
    rows = np.unique(np.concatenate((fresh - 1, fresh, fresh + 1)))
    rows = rows[(rows >= 0) & (rows < made.size)]
    keys = hash_order_key(made.names(0, made.size, rows))
    ascends = pc.less(keys[:-1], keys[1:]).to_numpy(zero_copy_only=False)
    if not (ascends | (np.diff(rows) > 1)).all():
        raise InvalidListing("topics were put in between that do not belong there in the order of the hash")


def _check_borders(chunks: Sequence[Chunk]) -> None:
    if len(chunks) < 2:
        return
    lasts, firsts = (
        pa.array(names, pa.large_binary()).cast(pa.large_string())
        for names in (
            [chunk.name(chunk.size - 1) for chunk in chunks[:-1]],
            [chunk.name(0) for chunk in chunks[1:]],
        )
    )
    if not pc.all(pc.less(hash_order_key(lasts), hash_order_key(firsts))).as_py():
        raise InvalidListing("topics were put in between that do not belong there in the order of the hash")


def _shown(data: ListingData) -> str:
    return f"{data.namespace} {data.mode.name}"


def _positions(given: Any, highest: int, *, once: bool) -> _Array:
    own = np.asarray(given)
    if own.ndim != 1 or (len(own) and own.dtype.kind not in "iu"):
        raise ValueError("positions are one column of ascending integers")
    positions = np.array(own, np.int64)
    # Compared, since a difference may be too large for its type.
    before, behind = positions[:-1], positions[1:]
    if (before >= behind if once else before > behind).any():
        raise ValueError("positions are one column of ascending integers")
    if len(positions) and (positions[0] < 0 or positions[-1] > highest):
        raise IndexError(f"positions from {positions[0]} to {positions[-1]}: from 0 to {highest}")
    return positions
