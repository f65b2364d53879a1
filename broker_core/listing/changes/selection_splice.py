"""A selection with some names taken out and some put in: only pieces of chunks where something changed are copied.

The result is a selection of a listing of its own, which shares the chunks of the other pieces with the listing before,
also mapped files. So a further change costs a piece again.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final
from weakref import ref

import numpy as np
import pyarrow as pa

from broker_core.counted import counted
from broker_core.errors import InvalidListing
from broker_core.listing.changes.version_splice import ChunkChange, Place, remembered_places
from broker_core.listing.chunks.block_hashes import crc_of_fields
from broker_core.listing.chunks.build_chunks import chunk_size, cut_chunk, joined_chunks
from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.chunks.chunk_rows import ChunkRows, Remembered
from broker_core.listing.chunks.chunk_splice import spliced_chunk
from broker_core.listing.listing_data import ListingData, Pieces
from broker_core.listing.listing_hash import joined
from broker_core.listing.listing_part import ListingPart
from broker_core.names import NON_PERSISTENT, PERSISTENT, Array, column_data, hash_order_keys

__all__ = ["bytes_to_splice", "own_chunks", "spliced_at", "spliced_part"]

#: Bytes of a weak reference, about.
_REFERENCE: Final = 128
#: The first byte of full names of each domain.
_FIRST: Final = {NON_PERSISTENT: b"n", PERSISTENT: b"p"}


def own_chunks(data: ListingData, part: ListingPart) -> list[Chunk]:
    """The topics of a part as chunks of their own: whole chunks are shared, small ones are joined."""
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
    if all(rows.known_text is not None for _, rows in pieces):
        made.known_crc = joined([rows.text(chunk) for chunk, rows in pieces])
    return made


def bytes_to_splice(data: ListingData, part: ListingPart, count: int) -> int:
    """Bytes at most that :func:`spliced_part` copies for so many names."""
    sizes = [
        rows.fields_size(data.chunks[number]) + 8 * len(rows) + 8 for number, rows in part.pieces_in(data)
    ]
    return sum(sizes) if count >= len(sizes) else sum(sorted(sizes)[len(sizes) - count :])


def spliced_part(
    data: ListingData, part: ListingPart, removed: pa.LargeStringArray, other: ListingData, added: ListingPart
) -> tuple[ListingData, ListingPart]:
    """The topics of ``part`` without the names ``removed``, and with those of a part of ``other``; a name in both
    stays. Gives ``part`` itself if nothing changes. The hash of the result is known.

    Raises :exc:`~broker_core.errors.InvalidListing` for topics of another namespace, or that this mode does not list.
    """
    pieces, fresh_pieces = part.pieces_in(data), added.pieces_in(other)
    if data.namespace != other.namespace or not all(
        data.mode.lists(other.chunks[number].domain) for number, _ in fresh_pieces
    ):
        raise InvalidListing(f"topics of {_shown(other)} do not belong between those of {_shown(data)}")
    if not part.is_checked:
        data.check(pieces)
        part.is_checked = True
    fresh = own_chunks(other, added)
    chunks: list[Chunk] = []
    made: list[tuple[int, ChunkRows]] = []
    is_changed = False
    gone = hash_order_keys(removed)
    for domain in (NON_PERSISTENT, PERSISTENT):
        own = tuple(piece for piece in pieces if data.chunks[piece[0]].domain == domain)
        addition = [chunk for chunk in fresh if chunk.domain == domain]
        joint = joined_chunks(addition) if addition else None
        if joint is not None:
            _ = joint.is_plain  # found out once, not of what goes into each chunk
        touched = _touched(data, own, [key for key in gone if key[:1] == _FIRST[domain]], joint)
        is_changed = is_changed or bool(touched) or (joint is not None and not own)
        for index, (number, rows) in enumerate(own):
            chunk, change = data.chunks[number], touched.get(index)
            if change is None:
                made.append((len(chunks), rows))
                chunks.append(chunk)
                continue
            for each in _after(chunk, rows, change, joint):
                made.append((len(chunks), ChunkRows(0, each.size)))
                chunks.append(each)
        if joint is not None and not own:
            for each in cut_chunk(joint):
                made.append((len(chunks), ChunkRows(0, each.size)))
                chunks.append(each)
    if not is_changed:
        return data, part
    result = ListingData(data.namespace, data.mode, chunks)
    spliced = ListingPart.of_pieces(
        tuple(made), result, part.text if added.text == part.text or not added else None
    )
    spliced.is_checked = True
    spliced.hash = spliced.compute_hash(result)
    return result, spliced


def spliced_at(
    data: ListingData, part: ListingPart, gone: Any, put: Any, other: ListingData, added: ListingPart
) -> tuple[ListingData, ListingPart]:
    """A part spliced by positions in it, as a whole listing: :meth:`~broker_core.Selection.spliced`."""
    gone, put = _positions(gone, len(part) - 1, once=True), _positions(put, len(part), once=False)
    if len(put) != len(added):
        raise ValueError(f"{counted(len(put), 'place')} for {counted(len(added), 'topic')}")
    own = ListingData(data.namespace, data.mode, own_chunks(data, part))
    removed = own.names(own.pieces_of(gone))
    result, made = spliced_part(own, ListingPart(0, own.size, text=part.text), removed, other, added)
    at = put - np.searchsorted(gone, put) + np.arange(len(put))
    if len(made) != len(part) - len(gone) + len(put) or not result.names(result.pieces_of(at)).equals(
        other.names(added.pieces_in(other))
    ):
        raise InvalidListing("topics do not belong where they are put, in the order of the hash")
    return result, made


def _touched(
    data: ListingData, pieces: Pieces, removed: Sequence[bytes], fresh: Chunk | None
) -> dict[int, ChunkChange]:
    """The changes in each piece (by its position) of the pieces of one domain."""
    touched: defaultdict[int, ChunkChange] = defaultdict(ChunkChange)
    if not pieces:
        return touched
    put = hash_order_keys(fresh.names(0, fresh.size)) if fresh is not None else []
    indexes = {key: index for index, key in enumerate(put)}
    keys = sorted({*put, *removed})
    for key, (piece, row, is_there) in zip(keys, _in_pieces(data, pieces, keys), strict=True):
        index = indexes.get(key)
        if index is None and is_there:
            touched[piece].gone.append(row)
        elif index is not None and not is_there:
            change = touched[piece]
            change.put.append(row)
            change.fresh.append(index)
    return touched


def _in_pieces(data: ListingData, pieces: Pieces, keys: Sequence[bytes]) -> Iterable[Place]:
    """For each key of a name its place in the pieces: the position of the piece, the row in it, and whether it is
    there."""
    numbers = [number for number, _ in pieces]
    whole = {
        number: index for index, (number, rows) in enumerate(pieces) if len(rows) == data.chunks[number].size
    }
    found = remembered_places(data, keys)
    if len(whole) == len(data.chunks):  # of all topics, as of many answers
        return found
    places = ((whole.get(place[0]), place) for place in found)
    return (
        _in_piece(pieces, numbers, place) if index is None else (index, *place[1:]) for index, place in places
    )


def _in_piece(pieces: Pieces, numbers: list[int], place: Place) -> Place:
    """A place in a chunk converted to one in a piece: its position, the row in it, and whether the name is there."""
    number, row, is_there = place
    piece = max(bisect_right(numbers, number) - 1, 0)
    own, rows = pieces[piece]
    if own != number:  # it goes between two pieces
        return piece, 0 if own > number else len(rows), False
    if rows.rows is None:
        return piece, min(max(row - rows.low, 0), len(rows)), is_there and rows.low <= row < rows.high
    at = bisect_left(rows.rows, row)
    return piece, at, is_there and at < len(rows) and int(rows.rows[at]) == row


def _after(chunk: Chunk, rows: ChunkRows, change: ChunkChange, fresh: Chunk | None) -> Sequence[Chunk]:
    """A piece after a change. For a whole chunk it is made once for all answers that have it, while one has."""
    added = None if fresh is None or not change.fresh else _some(fresh, ChunkRows.of(np.array(change.fresh)))
    gone, put = np.array(change.gone, np.int64), np.array(change.put, np.int64)
    # The key has no values of properties: chunks that have some are made for each answer.
    has_values = chunk.properties or (added is not None and added.properties)
    if len(rows) < chunk.size or has_values or not chunk.memo_limit:
        return _made(_some(chunk, rows), gone, put, added)
    key = (Remembered.SPLICED, _key_of(gone, added))
    remembered: tuple[ref[Chunk], ...] | None = chunk.memo.get(key)
    known = [] if remembered is None else [each() for each in remembered]
    alive = [each for each in known if each is not None]
    if remembered is not None and len(alive) == len(known):
        return alive
    made = _made(chunk, gone, put, added)
    chunk.memo.put(key, tuple(map(ref, made)), _REFERENCE * len(made))
    return made


def _key_of(gone: Array, added: Chunk | None) -> bytes:
    """A key of a change in a chunk: the removed rows, and the added names."""
    digest = hashlib.blake2b(gone.data, digest_size=16)
    if added is not None:
        digest.update(added.body(0, added.size))
    return digest.digest()


def _made(chunk: Chunk, gone: Array, put: Array, added: Chunk | None) -> Sequence[Chunk]:
    """A chunk after a change, hashed."""
    made = cut_chunk(spliced_chunk(chunk, gone, put, added))
    for each in made:
        # If most blocks would be hashed, all in one go takes half as long as block by block; the result may be an
        # answer that is sent once, so blocks are made only when a further change needs them.
        if each.known_blocks is None:
            each.known_crc = crc_of_fields(each.column(0, each.size))
    return made


def _some(chunk: Chunk, rows: ChunkRows) -> Chunk:
    """Rows of a chunk, to be copied by the caller: a range is a view."""
    if len(rows) == chunk.size:
        return chunk
    if rows.rows is not None:
        made = _copied([(chunk, rows)])
    else:
        offsets = chunk.field_offsets[rows.low : rows.high + 1]
        made = Chunk(chunk.namespace, chunk.domain, chunk.fields, offsets)
    if chunk.is_searchable and chunk.is_plain:
        made.know_plain(True)
    return made


def _shown(data: ListingData) -> str:
    return f"{data.namespace} {data.mode.name}"


def _positions(given: Any, highest: int, *, once: bool) -> Array:
    """Positions as int64. Raises :exc:`ValueError` if they do not ascend (each ``once``), and :exc:`IndexError`."""
    own = np.asarray(given)
    if own.ndim != 1 or (len(own) and own.dtype.kind not in "iu"):
        raise ValueError("positions are one column of ascending integers")
    positions = np.array(own, np.int64)
    # Compared, since a difference may be too large for its type.
    before, after = positions[:-1], positions[1:]
    if (before >= after if once else before > after).any():
        raise ValueError("positions are one column of ascending integers")
    if len(positions) and (positions[0] < 0 or positions[-1] > highest):
        raise IndexError(f"positions from {positions[0]} to {positions[-1]}: from 0 to {highest}")
    return positions
