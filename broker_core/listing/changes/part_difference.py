"""The difference of two answers, which are parts of versions of a listing, at the cost of what changed.

Versions of a listing share the chunks where nothing changed, and searches of both remember the same rows of a shared
chunk. So shared chunks are compared by rows only, and others by names. If it is known which names changed between the
versions, and both parts are ranges, only changed names are looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc

from broker_core.listing.changes.version_splice import locate
from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.chunks.chunk_rows import ChunkRows
from broker_core.listing.listing_data import ListingData, Pieces
from broker_core.listing.listing_part import ListingPart
from broker_core.names import Array

__all__ = ["bytes_to_compare", "part_difference"]

_NONE: Final = ChunkRows(0, 0)
#: At most so many changed chunks are compared as bytes first; if more changed, most of them differs.
_FEW: Final = 4
#: So few names are compared one by one: as columns they would take longer.
_ONE_BY_ONE: Final = 32
#: Bytes that take as long to compare as a name to look up.
_LOOK_UP: Final = 256


def part_difference(
    data: ListingData, part: ListingPart, older_data: ListingData, older: ListingPart
) -> tuple[ListingPart, ListingPart]:
    """The rows of ``part`` whose names ``older`` has not, and the rows of ``older`` whose names ``part`` has not.

    Both listings are of one namespace.
    """
    known = _by_changes(data, part, older_data, older)
    if known is not None:
        return _of_keys(data, known[0]), _of_keys(older_data, known[1])
    added, gone, own, others = _by_rows(data, part, older_data, older)
    if len(own) == len(others) <= _FEW:
        own, others = _trimmed_pieces(data, own, older_data, others)
    if own or others:
        is_new, is_gone = _differing(data, own, older_data, others)
        added += _kept(data, own, is_new)
        gone += _kept(older_data, others, is_gone)
    return _part(data, added), _part(older_data, gone)


def bytes_to_compare(
    data: ListingData, part: ListingPart, older_data: ListingData, older: ListingPart
) -> int:
    """About how many bytes :func:`part_difference` may take while it compares names."""
    known = _by_changes(data, part, older_data, older)
    if known is not None:
        return _LOOK_UP * (len(known[0]) + len(known[1]))
    _, _, own, others = _by_rows(data, part, older_data, older)
    sizes = [
        rows.fields_size(each.chunks[number]) + 32 * len(rows)
        for each, pieces in ((data, own), (older_data, others))
        for number, rows in pieces
    ]
    return 2 * sum(sizes)


def _by_changes(
    data: ListingData, part: ListingPart, older_data: ListingData, older: ListingPart
) -> tuple[list[bytes], list[bytes]] | None:
    """The keys of the names that only one of two ranges has, if all changes between the versions are known."""
    if part.pieces is not None or older.pieces is not None:
        return None
    changes = data.changes_since(older_data)
    if changes is None:
        return None
    came, went = changes
    first, last = data.keys_before(came, part.low), data.keys_before(came, part.high)
    begin, end = older_data.keys_before(went, older.low), older_data.keys_before(went, older.high)
    # Else the ranges differ by names that did not change: they answer different requests.
    if part.low - first != older.low - begin or part.high - last != older.high - end:
        return None
    return came[first:last], went[begin:end]


def _by_rows(
    data: ListingData, part: ListingPart, older_data: ListingData, older: ListingPart
) -> tuple[list[tuple[int, ChunkRows]], list[tuple[int, ChunkRows]], Pieces, Pieces]:
    """The pieces in shared chunks that only one part has, and the pieces of all other chunks."""
    places = {id(chunk): number for number, chunk in enumerate(older_data.chunks)}
    before = dict(older.pieces_in(older_data))
    added: list[tuple[int, ChunkRows]] = []
    gone: list[tuple[int, ChunkRows]] = []
    own: list[tuple[int, ChunkRows]] = []
    shared: set[int] = set()
    now = dict(part.pieces_in(data))
    for number, chunk in enumerate(data.chunks):
        place = places.get(id(chunk))
        rows = now.get(number)
        if place is None:
            if rows is not None:
                own.append((number, rows))
            continue
        shared.add(place)
        rows, others = rows or _NONE, before.get(place) or _NONE
        if _are_alike(rows, others):
            continue
        mine, theirs = rows.array, others.array
        if len(more := np.setdiff1d(mine, theirs, assume_unique=True)):
            added.append((number, ChunkRows.of(more)))
        if len(less := np.setdiff1d(theirs, mine, assume_unique=True)):
            gone.append((place, ChunkRows.of(less)))
    others_left = tuple((place, rows) for place, rows in before.items() if place not in shared)
    return added, gone, tuple(own), others_left


def _trimmed_pieces(
    data: ListingData, own: Pieces, older_data: ListingData, others: Pieces
) -> tuple[Pieces, Pieces]:
    """The pieces without most names that are in both."""
    mine, theirs = [], []
    for (number, rows), (place, other_rows) in zip(own, others, strict=True):
        some, other = _trimmed(data.chunks[number], rows, older_data.chunks[place], other_rows)
        mine.append((number, some))
        theirs.append((place, other))
    return tuple(mine), tuple(theirs)


def _trimmed(chunk: Chunk, rows: ChunkRows, older: Chunk, others: ChunkRows) -> tuple[ChunkRows, ChunkRows]:
    """The rows without the names that both begin with, and end with: a change leaves most names of its chunk."""
    if rows.rows is not None or others.rows is not None or not (len(rows) and len(others)):
        return rows, others
    mine, theirs = _fields(chunk, rows), _fields(older, others)
    ends, other_ends = _ends(chunk, rows), _ends(older, others)
    size = min(len(mine), len(theirs))
    differs = mine[:size] != theirs[:size]
    same = int(differs.argmax()) if differs.any() else size
    # A field begins with its length, so that equal bytes are equal fields.
    first = int(np.searchsorted(ends, same, "right"))
    differs = mine[len(mine) - size :] != theirs[len(theirs) - size :]
    same = int(differs[::-1].argmax()) if differs.any() else size
    last = min(len(rows), len(others)) - first
    lengths, other_lengths = np.diff(ends, prepend=0)[-last:], np.diff(other_ends, prepend=0)[-last:]
    if last <= 0:
        last = 0
    elif (uneven := lengths != other_lengths).any():
        last = int(uneven[::-1].argmax())
    left = len(mine) - same
    last = min(last, len(rows) - int(np.searchsorted(np.concatenate(([0], ends[:-1])), left, "left")))
    return (
        ChunkRows(rows.low + first, rows.high - last),
        ChunkRows(others.low + first, others.high - last),
    )


def _fields(chunk: Chunk, rows: ChunkRows) -> Array:
    return np.frombuffer(chunk.body(rows.low, rows.high), np.uint8)


def _ends(chunk: Chunk, rows: ChunkRows) -> Array:
    """The end of each field, as an offset from the start of the first."""
    offsets = chunk.field_offsets
    ends: Array = offsets[rows.low + 1 : rows.high + 1] - offsets[rows.low]
    return ends


def _are_alike(some: ChunkRows, others: ChunkRows) -> bool:
    if some is others or not (len(some) or len(others)):
        return True
    if len(some) != len(others) or some.low != others.low or some.high != others.high:
        return False
    return some.rows is None or np.array_equal(some.array, others.array)


def _differing(
    data: ListingData, own: Pieces, older_data: ListingData, others: Pieces
) -> tuple[Array, Array]:
    """The marks of the names of each of the two that the other one does not have."""
    if sum(len(rows) for _, rows in (*own, *others)) <= _ONE_BY_ONE:
        mine, theirs = _each_name(data, own), _each_name(older_data, others)
        return (
            np.array([name not in theirs for name in mine], bool),
            np.array([name not in mine for name in theirs], bool),
        )
    names, older_names = data.names(own), older_data.names(others)
    return ~_is_in(names, older_names), ~_is_in(older_names, names)


def _each_name(data: ListingData, pieces: Pieces) -> list[bytes]:
    return [data.chunks[number].name(row) for number, rows in pieces for row in rows.array.tolist()]


def _is_in(names: Any, others: Any) -> Array:
    found: Array = pc.is_in(names, others).to_numpy(zero_copy_only=False)
    return found


def _kept(data: ListingData, pieces: Pieces, keep: Array) -> Pieces:
    """The rows of pieces for which ``keep`` is true."""
    return data.pieces_of(data.rows_of(pieces)[keep])


def _of_keys(data: ListingData, keys: Sequence[bytes]) -> ListingPart:
    return ListingPart.of_rows(locate(data, keys)[0], data)


def _part(data: ListingData, pieces: Sequence[tuple[int, ChunkRows]]) -> ListingPart:
    return ListingPart.of_pieces(tuple(sorted(pieces, key=lambda piece: piece[0])), data)
