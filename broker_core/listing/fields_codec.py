"""The protobuf field of a topic's name, ``repeated string topics = 2``: one codec, of one name and of columns.

A field is the tag ``0x12``, the length as a varint of the fewest bytes, and the name. Names have at most 32,767 bytes,
so that a length takes one to three bytes; the size of a field tells how many.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.names.name_columns import column_data, without_ends

__all__ = [
    "TAG",
    "MalformedFields",
    "binary_column",
    "decode_fields",
    "encode_fields",
    "fields_fault",
    "name_start",
    "read_fields",
    "read_varint",
    "topic_field",
    "varint",
]

TAG: Final = 0x12  # field 2, length-delimited
#: Bytes; a shorter run of fields is read one by one.
_WALKED: Final = 64 * 1024
_SMALL: Final = tuple(bytes((value,)) for value in range(0x80))
_Array = np.ndarray[Any, Any]


class MalformedFields(ValueError):
    """Bytes from outside are no fields; the message goes on from what they are of."""


def varint(value: int) -> bytes:
    """A number as protobuf writes it: seven bits a byte, the lowest first."""
    if value < 0x80:
        return _SMALL[value]
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def topic_field(name: str) -> bytes:
    """The field of one name."""
    encoded = name.encode()
    return b"\x12" + varint(len(encoded)) + encoded


def name_start(size: int) -> int:
    """Where the name begins in a field of ``size`` bytes."""
    width = 1
    while size > (1 << (7 * width)) + width:
        width += 1
    return 1 + width


def binary_column(data: pa.Buffer, offsets: _Array) -> pa.LargeBinaryArray:
    """The column of the bytes between ``offsets`` (int64, one more than there are values); nothing is copied."""
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), data]
    )


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


def decode_fields(fields: pa.LargeBinaryArray, *, comma: bool = False) -> pa.LargeStringArray:
    """The names of fields, each behind a comma if ``comma`` says so (then as ``large_binary``).

    The fields are what :func:`encode_fields` gives; the names are UTF-8.
    """
    if not len(fields):
        return fields.cast(pa.large_binary() if comma else pa.large_string())
    sizes = np.diff(column_data(fields)[1])

    def decoded(column: pa.LargeBinaryArray, _rows: Any, width: int) -> Any:
        if comma:
            return pc.binary_replace_slice(column, 0, 1 + width, b",")
        return without_ends(column, 1 + width, 0)

    start = name_start(int(sizes.min()))
    if start == name_start(int(sizes.max())):  # as a rule, and then nothing is looked at name by name
        return decoded(fields, None, start - 1)
    return _by_width(fields, _head_widths(sizes), decoded)


def fields_fault(fields: pa.LargeBinaryArray) -> str | None:
    """What is wrong with these bytes as fields; ``None`` where each is encoded as it must be."""
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


def _head_widths(sizes: _Array) -> _Array:
    """How many bytes the length takes in fields of these sizes."""
    widths = np.ones(len(sizes), np.int8)
    for width in range(1, 5):
        # A field of one byte more than fits a width has one byte of length more, so the size alone says which it is.
        widths += sizes > (1 << (7 * width)) + width
    return widths


def _by_width(column: pa.LargeBinaryArray, widths: _Array, work: Any) -> Any:
    """``work(column, rows, width)`` of the values of each width, put together again in order."""
    if widths.min() == widths.max():
        return work(column, slice(None), int(widths[0]))
    parts = [(np.flatnonzero(widths == width), int(width)) for width in np.unique(widths)]
    done = [work(column.take(pa.array(rows)), rows, width) for rows, width in parts]
    places = np.empty(len(column), np.int64)
    places[np.concatenate([rows for rows, _ in parts])] = np.arange(len(column))
    return pa.concat_arrays(done).take(pa.array(places))


def _encoded(joined: pa.LargeBinaryArray, sizes: _Array, width: int) -> pa.LargeBinaryArray:
    """The fields of names whose lengths take ``width`` bytes each."""
    result = pc.binary_replace_slice(joined, 0, 1, bytes([TAG]) + bytes(width))
    # The lengths go into the room that was left for them: the kernel's result is nobody else's yet.
    data, offsets = column_data(result)
    buffer = np.frombuffer(data, np.uint8)
    assert buffer.flags.writeable
    for place in range(width):
        more = 0x80 if place < width - 1 else 0
        buffer[offsets[:-1] + 1 + place] = (sizes >> (7 * place)) & 0x7F | more
    return result


def read_varint(data: memoryview, position: int) -> tuple[int, int]:
    """The number at ``position``, and where it ends; :exc:`MalformedFields`, or :exc:`IndexError` at the end."""
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & 0xFFFF_FFFF_FFFF_FFFF, position
        shift += 7
        if shift > 63:
            raise MalformedFields("has a number of more than 64 bits")


def read_fields(data: memoryview, position: int, end: int) -> tuple[_Array, _Array, int]:
    """Where the names of the fields from ``position`` on begin, their lengths, and where their run ends.

    The bytes are anybody's, and ``end`` is within them. Raises :exc:`MalformedFields` for a field that reaches beyond
    ``end``, and :exc:`IndexError` for one whose length does.
    """
    if end - position > _WALKED:
        found = _search_run(data, position, end)
        if found is not None:
            return found
    starts: list[int] = []
    lengths: list[int] = []
    while position < end and data[position] == TAG:
        length = data[position + 1]
        start = position + 2
        if length >= 0x80:
            length, start = read_varint(data, position + 1)
        position = start + length
        starts.append(start)
        lengths.append(length)
    if position > end:
        raise MalformedFields("is truncated")
    return np.array(starts, np.int64), np.array(lengths, np.int64), position


def _search_run(data: memoryview, position: int, end: int) -> tuple[_Array, _Array, int] | None:
    """The same at once, or ``None`` where the records cannot be told apart at sight."""
    body = np.frombuffer(data, np.uint8)[position:end]
    size = len(body)
    chunk = 1 << 17  # the search stays in the processor's cache
    heads: _Array = np.concatenate(
        [np.flatnonzero(body[start : start + chunk] == TAG) + start for start in range(0, size, chunk)]
    )
    heads = heads[heads < size - 4]
    # The length: seven bits a byte, the lowest first, of at most three bytes.
    lengths: _Array = body[heads + 1].astype(np.int64)
    starts: _Array = heads + 2
    long = np.flatnonzero(lengths >= 0x80)
    if len(long):
        second = body[heads[long] + 2].astype(np.int64)
        third = body[heads[long] + 3].astype(np.int64)
        three = second >= 0x80
        longest = np.where(third < 0x80, third << 14, size)  # more bytes: too long for a name, or none at all
        lengths[long] = (lengths[long] & 0x7F) | (second & 0x7F) << 7 | np.where(three, longest, 0)
        starts[long] += 1 + three
    # Every full name begins with a domain. That tells most records from a 0x12 that is a length, or within a name.
    first = body[np.minimum(starts, size - 1)]
    real = (first == ord("p")) | (first == ord("n"))
    if not real.all():
        heads, starts, lengths = heads[real], starts[real], lengths[real]
    if not len(heads) or heads[0] != 0:
        return None
    ends = starts + lengths
    chained = ends[:-1] == heads[1:]
    count = len(heads) if chained.all() else int(np.argmin(chained)) + 1
    run_end = int(ends[count - 1])
    if run_end > size or (run_end < size and body[run_end] == TAG):
        return None
    return starts[:count] + position, lengths[:count], position + run_end
