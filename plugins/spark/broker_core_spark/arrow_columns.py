"""Arrow columns of bytes: their buffers and offsets, prefixes and suffixes, order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Array", "buffer_and_offsets", "is_ascending", "not_utf8", "with_ends", "without_head"]

#: A column of numpy, of any type.
Array: TypeAlias = np.ndarray[Any, Any]
_END: Final = 2**31 - 1  # after the end of any value; Arrow's default overflows its sizes


def buffer_and_offsets(column: pa.LargeStringArray | pa.LargeBinaryArray) -> tuple[pa.Buffer, Array]:
    """The buffer of the bytes, and ``len + 1`` offsets into it (int64). A slice has the offsets of its own values."""
    _, offsets, data = column.buffers()
    every = (
        np.frombuffer(offsets, np.int64) if offsets is not None and offsets.size else np.zeros(1, np.int64)
    )
    own = every[column.offset : column.offset + len(column) + 1]
    return data if data is not None else pa.py_buffer(b""), own


def with_ends(column: pa.LargeStringArray, head: str, tail: str) -> pa.LargeStringArray:
    """Each value with ``head`` before it and ``tail`` after it."""
    # Replacing an empty slice at either end is several times faster than joining columns.
    result = column.cast(pa.large_binary())
    if head:
        result = pc.binary_replace_slice(result, 0, 0, head.encode())
    if tail:
        result = pc.binary_replace_slice(result, _END, _END, tail.encode())
    return result.cast(pa.large_string())


def without_head(column: pa.LargeBinaryArray, size: int) -> pa.LargeBinaryArray:
    """Each value without its first ``size`` bytes."""
    return pc.binary_slice(column, size, _END)


def is_ascending(column: pa.LargeBinaryArray) -> bool:
    """Whether each value is greater than the one before it."""
    return len(column) < 2 or bool(pc.all(pc.less(column[:-1], column[1:])).as_py())


def not_utf8(column: pa.Array) -> Iterator[tuple[int, bytes]]:
    """Rows, from 0 on, and values of texts or bytes that are no UTF-8, read one by one: for wrong columns alone."""
    for row, value in enumerate(column.cast(pa.large_binary()).to_pylist()):
        try:
            (value or b"").decode()
        except UnicodeDecodeError:
            yield row, value
