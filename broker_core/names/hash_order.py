"""The order of names in a listing, required by the topics hash: by UTF-16 code units, as Java sorts strings.

The bytes of a key, of a column or of one name, sort in that order.

A column of bytes is sorted eight bytes of each name at a time. Arrow's own sort compares two names in memory, over and
over; with names that share a long prefix that is five times slower than sorting machine words of eight bytes of each,
and going on to the next eight only for names that are equal so far.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.names.name_columns import Array, column_data

__all__ = [
    "hash_order_bytes",
    "hash_order_key",
    "hash_order_keys",
    "is_ascending",
    "name_of_hash_order",
    "names_of_key",
    "sorted_rows",
]


# UTF-8 sorts characters beyond the BMP after U+E000..U+FFFF, UTF-16 before them. Their lead bytes (F0..F4) stay, and
# the lead bytes of U+E000..U+FFFF (EE, EF) become values that UTF-8 never uses: then bytes sort as UTF-16 does.
_UTF16_ORDER: Final = bytes({0xEE: 0xFE, 0xEF: 0xFF}.get(byte, byte) for byte in range(256))
_UTF8_ORDER: Final = bytes({0xFE: 0xEE, 0xFF: 0xEF}.get(byte, byte) for byte in range(256))
_FIRST_MOVED: Final = 0xEE


def hash_order_key(column: pa.LargeStringArray) -> pa.LargeBinaryArray:
    """A column of bytes that sorts as Java sorts the strings (by UTF-16 code units, as the topics hash requires)."""
    return _translated(column, _UTF16_ORDER, _FIRST_MOVED)


def names_of_key(key: pa.LargeBinaryArray) -> pa.LargeStringArray:
    """The strings of a :func:`hash_order_key`. Raises ``ArrowInvalid`` if it is not a key of strings."""
    return _translated(key, _UTF8_ORDER, _UTF16_ORDER[_FIRST_MOVED]).cast(pa.large_string())


def _translated(
    column: pa.LargeBinaryArray | pa.LargeStringArray, table: bytes, least: int
) -> pa.LargeBinaryArray:
    """The bytes of a column by a table, which leaves all below ``least`` as they are."""
    data, offsets = column_data(column)
    used = memoryview(data)[int(offsets[0]) : int(offsets[-1])]
    if not used or np.frombuffer(used, np.uint8).max() < least:
        return column.cast(pa.large_binary())
    buffers = [None, pa.py_buffer(offsets - offsets[0]), pa.py_buffer(bytes(used).translate(table))]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(column), buffers)


def hash_order_bytes(name: bytes) -> bytes:
    """The key of the UTF-8 bytes of one name."""
    return name.translate(_UTF16_ORDER)


def name_of_hash_order(key: bytes) -> str:
    """The name of which :func:`hash_order_bytes` gives the key."""
    return key.translate(_UTF8_ORDER).decode()


def hash_order_keys(column: pa.LargeStringArray) -> list[bytes]:
    """The key of each name of a column."""
    return [key.as_buffer().to_pybytes() for key in hash_order_key(column)]


def is_ascending(key: pa.LargeBinaryArray | pa.LargeStringArray) -> bool:
    """Whether each value is greater than the one before it: sorted, without duplicates."""
    if len(key) < 2:
        return True
    return bool(pc.all(pc.less(key[:-1], key[1:])).as_py())


_WORD = 8  # bytes compared at once


def sorted_rows(column: pa.LargeBinaryArray | pa.LargeStringArray) -> Array:
    """The rows of ``column`` in the order of their bytes (int64); equal ones in any order. No value may have a NUL."""
    words = _Words(column)
    order: Array = np.arange(len(column))
    tied = order.copy()  # places in `order` of names that are equal to a neighbour so far, in runs
    run = np.zeros(len(column), np.int64)  # the run that each of them belongs to, ascending
    start = _common_prefix(column)
    while len(tied):
        rows = order[tied]
        word = words.at(rows, start)
        by_word = _order_within(run, word)
        rows, word = rows[by_word], word[by_word]
        order[tied] = rows
        start += _WORD
        # Within their runs the rows were moved, the runs themselves keep their places.
        begins = np.concatenate(([True], (word[1:] != word[:-1]) | (run[1:] != run[:-1])))
        run = np.cumsum(begins) - 1
        # A run goes on if there are two in it at least, and one of them has more bytes.
        lengths = np.bincount(run)
        unread = np.bincount(run, weights=words.sizes[rows] > start)
        goes_on = ((lengths > 1) & (unread > 0))[run]
        tied, run = tied[goes_on], run[goes_on]
    return order


def _common_prefix(column: pa.LargeBinaryArray | pa.LargeStringArray) -> int:
    """The length of the common prefix of all values, in bytes."""
    if not len(column):
        return 0
    bounds = pc.min_max(column.cast(pa.large_binary()))
    least, most = bounds["min"].as_py(), bounds["max"].as_py()
    return next((at for at, (a, b) in enumerate(zip(least, most, strict=False)) if a != b), len(least))


def _order_within(run: Array, word: Array) -> Array:
    """The order by run, then by word."""
    # Both in one number if they fit into it, which sorts several times faster: most bits of the words are the same.
    differing = int(np.bitwise_or.reduce(word ^ word[0]))
    unused = (differing & -differing).bit_length() - 1 if differing else 0
    width = differing.bit_length() - unused
    if width + int(run[-1]).bit_length() <= 64:
        low = (word >> np.uint64(unused)) & np.uint64((1 << width) - 1)
        return np.argsort(low if run[-1] == run[0] else (run.astype(np.uint64) << np.uint64(width)) | low)
    return np.lexsort((word, run))


class _Words:
    """Eight bytes of each name as a number in the order of the bytes; zeros after the end of a name."""

    def __init__(self, column: pa.LargeBinaryArray | pa.LargeStringArray) -> None:
        data, offsets = column_data(column)
        first = int(offsets[0])
        self.sizes: Array = np.diff(offsets)
        self._starts = offsets[:-1] - first
        used = memoryview(data)[first : int(offsets[-1])]
        padded = np.zeros(len(used) + _WORD, np.uint8)
        padded[: len(used)] = np.frombuffer(used, np.uint8)
        # Overlapping words, one from each byte on.
        self._words = np.ndarray((len(used) + 1,), ">u8", padded, strides=(1,))

    def at(self, rows: Array, start: int) -> Array:
        left = self.sizes[rows] - start
        places = np.minimum(self._starts[rows] + start, len(self._words) - 1)
        word = self._words[places].astype(np.uint64)
        cut = np.clip(_WORD - left, 0, _WORD).astype(np.uint64) * np.uint64(8)
        # A shift by all 64 bits is undefined, so it is done in two steps.
        half = cut // np.uint64(2)
        result: Array = word >> half >> (cut - half) << half << (cut - half)
        return result
