"""Values of selecting properties: their counts in a selection, and the topics of a listing that have given ones.

The topics with given values are searched chunk by chunk. The rows that a chunk remembers serve all versions of a
listing that share it, so after a change only new chunks are searched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.chunks.chunk_rows import ChunkRows, MemoKey, properties_key
from broker_core.listing.chunks.property_codes import NO_VALUE
from broker_core.listing.listing import Listing, Selection, data_of, part_of
from broker_core.listing.listing_data import ListingData
from broker_core.listing.listing_part import ListingPart

__all__ = [
    "count_texts",
    "count_values",
    "has_property_values",
    "is_quick_to_select",
    "remembered_selection",
    "select_by_properties",
    "values_size",
]


_TEXT = pa.large_string()


def has_property_values(listing: Listing) -> bool:
    """Whether a listing's topics can be selected by properties: some topic has a value of one."""
    return any(
        len(codes.values) > 0 and bool((codes.codes >= 0).any())
        for chunk in data_of(listing).chunks
        for codes in chunk.properties.values()
    )


def count_values(selection: Selection, key: str) -> pa.Table | None:
    """The values of a property with their counts, in the form of :func:`count_texts`.

    ``None`` if the listing does not have the values of this property. Nothing is done for each name in Python.
    """
    data, part = data_of(selection.listing), part_of(selection)
    values: list[pa.Array] = []
    counts: list[pa.Array] = []
    for number, rows in part.pieces_in(data):
        own = data.chunks[number].properties.get(key)
        if own is None:
            return None
        codes = own.codes[rows.low : rows.high] if rows.rows is None else own.codes[rows.rows]
        found = np.bincount(codes - NO_VALUE, minlength=len(own.values) + 1)[1:]
        used = np.flatnonzero(found)
        values.append(own.values.take(pa.array(used)))
        counts.append(pa.array(found[used], pa.int64()))
    return _together(pa.chunked_array(values, _TEXT), pa.chunked_array(counts, pa.int64()))


def values_size(selection: Selection, keys: Iterable[str]) -> int:
    """The bytes of the values of properties that are looked at to count those of a selection, known or not."""
    data, part = data_of(selection.listing), part_of(selection)
    chunks = [data.chunks[number].properties for number, _ in part.pieces_in(data)]
    return sum(chunk[key].values.nbytes for key in keys for chunk in chunks if key in chunk)


def count_texts(texts: pa.LargeStringArray) -> pa.Table:
    """Each text with its ``count``, the most frequent first, then by the ``value``; nulls are left out."""
    texts = texts.drop_null()
    return _together(texts, pa.array(np.ones(len(texts), np.int64)))


def _together(values: pa.ChunkedArray | pa.Array, counts: pa.ChunkedArray | pa.Array) -> pa.Table:
    table = pa.table({"value": values, "count": counts})
    summed = table.group_by("value").aggregate([("count", "sum")])
    found = pa.table({"value": summed["value"], "count": summed["count_sum"]})
    order = pc.sort_indices(found, sort_keys=[("count", "descending"), ("value", "ascending")])
    return found.take(order)


#: So many rows are searched in well under a millisecond; a chunk that remembers costs as much as a few of them.
_QUICK: Final = 50_000
_REMEMBERED: Final = 64
#: Bytes of a piece of a part.
_PIECE: Final = 128


def remembered_selection(data: ListingData, pairs: Mapping[str, str]) -> ListingPart | None:
    """The earlier result of :func:`select_by_properties`, if the listing remembers it."""
    found: ListingPart | None = (
        data.memo.get((properties_key(pairs), None)) if pairs else ListingPart(0, data.size)
    )
    return found


def is_quick_to_select(data: ListingData, pairs: Mapping[str, str]) -> bool:
    """Whether :func:`select_by_properties` takes well under a millisecond."""
    if data.size <= _QUICK or remembered_selection(data, pairs) is not None:
        return True
    key = properties_key(pairs)
    cost = _REMEMBERED * len(data.chunks)
    for chunk in data.chunks:
        if cost > _QUICK:
            return False
        cost += 0 if chunk.memo_has(key) else chunk.size
    return cost <= _QUICK


def select_by_properties(data: ListingData, pairs: Mapping[str, str]) -> ListingPart:
    """The topics whose properties have the values in ``pairs``. For any thread."""
    known = remembered_selection(data, pairs)
    if known is not None:
        return known
    key = properties_key(pairs)
    is_shared = len(data.chunks) > 1
    size = text = sum(4 * len(word) + _PIECE for pair in pairs.items() for word in pair)
    pieces = []
    for number, chunk in enumerate(data.chunks):
        rows = _rows(chunk, pairs, key, text) if is_shared else chunk.with_values(pairs)
        if len(rows):
            pieces.append((number, rows))
            size += _PIECE + (0 if is_shared and chunk.memo_has(key) else rows.remembered_bytes(chunk))
    first: ListingPart = data.memo.put_first((key, None), ListingPart.of_pieces(tuple(pieces), data), size)
    return first


def _rows(chunk: Chunk, pairs: Mapping[str, str], key: MemoKey, text: int) -> ChunkRows:
    known: ChunkRows | None = chunk.memo.get(key)
    if known is None:
        found = chunk.with_values(pairs)
        known = chunk.memo.put_first(key, found, found.remembered_bytes(chunk) + text)
    return known
