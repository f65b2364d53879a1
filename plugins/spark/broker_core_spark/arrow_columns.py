"""Arrow columns of bytes: their buffers and offsets, their order, values that are no text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Array", "buffer_and_offsets", "is_ascending", "not_utf8"]

#: A column of numpy, of any type.
Array: TypeAlias = np.ndarray[Any, Any]


def buffer_and_offsets(column: pa.LargeStringArray | pa.LargeBinaryArray) -> tuple[pa.Buffer, Array]:
    """The buffer of the bytes, and ``len + 1`` offsets into it (int64). A slice has the offsets of its own values."""
    _, offsets, data = column.buffers()
    every = (
        np.frombuffer(offsets, np.int64) if offsets is not None and offsets.size else np.zeros(1, np.int64)
    )
    own = every[column.offset : column.offset + len(column) + 1]
    return data if data is not None else pa.py_buffer(b""), own


def is_ascending(column: pa.LargeBinaryArray) -> bool:
    """Whether each value is greater than the one before it."""
    return len(column) < 2 or bool(pc.all(pc.less(column[:-1], column[1:])).as_py())


def not_utf8(column: pa.Array) -> Iterator[tuple[int, bytes]]:
    """The row, from 0 on, and the bytes of each value that is no UTF-8. Reads one by one: for wrong columns alone."""
    for row, value in enumerate(column.cast(pa.large_binary()).to_pylist()):
        try:
            (value or b"").decode()
        except UnicodeDecodeError:
            yield row, value
