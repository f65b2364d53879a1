"""A selection with a few topics taken out and a few put in, as a listing of its own: one copy, no search."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.errors import InvalidListing
from broker_core.listing.fields_codec import decode_fields, name_start
from broker_core.listing.hash_after_change import crc_of_fields, crc_of_spliced
from broker_core.listing.listing_data import ListingData
from broker_core.listing.topics_hash import crc_text
from broker_core.names import Mode
from broker_core.names.hash_order import hash_order_bytes, hash_order_key
from broker_core.names.name_columns import column_data

__all__ = ["spliced_fields"]

_Array = np.ndarray[Any, Any]


def spliced_fields(
    one: ListingData,
    kept: pa.LargeBinaryArray,
    gone: Any,
    put: Any,
    other: ListingData,
    fresh: pa.LargeBinaryArray,
    begins: int | None = None,
) -> ListingData:
    """What a listing holds of ``kept`` topics of ``one`` without the positions ``gone``, with the ``fresh`` ones of
    ``other`` in between: see :meth:`~broker_core.listing.listing.Selection.spliced`. Its hash is known.

    ``begins`` is the row of ``one`` that ``kept`` begins with, where it is a stretch of it.
    """
    gone, put = _positions(gone, len(kept) - 1, once=True), _positions(put, len(kept), once=False)
    if len(put) != len(fresh):
        raise ValueError(f"{len(put)} places for {len(fresh)} topics")
    if one.namespace != other.namespace or not _are_listed(fresh, other.mode, one.mode):
        raise InvalidListing(f"topics of {_shown(other)} do not belong between those of {_shown(one)}")
    stretches = list(_stretches(len(kept), gone, put))
    pieces = [(fresh if is_fresh else kept).slice(low, high - low) for is_fresh, low, high in stretches]
    whole = pa.concat_arrays(pieces) if pieces else pa.array([], pa.large_binary())
    places = np.cumsum([0, *(high - low for _, low, high in stretches)])
    _check_order(whole, stretches, places)
    if begins is None:
        crc = crc_of_fields(whole)
    else:
        same = [
            (place, begins + low, begins + high)
            for (is_fresh, low, high), place in zip(stretches, places.tolist(), strict=False)
            if not is_fresh
        ]
        crc = crc_of_spliced(whole, same, one)
    data, offsets = column_data(whole)
    return ListingData.encoded(one.namespace, one.mode, data, offsets, crc_text(crc))


def _check_order(
    whole: pa.LargeBinaryArray, stretches: Sequence[tuple[bool, int, int]], places: _Array
) -> None:
    """Raise :exc:`InvalidListing` where what was put in does not belong there; the others stand as they stood."""
    is_fresh = np.array([is_fresh for is_fresh, _, _ in stretches], bool)
    seams = places[1:-1][is_fresh[:-1] | is_fresh[1:]]
    # A comma in front of all of them leaves the order as it is.
    around = whole.take(pa.array(np.concatenate((seams - 1, seams))))
    keys = hash_order_key(decode_fields(around, comma=True))
    if not pc.all(pc.less(keys[: len(seams)], keys[len(seams) :]), min_count=0).as_py():
        raise InvalidListing("topics were put in between that do not belong there in the order of the hash")


def _shown(data: ListingData) -> str:
    return f"{data.namespace} {data.mode.name}"


def _are_listed(fields: pa.LargeBinaryArray, given: Mode, mode: Mode) -> bool:
    """Whether ``mode`` lists all of these names, which a listing of the mode ``given`` has: in order, by domain."""
    if given is mode or mode is Mode.ALL or not len(fields):
        return True
    ends = {_key(fields, row).partition(b"://")[0].decode() for row in (0, len(fields) - 1)}
    return all(mode.lists(domain) for domain in ends)


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


def _stretches(size: int, gone: _Array, put: _Array) -> Iterator[tuple[bool, int, int]]:
    """The result in order: ``(fresh, start, stop)`` of what is put in or of what is kept, none of them empty."""
    # Where what is kept is cut, and up to where each cut leaves something out.
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


def _key(column: pa.LargeBinaryArray, row: int) -> bytes:
    field = column[row].as_buffer().to_pybytes()
    return hash_order_bytes(field[name_start(len(field)) :])
