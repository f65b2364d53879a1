"""The details of topics as values of JSON, a column at a time.

Ids of topics are 22 characters of URL-safe base64 without padding (KIP-516).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.listing.chunks.json_escapes import escaped, needs_escapes
from broker_core.names import Array, column_data

__all__ = ["JSON_VALUES", "all_pairs_bytes", "between", "joined_texts", "pairs_bytes", "topic_id_texts"]


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


_END: Final = 2**31 - 1  # after the end of any text; Arrow's own default overflows its sizes
_NULL: Final = pa.scalar(b"null", pa.large_binary())


def joined_texts(*texts: pa.LargeBinaryArray, separator: bytes = b"") -> pa.LargeBinaryArray:
    """The texts of each row one after the other."""
    return pc.binary_join_element_wise(*texts, pa.scalar(separator, pa.large_binary()))


def between(head: bytes, texts: pa.LargeBinaryArray, tail: bytes = b"") -> pa.LargeBinaryArray:
    """Each text between ``head`` and ``tail``."""
    # Replacing nothing at either end is several times faster than joining.
    if head:
        texts = pc.binary_replace_slice(texts, 0, 0, head)
    return pc.binary_replace_slice(texts, _END, _END, tail) if tail else texts


def _number(column: pa.Int32Array) -> pa.LargeBinaryArray:
    return _or_null(column, column.cast(pa.large_string()).cast(pa.large_binary()))


def _topic_id(column: pa.FixedSizeBinaryArray) -> pa.LargeBinaryArray:
    return _or_null(column, topic_id_texts(column, quote=b'"'))


def _text_map(column: pa.MapArray) -> pa.LargeBinaryArray:
    """Each map as an object, its keys in the order that they have."""
    offsets = column.offsets.to_numpy()
    first, count = offsets.item(0), offsets.item(-1) - offsets.item(0)
    keys, items = (_quotable(each.slice(first, count)) for each in (column.keys, column.items))
    each_pair = joined_texts(between(b',"', keys), between(b"", items, b'"'), separator=b'":"')
    data, at = column_data(each_pair)
    # The pairs of a map are adjacent, so that all of them are one text.
    pairs = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(column), [None, pa.py_buffer(at[offsets - first]), data]
    )
    return _or_null(column, between(b"", pc.binary_replace_slice(pairs, 0, 1, b"{"), b"}"))


#: How each column is shown, by its name.
JSON_VALUES: Final[Mapping[str, Callable[[Any], pa.LargeBinaryArray]]] = MappingProxyType(
    {"partitions": _number, "topic_id": _topic_id, "properties": _text_map}
)


def pairs_bytes(column: pa.MapArray) -> Array:
    """Bytes of the keys and values of each map (int64)."""
    offsets = column.offsets.to_numpy()
    total = np.zeros(len(column), np.int64)
    for texts in (column.keys, column.items):
        total += np.diff(column_data(texts.cast(pa.large_string()))[1][offsets])
    return total


def all_pairs_bytes(column: pa.MapArray) -> int:
    """Bytes of the keys and values of all maps, by offsets alone."""
    if not len(column):
        return 0
    low, high = column.offsets[0].as_py(), column.offsets[len(column)].as_py()
    return sum(_bytes(texts.slice(low, high - low)) for texts in (column.keys, column.items))


def _bytes(texts: pa.StringArray) -> int:
    offsets = texts.buffers()[1]
    if offsets is None or not len(texts):
        return 0
    edges = np.frombuffer(offsets, np.int32)
    return edges.item(texts.offset + len(texts)) - edges.item(texts.offset)


def _quotable(column: pa.StringArray) -> pa.LargeBinaryArray:
    texts = column.cast(pa.large_string()).cast(pa.large_binary())
    return escaped(texts) if needs_escapes(texts) else texts


def _or_null(column: pa.Array[Any], texts: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
    return pc.if_else(column.is_valid(), texts, _NULL) if column.null_count else texts
