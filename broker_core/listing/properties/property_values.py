"""Values of selecting properties: whether a listing has any, and how many names of a selection have each of them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.listing.chunks.property_codes import NO_VALUE
from broker_core.listing.listing import Listing, Selection, data_of, part_of

__all__ = ["count_texts", "count_values", "has_property_values", "values_size"]


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
