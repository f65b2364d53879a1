"""A listing that holds the encoded fields alone: all that sending needs.

What else a listing has (names joined for the hash, forms that patterns match) is made of the fields when somebody
wants it: a mask of visible names, say, or an operator who has every answer verified.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from broker_core.listing import Listing
from broker_core.listing_memo import Memo
from broker_core.name_columns import column_data
from broker_core.names import Mode, NamespaceName
from broker_core.selection import Part

__all__ = ["FieldsListing", "names_of_fields"]

_Array = np.ndarray[Any, Any]

# A field is a tag, the length as a varint, and the name: with these sizes it has one byte of length more.
_LONG = 1 + 1 + 128
_LONGER = 1 + 2 + 128 * 128


class FieldsListing(Listing):
    """The listing of ``fields`` (encoded, in the order of the hash, checked), whose hash is known."""

    __slots__ = ("_rest",)

    def __init__(
        self, namespace: NamespaceName, mode: Mode, fields: pa.LargeBinaryArray, topics_hash: str
    ) -> None:
        self.namespace = namespace
        self.mode = mode
        self.fields, self.field_offsets = column_data(fields)
        self.memo: Memo[Part] = Memo(0)
        self._hash = topics_hash
        self._places = None
        self._last_range = None
        self._rest: Listing | None = None

    @property
    def column_bytes(self) -> int:
        """Bytes of the fields; of all columns once the others were made."""
        rest = 0 if self._rest is None else self._rest.column_bytes
        return int(self.fields.size + self.field_offsets.nbytes) + rest

    def _full(self) -> Listing:
        if self._rest is None:
            self._rest = Listing.from_names(
                self.namespace, self.mode, names_of_fields(self.fields, self.field_offsets)
            )
        return self._rest

    @property
    def joined(self) -> pa.Buffer:
        return self._full().joined

    @property
    def joined_offsets(self) -> _Array:  # type: ignore[override]
        return self._full().joined_offsets

    @property
    def matched(self) -> pa.LargeStringArray:
        return self._full().matched

    @property
    def matched_offsets(self) -> _Array:  # type: ignore[override]
        return self._full().matched_offsets

    @property
    def by_matched(self) -> _Array | None:  # type: ignore[override]
        return self._full().by_matched

    @property
    def has_newline(self) -> bool:  # type: ignore[override]
        return self._full().has_newline


def names_of_fields(data: pa.Buffer, offsets: _Array) -> pa.LargeStringArray:
    """The full names in encoded fields."""
    sizes = np.diff(offsets)
    heads = 2 + (sizes >= _LONG) + (sizes >= _LONGER)
    # Heads and names by turns over the same memory, of which the names are taken.
    edges = np.empty(2 * len(sizes) + 1, np.int64)
    edges[0::2] = offsets
    edges[1::2] = offsets[:-1] + heads
    halves = pa.LargeStringArray.from_buffers(len(edges) - 1, pa.py_buffer(edges), data)
    return halves.take(pa.array(np.arange(1, len(edges) - 1, 2)))
