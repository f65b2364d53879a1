"""Columns of the protobuf fields of topics' names, encoded and decoded.

One field is the work of :mod:`~broker_core.listing.fields.topic_field`. Names have at most 32,767 bytes, so that a
length takes one to three bytes; the size of a field tells how many.

Fields that a plugin or a file brings are checked: every byte of the names that an answer sends.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.errors import InvalidListing
from broker_core.listing.fields.topic_field import TAG
from broker_core.names import (
    NON_PERSISTENT,
    PERSISTENT,
    Array,
    Mode,
    NamespaceName,
    column_data,
    hash_order_key,
    is_ascending,
    partitioned_local_names,
    split_full_names,
    system_topic_mask,
    without_ends,
)

__all__ = [
    "SHORT_FIELD",
    "alike_start",
    "binary_column",
    "check_fields",
    "checked_column",
    "decode_fields",
    "encode_fields",
    "fields_fault",
    "gathered",
    "joined_fields",
    "name_start",
]


#: The size of a field up to which its name begins after two bytes, as nearly every topic's does.
SHORT_FIELD: Final = 129


def name_start(size: int) -> int:
    """The offset of the name in a field of ``size`` bytes."""
    width = 1
    while size > (1 << (7 * width)) + width:
        width += 1
    return 1 + width


def alike_start(sizes: Array) -> int | None:
    """The offset of the name in each field of the given sizes, at least one; ``None`` if it differs."""
    start = name_start(int(sizes.min()))
    return start if start == name_start(int(sizes.max())) else None


def binary_column(data: pa.Buffer, offsets: Array) -> pa.LargeBinaryArray:
    """The column of the bytes between ``offsets`` (int64, one more than there are values); nothing is copied."""
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), data]
    )


def gathered(data: pa.Buffer, offsets: Array, rows: Array) -> tuple[pa.Buffer, Array]:
    """The bytes of ``rows`` of a column of bytes, and their offsets."""
    return column_data(binary_column(data, offsets).take(pa.array(rows)))


def joined_fields(data: pa.Buffer, offsets: Array, rows: Array) -> tuple[bytes, list[int]]:
    """The bytes of a few ``rows`` of a column of bytes, and how many each has; one by one, which is quicker for few."""
    view = memoryview(data)
    starts, stops = offsets[rows].tolist(), offsets[rows + 1].tolist()
    values = [view[start:stop] for start, stop in zip(starts, stops, strict=True)]
    return b"".join(values), list(map(len, values))


def encode_fields(joined: pa.LargeStringArray | pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    """The field of each ``,name``, without its comma."""
    joined = joined.cast(pa.large_binary())
    if not len(joined):
        return joined
    sizes = np.diff(column_data(joined)[1]) - 1
    widths = np.ones(len(sizes), np.int8)
    for width in range(1, 5):
        widths += sizes >= 1 << (7 * width)
    return _by_width(joined, widths, lambda column, rows, width: _encoded(column, sizes[rows], width))


def decode_fields(fields: pa.LargeBinaryArray, *, comma: bool = False, skip: int = 0) -> pa.LargeStringArray:
    """The names of fields, each after a comma if ``comma`` is set (then as ``large_binary``).

    The fields are what :func:`encode_fields` gives; the names are UTF-8. The first ``skip`` bytes of each name, which
    are whole characters, are left out.
    """
    if not len(fields):
        return fields.cast(pa.large_binary() if comma else pa.large_string())
    sizes = np.diff(column_data(fields)[1])

    def decoded(column: pa.LargeBinaryArray, _rows: Any, width: int) -> Any:
        if comma:
            return pc.binary_replace_slice(column, 0, 1 + width, b",")
        return without_ends(column, 1 + width + skip, 0)

    start = alike_start(sizes)
    if start is not None:  # as a rule, and then nothing is done name by name
        return decoded(fields, None, start - 1)
    return _by_width(fields, _head_widths(sizes), decoded)


def fields_fault(fields: pa.LargeBinaryArray) -> str | None:
    """A description of what is wrong with bytes as fields; ``None`` if all are well-formed."""
    data, offsets = column_data(fields)
    sizes = np.diff(offsets)
    if not len(sizes):
        return None
    if int(sizes.min()) < 3:
        return "a name is empty"
    bytes_of = np.frombuffer(data, np.uint8)
    starts = offsets[:-1]
    if not (bytes_of[starts] == TAG).all():
        return "a field has another tag"
    widths = _head_widths(sizes)
    lengths = sizes - 1 - widths
    if (lengths < np.where(widths > 1, 1 << (7 * (widths.astype(np.int64) - 1)), 1)).any():
        return "a name is not encoded as it must be: its length takes more bytes than it needs"
    for place in range(int(widths.max())):
        has = slice(None) if widths.min() > place else np.flatnonzero(widths > place)
        more = np.where(widths[has] > place + 1, 0x80, 0)
        if not (bytes_of[starts[has] + 1 + place] == ((lengths[has] >> (7 * place)) & 0x7F | more)).all():
            return "a name is not encoded as it must be: its length is another one"
    return None


def _head_widths(sizes: Array) -> Array:
    """Number of bytes that the length takes in fields of the given sizes."""
    widths = np.ones(len(sizes), np.int8)
    for width in range(1, 5):
        # A field of one byte more than fits a width has one byte of length more, so the size alone decides.
        widths += sizes > (1 << (7 * width)) + width
    return widths


def _by_width(column: pa.LargeBinaryArray, widths: Array, work: Any) -> Any:
    """``work(column, rows, width)`` of the values of each width, put together again in order."""
    if widths.min() == widths.max():
        return work(column, slice(None), int(widths[0]))
    parts = [(np.flatnonzero(widths == width), int(width)) for width in np.unique(widths)]
    done = [work(column.take(pa.array(rows)), rows, width) for rows, width in parts]
    places = np.empty(len(column), np.int64)
    places[np.concatenate([rows for rows, _ in parts])] = np.arange(len(column))
    return pa.concat_arrays(done).take(pa.array(places))


def _encoded(joined: pa.LargeBinaryArray, sizes: Array, width: int) -> pa.LargeBinaryArray:
    """The fields of names whose lengths take ``width`` bytes each."""
    result = pc.binary_replace_slice(joined, 0, 1, bytes([TAG]) + bytes(width))
    # The lengths go into the room that was left for them: nothing else has the kernel's result yet.
    data, offsets = column_data(result)
    buffer = np.frombuffer(data, np.uint8)
    assert buffer.flags.writeable
    for place in range(width):
        more = 0x80 if place < width - 1 else 0
        buffer[offsets[:-1] + 1 + place] = (sizes >> (7 * place)) & 0x7F | more
    return result


def checked_column(data: pa.Buffer, offsets: Array, rows: Array | None = None) -> pa.LargeBinaryArray:
    """The column of the given rows (``None``: all), whose offsets are checked before Arrow follows them."""
    starts, ends = (offsets[:-1], offsets[1:]) if rows is None else (offsets[rows], offsets[rows + 1])
    if len(starts) and (int(starts.min()) < 0 or int(ends.max()) > data.size or bool((ends <= starts).any())):
        raise InvalidListing("the offsets of encoded names do not ascend within their bytes")
    if rows is None:
        return binary_column(data, offsets)
    sizes = ends - starts
    places = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    if not len(sizes):
        return pa.array([], pa.large_binary())
    # Gathered without Arrow, which would follow every offset of the column.
    at = np.repeat(starts - places[:-1], sizes) + np.arange(int(places[-1]))
    return binary_column(pa.py_buffer(np.frombuffer(data, np.uint8)[at]), places)


def check_fields(fields: pa.LargeBinaryArray, namespace: NamespaceName, mode: Mode) -> None:
    """Raise :exc:`InvalidListing` unless ``fields`` are encoded names of a listing of this namespace and mode."""
    if not len(fields):
        return
    fault = fields_fault(fields)
    if fault is not None:
        raise InvalidListing(f"encoded names of {namespace}: {fault}")
    try:
        names = decode_fields(fields)
    except pa.ArrowInvalid as error:
        raise InvalidListing(f"encoded names of {namespace} are no UTF-8: {error!s:.200}") from None
    if not is_ascending(hash_order_key(names)):
        raise InvalidListing(f"encoded names of {namespace} are not in the order of the hash, each once")
    for domain, locals_ in zip(
        (PERSISTENT, NON_PERSISTENT), split_full_names(names, namespace, mode), strict=True
    ):
        if (
            len(locals_)
            and system_topic_mask(partitioned_local_names(locals_), namespace, domain) is not None
        ):
            raise InvalidListing(f"among the encoded names of {namespace} are system topics")
