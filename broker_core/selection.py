"""Some topics of a listing: the answer to a question, as a slice of the listing's columns or a few gathered rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from broker_core.listing import Listing
from broker_core.name_columns import without_ends
from broker_core.pattern_scan import matching_rows, quick_to_match
from broker_core.patterns import TopicsPattern
from broker_core.topics_hash import crc_text, extend_crc

__all__ = ["Selection"]


class Selection:
    """Rows of one listing, in its order: either ``low`` to ``high`` (nothing is copied) or an array of positions.

    Immutable; the hash and the gathered bytes are made when they are first asked for. ``pattern`` is the pattern that the
    core itself has applied, so that nobody checks it again.
    """

    __slots__ = ("_fields_size", "_hash", "_rows", "high", "listing", "low", "pattern")

    def __init__(
        self,
        listing: Listing,
        low: int,
        high: int,
        rows: np.ndarray[Any, Any] | None = None,
        pattern: str | None = None,
    ) -> None:
        self.listing = listing
        self.low = low
        self.high = high
        self._rows = rows
        self.pattern = pattern
        self._hash: str | None = None
        self._fields_size: int | None = None

    @classmethod
    def of_rows(cls, listing: Listing, rows: np.ndarray[Any, Any], pattern: str | None = None) -> Selection:
        """The topics at ``rows`` (ascending, each once); neighbours make a slice."""
        if not len(rows):
            return cls(listing, 0, 0, pattern=pattern)
        low, high = int(rows[0]), int(rows[-1]) + 1
        if high - low == len(rows):
            return cls(listing, low, high, pattern=pattern)
        narrow = np.uint32 if len(listing) < 2**32 else np.int64
        return cls(listing, low, high, rows.astype(narrow, copy=False), pattern)

    def __len__(self) -> int:
        return self.high - self.low if self._rows is None else len(self._rows)

    @property
    def is_slice(self) -> bool:
        """Whether this is a contiguous part of the shared listing, which sending does not copy."""
        return self._rows is None

    @property
    def row_array(self) -> np.ndarray[Any, Any]:
        """The positions in the listing, ascending."""
        return np.arange(self.low, self.high) if self._rows is None else self._rows

    @property
    def fields_size(self) -> int:
        """Bytes of the encoded ``topics`` fields: the body of the response."""
        if self._fields_size is None:
            offsets = self.listing.field_offsets
            if self._rows is None:
                self._fields_size = int(offsets[self.high] - offsets[self.low])
            else:
                self._fields_size = int((offsets[1:][self._rows] - offsets[:-1][self._rows]).sum())
        return self._fields_size

    @property
    def heap_bytes(self) -> int:
        """What answering with this allocates beyond the shared listing (PIP-442's heap permits)."""
        return 0 if self._rows is None else 2 * self.fields_size + int(self._rows.nbytes)

    @property
    def remembered_bytes(self) -> int:
        """What the listing holds on to when it remembers this selection: positions, never gathered bytes."""
        return 0 if self._rows is None else int(self._rows.nbytes)

    @property
    def topics_hash(self) -> str:
        """The topics hash of exactly these names."""
        if self._hash is None:
            if self._rows is None:
                self._hash = self.listing.range_hash(self.low, self.high)
            else:
                joined = memoryview(_gather(self.listing.joined, self.listing.joined_offsets, self._rows))
                self._hash = crc_text(extend_crc(0, joined[:-1]))
        return self._hash

    @property
    def hash_known(self) -> bool:
        """Whether :attr:`topics_hash` is there already and costs nothing."""
        if self._hash is not None:
            return True
        return self._rows is None and self.listing.known_range_hash(self.low, self.high) is not None

    @property
    def names(self) -> pa.LargeStringArray:
        """The full names, in the order of the hash."""
        fields, offsets = self.listing.joined, self.listing.joined_offsets
        if self._rows is None:
            own = offsets[self.low : self.high + 1]
        else:
            fields, own = _gather_with_offsets(fields, offsets, self._rows)
        joined = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(self), [None, pa.py_buffer(np.ascontiguousarray(own)), fields]
        )
        return without_ends(joined, 0, 1)

    def chunks(self, max_bytes: int) -> Iterator[memoryview]:
        """The encoded fields in pieces of at most ``max_bytes``; of a slice, views into the shared listing."""
        offsets = self.listing.field_offsets
        if self._rows is None:
            body = memoryview(self.listing.fields)[int(offsets[self.low]) : int(offsets[self.high])]
        else:
            body = self.body()
        for start in range(0, len(body), max_bytes):
            yield body[start : start + max_bytes]

    def body(self) -> memoryview:
        """The encoded fields as one buffer: a view of a slice, gathered otherwise (do not keep it)."""
        offsets = self.listing.field_offsets
        if self._rows is None:
            return memoryview(self.listing.fields)[int(offsets[self.low]) : int(offsets[self.high])]
        return memoryview(_gather(self.listing.fields, offsets, self._rows))

    def matching(self, pattern: TopicsPattern, check: Callable[[], None] | None = None) -> Selection:
        """The topics of this selection that match ``pattern``, which RE2 supports.

        ``check`` is called now and then during long work and may raise to end it.
        """
        whole = self._rows is None and self.low == 0 and self.high == len(self.listing)
        if pattern.match_all:
            return Selection(self.listing, self.low, self.high, self._rows, pattern.raw)
        if whole:
            found = self.listing.remembered(pattern.text)
            if found is not None:
                return found
        rows = matching_rows(self.listing, pattern, None if whole else self, check)
        result = (
            Selection(self.listing, rows[0], rows[1], pattern=pattern.raw)
            if isinstance(rows, tuple)
            else Selection.of_rows(self.listing, rows, pattern.raw)
        )
        if whole:
            self.listing.remember(pattern.text, result)
        return result

    def matching_is_quick(self, pattern: TopicsPattern) -> bool:
        """Whether :meth:`matching` takes well under a millisecond, so that it may run on the event loop."""
        if pattern.match_all or self.listing.remembered(pattern.text) is not None:
            return True
        return quick_to_match(self.listing, pattern)

    def mask(self, keep: np.ndarray[Any, Any]) -> Selection:
        """The topics where ``keep`` (bool, one a topic, in the order of :attr:`names`) is true."""
        if keep.all():
            return self
        return Selection.of_rows(self.listing, self.row_array[keep])

    def intersect(self, rows: np.ndarray[Any, Any]) -> Selection:
        """The topics that are also at ``rows`` (ascending positions in the listing)."""
        if self._rows is None:
            low, high = np.searchsorted(rows, (self.low, self.high))
            return Selection.of_rows(self.listing, rows[low:high])
        return Selection.of_rows(self.listing, np.intersect1d(self._rows, rows, assume_unique=True))

    def __repr__(self) -> str:
        return f"<Selection of {len(self)} of {self.listing!r}>"


def _gather(data: pa.Buffer, offsets: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]) -> pa.Buffer:
    return _gather_with_offsets(data, offsets, rows)[0]


def _gather_with_offsets(
    data: pa.Buffer, offsets: np.ndarray[Any, Any], rows: np.ndarray[Any, Any]
) -> tuple[pa.Buffer, np.ndarray[Any, Any]]:
    column = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), data]
    )
    gathered = column.take(pa.array(rows))
    _, own, taken = gathered.buffers()
    return taken if taken is not None else pa.py_buffer(b""), np.frombuffer(own, np.int64)[: len(rows) + 1]
