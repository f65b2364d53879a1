"""A listing with a few names taken out and a few put in, by copying the stretches in between."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.fields_codec import binary_column, name_start
from broker_core.listing import Listing
from broker_core.listing_columns import Columns, row_type
from broker_core.name_columns import hash_order_bytes, hash_order_key, split_full_names

__all__ = ["locate", "splice"]

#: With more changed names than this, and more than this part of the listing, building anew is quicker.
_MANY: Final = 2000
_MANY_PART: Final = 50

_Rows = np.ndarray[Any, Any]


def splice(listing: Listing, removed: pa.LargeStringArray, addition: Listing) -> Listing:
    """``listing`` without the full names ``removed`` and with those of ``addition`` (same namespace and mode).

    A name in both stays. Costs one copy of the columns and a binary search for each changed name; nothing is sorted.
    """
    added = addition.names
    changed = len(removed) + len(added)
    if changed > _MANY and changed * _MANY_PART > len(listing):
        return _rebuilt(listing, removed, added)
    at, present = locate(listing, added)
    fresh = np.flatnonzero(~present)
    gone_at, found = locate(listing, removed)
    gone = np.setdiff1d(gone_at[found], at[present])
    if not len(gone) and not len(fresh):
        return listing
    put = at[fresh]  # each fresh name goes in front of this row
    joined = _spliced(
        binary_column(listing.joined, listing.joined_offsets),
        gone,
        put,
        binary_column(addition.joined, addition.joined_offsets).take(pa.array(fresh)),
    )
    fields = _spliced(
        binary_column(listing.fields, listing.field_offsets),
        gone,
        put,
        binary_column(addition.fields, addition.field_offsets).take(pa.array(fresh)),
    )
    matched, order = _spliced_forms(listing, gone, put, addition, fresh)
    columns = Columns(fields, joined, matched, order)
    # Where a newline was, the last may have gone; to go on saying that there is one only costs time.
    has_newline = listing.has_newline or addition.has_newline
    return Listing(listing.namespace, listing.mode, columns, has_newline=has_newline)


def _rebuilt(listing: Listing, removed: pa.LargeStringArray, added: pa.LargeStringArray) -> Listing:
    gone = pc.and_(pc.is_in(listing.names, removed), pc.invert(pc.is_in(listing.names, added)))
    names = pa.concat_arrays([listing.names.filter(pc.invert(gone)), added])
    columns = split_full_names(names, listing.namespace, listing.mode)
    return Listing.from_columns(listing.namespace, listing.mode, *columns, check=False)


def _spliced_forms(
    listing: Listing, gone: _Rows, put: _Rows, addition: Listing, fresh: _Rows
) -> tuple[pa.LargeStringArray, _Rows | None]:
    """The new column of matched forms and its order."""
    # The fresh rows of `addition` in the order of their forms, and in front of which forms of `listing` they go.
    places = np.sort(addition.places[fresh])
    forms = addition.matched.take(pa.array(places))
    rows = places if addition.by_matched is None else addition.by_matched[places]
    bounds = [listing.matched_range(form, form + b"\0") for form in _each(forms)]
    # `put` in the order of forms; `fresh` is ascending.
    wanted = put[np.searchsorted(fresh, rows)]
    if listing.by_matched is None and bool((np.diff(rows) > 0).all()):
        # Equal forms may have any order, that of the rows above all.
        if all(low <= row <= high for (low, high), row in zip(bounds, wanted.tolist(), strict=True)):
            return _spliced(listing.matched, gone, wanted, forms), None
    form_put = np.array([low for low, _ in bounds], np.int64)
    form_gone = np.sort(listing.places[gone])
    matched = _spliced(listing.matched, form_gone, form_put, forms)

    # Where each old and each fresh row went.
    kind = row_type(len(listing) + len(fresh))
    shift = np.zeros(len(listing) + 1, kind)
    np.add.at(shift, put, 1)
    np.subtract.at(shift, gone + 1, 1)
    moved = np.cumsum(shift, out=shift)[:-1] + np.arange(len(listing), dtype=kind)
    old = moved if listing.by_matched is None else moved[listing.by_matched]
    new = wanted - np.searchsorted(gone, wanted) + np.searchsorted(fresh, rows)
    order = np.insert(np.delete(old, form_gone), form_put - np.searchsorted(form_gone, form_put), new)
    is_identity = bool((order[1:] > order[:-1]).all())
    return matched, None if is_identity else order


def _each(column: pa.LargeStringArray | pa.LargeBinaryArray) -> list[bytes]:
    return [value.as_buffer().to_pybytes() for value in column]


def locate(listing: Listing, names: pa.LargeStringArray) -> tuple[_Rows, _Rows]:
    """For each full name the row where it is or would be put, and whether it is there."""
    data, offsets = memoryview(listing.fields), listing.field_offsets.data

    def key_of(row: int) -> bytes:
        start, stop = offsets[row], offsets[row + 1]
        return hash_order_bytes(bytes(data[start + name_start(stop - start) : stop]))

    every = range(len(listing))
    rows, present = np.empty(len(names), np.int64), np.zeros(len(names), bool)
    for index, key in enumerate(_each(hash_order_key(names))):
        row = bisect_left(every, key, key=key_of)
        rows[index] = row
        present[index] = row < len(listing) and key_of(row) == key
    return rows, present


def _spliced(column: Any, gone: _Rows, put: _Rows, inserted: Any) -> Any:
    """``column`` without the rows ``gone`` and with ``inserted`` in front of the rows ``put`` (both ascending)."""
    pieces: list[Any] = []
    dropped = set(gone.tolist())
    groups: dict[int, list[int]] = {}
    for index, row in enumerate(put.tolist()):
        groups.setdefault(row, []).append(index)
    cuts = sorted({0, len(column), *dropped, *(row + 1 for row in dropped), *groups})
    for start, stop in zip(cuts, [*cuts[1:], len(column)], strict=True):
        if start in groups:
            pieces.append(inserted.slice(groups[start][0], len(groups[start])))
        if start < stop and start not in dropped:
            pieces.append(column.slice(start, stop - start))
    return pa.concat_arrays(pieces) if pieces else column.slice(0, 0)
