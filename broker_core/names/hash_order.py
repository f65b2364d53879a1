"""The order of names in a listing, required by the topics hash: by UTF-16 code units, as Java sorts strings.

The bytes of a key, of a column or of one name, sort in that order.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.names.name_columns import column_data

__all__ = [
    "hash_order_bytes",
    "hash_order_key",
    "hash_order_keys",
    "is_ascending",
    "name_of_hash_order",
    "names_of_key",
]

# UTF-8 sorts characters beyond the BMP after U+E000..U+FFFF, UTF-16 before them. Their lead bytes (F0..F4) stay, and
# the lead bytes of U+E000..U+FFFF (EE, EF) become values that UTF-8 never uses: then bytes sort as UTF-16 does.
_UTF16_ORDER: Final = bytes({0xEE: 0xFE, 0xEF: 0xFF}.get(byte, byte) for byte in range(256))
_UTF8_ORDER: Final = bytes({0xFE: 0xEE, 0xFF: 0xEF}.get(byte, byte) for byte in range(256))
_FIRST_MOVED: Final = 0xEE


def hash_order_key(column: pa.LargeStringArray) -> pa.LargeBinaryArray:
    """A column of bytes that sorts as Java sorts the strings (by UTF-16 code units, as the topics hash requires)."""
    data, offsets = column_data(column)
    used = memoryview(data)[int(offsets[0]) : int(offsets[-1])]
    if not used or np.frombuffer(used, np.uint8).max() < _FIRST_MOVED:
        return column.cast(pa.large_binary())
    moved = pa.py_buffer(bytes(used).translate(_UTF16_ORDER))
    return pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(column), [None, pa.py_buffer(offsets - offsets[0]), moved]
    )


def names_of_key(key: pa.LargeBinaryArray) -> pa.LargeStringArray:
    """The strings of a :func:`hash_order_key`. Raises ``ArrowInvalid`` if it is not a key of strings."""
    data, offsets = column_data(key)
    used = memoryview(data)[int(offsets[0]) : int(offsets[-1])]
    if used and np.frombuffer(used, np.uint8).max() > _UTF16_ORDER[_FIRST_MOVED] - 1:
        back = pa.py_buffer(bytes(used).translate(_UTF8_ORDER))
        key = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(key), [None, pa.py_buffer(offsets - offsets[0]), back]
        )
    return key.cast(pa.large_string())


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
