"""A listing with a few names taken out and a few put in, by copying the stretches in between."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.listing.build_columns import Columns, build_columns, row_type
from broker_core.listing.fields_codec import binary_column
from broker_core.listing.listing_data import ListingData
from broker_core.names.hash_order import hash_order_key
from broker_core.names.name_columns import column_data, split_full_names

__all__ = ["splice"]

#: With more changed names than this, and more than this part of the listing, building anew is quicker.
_MANY: Final = 2000
_MANY_PART: Final = 50

_Array = np.ndarray[Any, Any]


def splice(listing: ListingData, removed: pa.LargeStringArray, addition: ListingData) -> ListingData:
    """``listing`` without the full names ``removed`` and with those of ``addition`` (same namespace and mode).

    A name in both stays. Costs one copy of the columns and a binary search for each changed name; nothing is sorted.
    """
    added = addition.names(0, len(addition))
    changed = len(removed) + len(added)
    if changed > _MANY and changed * _MANY_PART > len(listing):
        return _rebuilt(listing, removed, added)
    at, present = listing.locate(_each(hash_order_key(added)))
    fresh = np.flatnonzero(~present)
    gone_at, found = listing.locate(_each(hash_order_key(removed)))
    gone = np.setdiff1d(gone_at[found], at[present])
    if not len(gone) and not len(fresh):
        return listing
    put = at[fresh]  # each fresh name goes in front of this row
    fields = _spliced(
        listing.column(0, len(listing)), gone, put, addition.column(0, len(addition)).take(pa.array(fresh))
    )
    if listing.joined is None or addition.joined is None:
        return ListingData.encoded(listing.namespace, listing.mode, *column_data(fields))
    joined = _spliced(
        binary_column(listing.joined, listing.joined_offsets),
        gone,
        put,
        binary_column(addition.joined, addition.joined_offsets).take(pa.array(fresh)),
    )
    matched, order = _spliced_forms(listing, gone, put, addition, fresh)
    columns = Columns(fields, joined, matched, order)
    # Where a newline was, the last may have gone; to go on saying that there is one only costs time.
    has_newline = listing.has_newline or addition.has_newline
    return ListingData.built(listing.namespace, listing.mode, columns, has_newline=has_newline)


def _rebuilt(listing: ListingData, removed: pa.LargeStringArray, added: pa.LargeStringArray) -> ListingData:
    names = listing.names(0, len(listing))
    gone = pc.and_(pc.is_in(names, removed), pc.invert(pc.is_in(names, added)))
    names = pa.concat_arrays([names.filter(pc.invert(gone)), added])
    columns = build_columns(listing.namespace, *split_full_names(names, listing.namespace, listing.mode))
    return ListingData.built(listing.namespace, listing.mode, columns)


def _spliced_forms(
    listing: ListingData, gone: _Array, put: _Array, addition: ListingData, fresh: _Array
) -> tuple[pa.LargeStringArray, _Array | None]:
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


def _spliced(column: Any, gone: _Array, put: _Array, inserted: Any) -> Any:
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
