"""Building the columns of a listing: sorting local names, leaving out what no client sees, encoding fields."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.column_sort import sorted_rows
from broker_core.errors import InvalidListing, InvalidName
from broker_core.name_columns import (
    as_column,
    check_local_names,
    column_data,
    hash_order_key,
    is_ascending,
    system_topics,
    with_ends,
    without_ends,
)
from broker_core.names import NON_PERSISTENT, PERSISTENT, NamespaceName
from broker_core.partition_columns import partitioned_local_names

__all__ = [
    "Columns",
    "build_columns",
    "checked_local_names",
    "decode_fields",
    "encode_fields",
    "gathered",
    "row_type",
]

_TAG: Final = 0x12  # field 2, length-delimited: `repeated string topics = 2`
_Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Columns:
    """``fields``, ``joined``, ``matched`` of a listing, and the order of the last; see :mod:`broker_core.listing`."""

    fields: pa.LargeBinaryArray
    joined: pa.LargeBinaryArray
    matched: pa.LargeStringArray
    by_matched: _Array | None


def row_type(rows: int) -> Any:
    """The numpy type for positions in a listing of so many rows: as small as is safe."""
    return np.int32 if rows < 2**31 else np.int64


def gathered(data: pa.Buffer, offsets: _Array, rows: _Array) -> tuple[pa.Buffer, _Array]:
    """The bytes of ``rows`` of a column of bytes, and their offsets."""
    column = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), data]
    )
    return column_data(column.take(pa.array(rows)))


def checked_local_names(names: Any) -> pa.LargeStringArray:
    """A column of local names as ``large_string``; raises :exc:`InvalidListing` for the first that cannot be one."""
    column = as_column(names)
    try:
        check_local_names(column)
    except InvalidName as error:
        raise InvalidListing(str(error)) from None
    return column


def build_columns(
    namespace: NamespaceName,
    persistent: pa.LargeStringArray | None,
    non_persistent: pa.LargeStringArray | None,
) -> Columns:
    """The columns for local names of either domain, which are checked, in any order and perhaps some twice."""
    joined: list[pa.LargeStringArray] = []
    matched: list[pa.LargeStringArray] = []
    # In the order of the hash all of "non-persistent://" comes before all of "persistent://".
    for domain, names in ((NON_PERSISTENT, non_persistent), (PERSISTENT, persistent)):
        if names is not None and len(names):
            locals_, bases = _ordered(names, namespace, domain)
            joined.append(with_ends(locals_, f",{domain}://{namespace}/", ""))
            matched.append(with_ends(bases, f"{namespace}/", ""))
    every_joined, every_matched = _concat(joined), _concat(matched)
    order: _Array | None = None
    if not _is_sorted(every_matched):
        order = sorted_rows(every_matched).astype(row_type(len(every_matched)), copy=False)
        every_matched = every_matched.take(pa.array(order))
    return Columns(encode_fields(every_joined), every_joined.cast(pa.large_binary()), every_matched, order)


def _ordered(
    names: pa.LargeStringArray, namespace: NamespaceName, domain: str
) -> tuple[pa.LargeStringArray, pa.LargeStringArray]:
    """(local names, the same without partition suffix): in hash order, nothing twice, no system topics."""
    key = hash_order_key(names)
    if not is_ascending(key):
        names = names.take(pa.array(sorted_rows(key)))
        differs = pc.not_equal(names[:-1], names[1:])
        if differs.false_count:
            names = names.filter(pa.concat_arrays([pa.array([True]), differs]))
    bases = partitioned_local_names(names)
    hidden = system_topics(bases, namespace, domain)
    if hidden is not None:
        shown = pc.invert(hidden)
        names, bases = names.filter(shown), bases.filter(shown)
    return names, bases


def _is_sorted(column: pa.LargeStringArray) -> bool:
    return len(column) < 2 or bool(pc.all(pc.less_equal(column[:-1], column[1:])).as_py())


def _concat(columns: list[pa.LargeStringArray]) -> pa.LargeStringArray:
    if not columns:
        return pa.array([], pa.large_string())
    return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)


def encode_fields(joined: pa.LargeStringArray | pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """The protobuf field of each ``,name``: the tag, the length as a varint, and the name without its comma."""
    joined = joined.cast(pa.large_binary())
    if not len(joined):
        return joined
    sizes = np.diff(column_data(joined)[1]) - 1
    widths = _varint_widths(sizes)
    if widths.min() == widths.max():
        return _encoded(joined, sizes, int(widths[0]))
    parts = [(np.flatnonzero(widths == width), int(width)) for width in np.unique(widths)]
    encoded = [_encoded(joined.take(pa.array(rows)), sizes[rows], width) for rows, width in parts]
    places = np.empty(len(joined), np.int64)
    places[np.concatenate([rows for rows, _ in parts])] = np.arange(len(joined))
    return pa.concat_arrays(encoded).take(pa.array(places))


def decode_fields(fields: pa.Buffer, offsets: _Array) -> pa.LargeStringArray:
    """The names of encoded fields: the reverse of :func:`encode_fields`, without commas."""
    column = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), fields]
    )
    sizes = np.diff(offsets)
    # A field of one byte more than fits a width has one byte of length more, so the size alone says which it is.
    widths = np.ones(len(sizes), np.int8)
    for width in range(1, 5):
        widths += sizes > (1 << (7 * width)) + width
    if not len(widths) or widths.min() == widths.max():
        return without_ends(column, 1 + int(widths[0]) if len(widths) else 0, 0)
    parts = [(np.flatnonzero(widths == width), int(width)) for width in np.unique(widths)]
    decoded = [without_ends(column.take(pa.array(rows)), 1 + width, 0) for rows, width in parts]
    places = np.empty(len(column), np.int64)
    places[np.concatenate([rows for rows, _ in parts])] = np.arange(len(column))
    return pa.concat_arrays(decoded).take(pa.array(places))


def _varint_widths(sizes: _Array) -> _Array:
    widths = np.ones(len(sizes), np.int8)
    for width in range(1, 5):
        widths += sizes >= 1 << (7 * width)
    return widths


def _encoded(joined: pa.LargeBinaryArray, sizes: _Array, width: int) -> pa.LargeBinaryArray:
    """The fields of names whose lengths take ``width`` bytes each."""
    result = pc.binary_replace_slice(joined, 0, 1, bytes([_TAG]) + bytes(width))
    # The lengths go into the room that was left for them: the kernel's result is nobody else's yet.
    data, offsets = column_data(result)
    buffer = np.frombuffer(data, np.uint8)
    assert buffer.flags.writeable
    for place in range(width):
        more = 0x80 if place < width - 1 else 0
        buffer[offsets[:-1] + 1 + place] = (sizes >> (7 * place)) & 0x7F | more
    return result
