"""Topic ids as text, a column of them at a time: 22 characters of URL-safe base64 without padding (KIP-516)."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

__all__ = ["topic_id_texts"]

_Array = np.ndarray[Any, Any]

_BYTES: Final = 16
_CHARACTERS: Final = 22
_ALPHABET: Final = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", np.uint8
)
#: The two characters of each value of twelve bits.
_PAIRS: Final = np.ascontiguousarray(
    np.stack([np.repeat(_ALPHABET, 64), np.tile(_ALPHABET, 64)], axis=1)
).view(np.uint16)[:, 0]


def topic_id_texts(ids: pa.FixedSizeBinaryArray, quote: bytes = b"") -> pa.LargeBinaryArray:
    """The text of each id of 16 bytes, between ``quote`` (one byte, or none); any text, not null, for a null."""
    count = len(ids)
    if not count:
        return pa.array([], pa.large_binary())
    every = np.frombuffer(ids.buffers()[1], np.uint8)
    padded = np.zeros((count, 18), np.uint8)
    padded[:, :_BYTES] = every[_BYTES * ids.offset : _BYTES * (ids.offset + count)].reshape(count, _BYTES)
    first, second, third = (padded[:, place::3].astype(np.uint16) for place in range(3))
    twelve_bits = np.empty((count, 12), np.uint16)
    twelve_bits[:, ::2] = first << 4 | second >> 4
    twelve_bits[:, 1::2] = (second & 0xF) << 8 | third
    width = _CHARACTERS + 2 * len(quote)
    texts = np.full((count, width), ord(quote or b"-"), np.uint8)
    texts[:, len(quote) : len(quote) + _CHARACTERS] = _PAIRS.take(twelve_bits, mode="wrap").view(np.uint8)[
        :, :_CHARACTERS
    ]
    offsets = np.arange(0, width * count + 1, width)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(texts)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), count, buffers)
