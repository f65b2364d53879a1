"""What changes do to one answer: which of its topics have gone, which have come, and the answer after that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from broker_core.name_columns import column_data
from broker_core.names import Mode
from broker_core.selection import Selection
from broker_core.topics_hash import crc_text, extend_crc
from broker_core_spark.serving.fields_listing import FieldsListing
from broker_core_spark.serving.touched import Touched

__all__ = ["Edit", "edit_of", "spliced"]

_Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Edit:
    """``gone`` are positions in the answer, ascending. ``fresh`` are rows of the touched names, ascending, and each
    goes in front of the position ``put``."""

    gone: _Array
    fresh: _Array
    put: _Array


def edit_of(
    base: Selection, first_row: int, touched: Touched, rows: _Array, properties: Mapping[str, str]
) -> Edit | None:
    """How ``base`` differs from the answer now; ``None`` where it does not.

    ``rows`` are the touched names that the question's mode and pattern match; ``first_row`` is the row in the
    generation's listing of mode ``ALL`` where the listing of ``base`` begins.
    """
    if not len(rows):
        return None
    places = touched.places[rows] - first_row
    part = base.part
    if part.rows is None:
        at = np.clip(places - part.low, 0, len(base))
        inside = touched.there[rows] & (places >= part.low) & (places < part.high)
    else:
        at = np.searchsorted(part.rows, places)
        inside = touched.there[rows]
        if len(part.rows):
            inside = inside & (part.rows[np.minimum(at, len(part.rows) - 1)] == places)
        else:
            inside = np.zeros(len(rows), bool)
    shown = touched.shown(rows, properties)
    gone, fresh = inside & ~shown, shown & ~inside
    if not gone.any() and not fresh.any():
        return None
    return Edit(at[gone], rows[fresh], at[fresh])


def spliced(base: Selection, mode: Mode, touched: Touched, edit: Edit) -> FieldsListing:
    """The answer to a question of ``mode`` after an edit: its fields copied, its hash that of exactly these names."""
    listing = base.listing
    taken = pa.array(edit.fresh)
    stretches = list(_stretches(len(base), edit))

    def column(data: pa.Buffer, offsets: _Array, of: Selection) -> pa.LargeBinaryArray:
        if of.part.rows is None:
            return _binary(data, offsets[of.part.low : of.part.high + 1])
        return _binary(data, offsets).take(pa.array(of.part.rows))

    def pieces(kept: pa.LargeBinaryArray, fresh: pa.LargeBinaryArray) -> Iterator[pa.LargeBinaryArray]:
        for is_fresh, start, stop in stretches:
            yield (fresh if is_fresh else kept).slice(start, stop - start)

    names = touched.names
    crc, first = 0, True
    joined = column(listing.joined, listing.joined_offsets, base)
    for piece in pieces(joined, _binary(names.joined, names.joined_offsets).take(taken)):
        data, offsets = column_data(piece)
        begin = int(offsets[0]) + first  # a comma stands in front of each name, but not of the first
        crc = extend_crc(crc, memoryview(data)[begin : int(offsets[-1])])
        first = False
    del joined
    fields = column(listing.fields, listing.field_offsets, base)
    parts = list(pieces(fields, _binary(names.fields, names.field_offsets).take(taken)))
    whole = pa.concat_arrays(parts) if parts else pa.array([], pa.large_binary())
    return FieldsListing(listing.namespace, mode, whole, crc_text(crc))


def _stretches(size: int, edit: Edit) -> Iterator[tuple[bool, int, int]]:
    """The answer in order: ``(fresh, start, stop)`` of what was put in or of what is kept, none of them empty."""
    # Where what is kept is cut, and up to where each cut leaves something out.
    gone, put = edit.gone, edit.put
    cuts, firsts = np.unique(put, return_index=True)
    lasts = np.append(firsts, len(put))[1:]
    fresh_at = dict(zip(cuts.tolist(), zip(firsts.tolist(), lasts.tolist(), strict=True), strict=True))
    dropped = set(gone.tolist())
    position = 0
    for cut in np.union1d(cuts, gone).tolist():
        if cut > position:
            yield False, position, cut
        position = max(position, cut)
        if cut in fresh_at:
            yield True, *fresh_at[cut]
        if cut in dropped:
            position = cut + 1
    if position < size:
        yield False, position, size


def _binary(data: pa.Buffer, offsets: _Array) -> pa.LargeBinaryArray:
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), data]
    )
