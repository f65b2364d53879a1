"""Keys of names, which sort as all names of a catalogue do: making them, reading them, ranges of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core import EncodedNames
from broker_core_spark.arrow_columns import Array
from broker_core_spark.format import DOMAIN_ORDER

__all__ = [
    "NAMESPACE_END",
    "NEXT",
    "KeyRanges",
    "end_of_namespace",
    "first_of_namespace",
    "first_row",
    "key_at",
    "local_names",
    "name_of_key",
    "namespace_ranges",
    "order_key",
    "segment_ids",
]

#: Half-open ranges of keys, sorted and disjoint. An empty ``high`` has no end.
KeyRanges = Sequence[tuple[bytes, bytes]]
#: The byte after the namespace in a key.
NAMESPACE_END: Final = b"\x01"
#: The byte that, after a key, makes the next key.
NEXT: Final = b"\x00"
#: Bytes that sort after every key with the same beginning: no key has two of these bytes in a row.
_AFTER_ALL: Final = b"\xff\xff"


def order_key(namespace: str, domain: str, names: pa.LargeStringArray) -> pa.LargeBinaryArray:
    """The key of each local name."""
    # \x01 sorts before every character of a namespace.
    head = f"{namespace}\x01{DOMAIN_ORDER.index(domain)}".encode()
    return pc.binary_replace_slice(EncodedNames.sort_key(names), 0, 0, head)


def first_of_namespace(namespace: str) -> bytes:
    """A key in front of all keys of a namespace."""
    return namespace.encode() + NAMESPACE_END


def end_of_namespace(namespace: str) -> bytes:
    """A key after all keys of a namespace, and before the next one's."""
    return namespace.encode() + b"\x02"


def name_of_key(key: bytes) -> tuple[str, str, str]:
    """(namespace, domain, local name) of one key."""
    end = key.index(NAMESPACE_END) + 2
    namespace, domain = _parsed(key[:end])
    return (
        namespace,
        domain,
        EncodedNames.names_of_key(pa.array([key[end:]], pa.large_binary()))[0].as_py(),
    )


def key_at(keys: pa.LargeBinaryArray, row: int) -> bytes:
    """One key of a column."""
    key: bytes = keys[row].as_py()
    return key


def first_row(keys: pa.LargeBinaryArray, key: bytes, low: int = 0) -> int:
    """The first row from ``low`` on of sorted keys that is not in front of a key."""
    return bisect_left(range(len(keys)), key, low, key=lambda row: key_at(keys, row))


def namespace_ranges(keys: pa.LargeBinaryArray) -> Iterator[tuple[str, str, int, int]]:
    """(namespace, domain, low, high) of each run of equal namespaces and domains in a sorted column of keys."""
    low = 0
    while low < len(keys):
        first = key_at(keys, low)
        head = first[: first.index(NAMESPACE_END) + 2]
        high = first_row(keys, head + _AFTER_ALL, low)
        namespace, domain = _parsed(head)
        yield namespace, domain, low, high
        low = high


def _parsed(head: bytes) -> tuple[str, str]:
    return head[:-2].decode(), DOMAIN_ORDER[head[-1] - ord("0")]


def local_names(keys: pa.LargeBinaryArray, namespace: str) -> pa.LargeStringArray:
    """The local names of keys of one namespace and domain."""
    # The end is after that of any value: Arrow's default overflows its sizes.
    return EncodedNames.names_of_key(pc.binary_slice(keys, len(namespace.encode()) + 2, 2**31 - 1))


def segment_ids(cuts: Sequence[bytes] | pa.LargeBinaryArray, keys: pa.LargeBinaryArray) -> Array:
    """The number of each key's segment (int64): how many of the sorted ``cuts`` are not after the key."""
    # Binary search for all keys together.
    low = np.zeros(len(keys), np.int64)
    if not len(cuts) or not len(keys):
        return low
    column = pa.array(cuts, pa.large_binary()) if isinstance(cuts, Sequence) else cuts
    high = np.full(len(keys), len(cuts), np.int64)
    while (low < high).any():
        middle = np.minimum((low + high) // 2, len(cuts) - 1)
        not_after = pc.less_equal(column.take(pa.array(middle)), keys).to_numpy(zero_copy_only=False)
        searching = low < high
        low = np.where(searching & not_after, middle + 1, low)
        high = np.where(searching & ~not_after, middle, high)
    return low
