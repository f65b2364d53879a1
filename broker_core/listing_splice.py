"""A listing with a few names taken out and a few put in, by copying the stretches in between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from broker_core.listing import Listing
from broker_core.name_columns import hash_order_bytes, hash_order_key

__all__ = ["locate", "splice"]

_Rows = np.ndarray[Any, Any]


def splice(listing: Listing, removed: pa.LargeStringArray, addition: Listing) -> Listing:
    """``listing`` without the full names ``removed`` and with those of ``addition`` (same namespace and mode).

    A name in both stays. Costs one copy of the columns and a binary search for each changed name; nothing is sorted.
    """
    added = addition.names
    at, present = locate(listing, added)
    fresh = np.flatnonzero(~present)
    gone_at, found = locate(listing, removed)
    gone = np.setdiff1d(gone_at[found], at[present])
    if not len(gone) and not len(fresh):
        return listing
    insert_rows = at[fresh]
    keep_rows = _kept(len(listing), gone)

    joined = _spliced(
        _column(listing.joined, listing.joined_offsets),
        gone,
        insert_rows,
        _column(addition.joined, addition.joined_offsets).take(pa.array(fresh)),
    )
    fields = _spliced(
        _column(listing.fields, listing.field_offsets),
        gone,
        insert_rows,
        _column(addition.fields, addition.field_offsets).take(pa.array(fresh)),
    )

    old_order = np.arange(len(listing)) if listing.by_matched is None else listing.by_matched
    row_in_order = np.empty(len(listing), np.int64)
    row_in_order[old_order] = np.arange(len(listing))
    new_order = np.arange(len(addition)) if addition.by_matched is None else addition.by_matched
    # Rows of `addition` that are new, in the order of their matched forms, and where these belong.
    by_form = np.flatnonzero(np.isin(new_order, fresh))
    forms = addition.matched.take(pa.array(by_form))
    insert_forms = np.array([listing.matched_range(form, form)[0] for form in _each(forms)], np.int64)
    gone_forms = np.sort(row_in_order[gone])
    matched = _spliced(listing.matched, gone_forms, insert_forms, forms)

    # Where each old and each new row went.
    moved = np.cumsum(keep_rows) - 1 + np.searchsorted(insert_rows, np.arange(len(listing)), side="right")
    kept_before = np.concatenate(([0], np.cumsum(keep_rows)))
    placed = kept_before[insert_rows] + np.arange(len(fresh))
    place_of = np.empty(len(addition), np.int64)
    place_of[fresh] = placed
    keep_forms = _kept(len(listing), gone_forms)
    forms_before = np.concatenate(([0], np.cumsum(keep_forms)))
    order = np.insert(moved[old_order[keep_forms]], forms_before[insert_forms], place_of[new_order[by_form]])
    identity = bool((order == np.arange(len(order))).all())
    return Listing(
        listing.namespace,
        listing.mode,
        fields,
        joined.cast(pa.large_string()),
        matched,
        None if identity else order,
    )


def _kept(size: int, gone: _Rows) -> _Rows:
    keep = np.ones(size, bool)
    keep[gone] = False
    return keep


def _column(data: pa.Buffer, offsets: _Rows) -> pa.LargeBinaryArray:
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(np.ascontiguousarray(offsets)), data]
    )


def _each(column: pa.LargeStringArray) -> list[bytes]:
    return [value.as_buffer().to_pybytes() for value in column]


def locate(listing: Listing, names: pa.LargeStringArray) -> tuple[_Rows, _Rows]:
    """For each full name the row where it is or would be put, and whether it is there."""
    data, offsets = memoryview(listing.joined), listing.joined_offsets
    rows, present = np.empty(len(names), np.int64), np.zeros(len(names), bool)
    for index, key in enumerate(_each(hash_order_key(names))):
        low, high = 0, len(listing)
        while low < high:
            middle = (low + high) // 2
            if _key(data, offsets, middle) < key:
                low = middle + 1
            else:
                high = middle
        rows[index] = low
        present[index] = low < len(listing) and _key(data, offsets, low) == key
    return rows, present


def _key(data: memoryview, offsets: _Rows, row: int) -> bytes:
    return hash_order_bytes(bytes(data[offsets[row] : offsets[row + 1] - 1]))


def _spliced(column: Any, gone: _Rows, insert_at: _Rows, inserted: Any) -> Any:
    """``column`` without the rows ``gone`` and with ``inserted`` put in front of the rows ``insert_at`` (ascending)."""
    pieces: list[Any] = []
    cuts = sorted({0, len(column), *gone.tolist(), *(gone + 1).tolist(), *insert_at.tolist()})
    dropped = set(gone.tolist())
    groups: dict[int, list[int]] = {}
    for index, row in enumerate(insert_at.tolist()):
        groups.setdefault(row, []).append(index)
    for start, stop in zip(cuts, [*cuts[1:], len(column)], strict=True):
        if start in groups:
            pieces.append(inserted.slice(groups[start][0], len(groups[start])))
        if start < stop and start not in dropped:
            pieces.append(column.slice(start, stop - start))
    return pa.concat_arrays(pieces) if pieces else column.slice(0, 0)
