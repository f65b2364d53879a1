"""Some topics of a listing: the answer to a question, as a slice of the listing's columns or a few gathered rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from broker_core.fields_codec import binary_column
from broker_core.fields_reader import GATHERED, FieldsReader
from broker_core.listing import Listing
from broker_core.listing_columns import gathered, row_type
from broker_core.name_columns import without_ends
from broker_core.partition_columns import matched_forms
from broker_core.pattern_scan import PatternScan, quick_to_match
from broker_core.patterns import TopicsPattern
from broker_core.topics_hash import crc_text, extend_crc

__all__ = ["Matching", "Part", "Selection"]

_Rows = np.ndarray[Any, Any]

#: Rows whose names are gathered at a time for the hash.
_HASHED_ROWS: Final = 16 * 1024


class Part:
    """Which rows of a listing: ``low`` to ``high``, of these only ``rows`` if given; and what is known of them.

    It does not know its listing, so that a listing can remember parts of itself. ``text`` is the pattern (without its
    scheme) that the core itself has applied.
    """

    __slots__ = ("fields_size", "hash", "high", "low", "rows", "text")

    def __init__(self, low: int, high: int, rows: _Rows | None = None, text: str | None = None) -> None:
        self.low = low
        self.high = high
        self.rows = rows
        self.text = text
        self.hash: str | None = None
        self.fields_size: int | None = None

    @classmethod
    def of_rows(cls, rows: _Rows, size: int, text: str | None = None) -> Part:
        """``rows`` (ascending, each once) of a listing of ``size``; neighbours make a slice."""
        if not len(rows):
            return cls(0, 0, text=text)
        low, high = int(rows[0]), int(rows[-1]) + 1
        if high - low == len(rows):
            return cls(low, high, text=text)
        return cls(low, high, rows.astype(row_type(size), copy=False), text)


class Selection:
    """Rows of one listing, in its order: either ``low`` to ``high`` (nothing is copied) or an array of positions.

    Immutable; the hash and the gathered bytes are made when they are first asked for.
    """

    __slots__ = ("listing", "part")

    def __init__(self, listing: Listing, part: Part) -> None:
        self.listing = listing
        self.part = part

    @property
    def pattern(self) -> str | None:
        """The pattern (without scheme) that the core itself has applied, so that nobody need check it again."""
        return self.part.text

    def __len__(self) -> int:
        part = self.part
        return part.high - part.low if part.rows is None else len(part.rows)

    @property
    def is_slice(self) -> bool:
        """Whether this is a contiguous part of the shared listing, which sending does not copy."""
        return self.part.rows is None

    @property
    def is_whole(self) -> bool:
        """Whether this is all of the listing."""
        return self.part.rows is None and len(self) == len(self.listing)

    @property
    def row_array(self) -> _Rows:
        """The positions in the listing, ascending."""
        part = self.part
        if part.rows is not None:
            return part.rows
        return np.arange(part.low, part.high, dtype=row_type(part.high))

    @property
    def bounds(self) -> tuple[int, int]:
        """The first of these rows, and the one behind the last."""
        return self.part.low, self.part.high

    @property
    def fields_size(self) -> int:
        """Bytes of the encoded ``topics`` fields: the body of the response."""
        part, offsets = self.part, self.listing.field_offsets
        if part.rows is None:
            return int(offsets[part.high] - offsets[part.low])
        if part.fields_size is None:
            part.fields_size = int((offsets[1:][part.rows] - offsets[:-1][part.rows]).sum())
        return part.fields_size

    @property
    def heap_bytes(self) -> int:
        """What answering with this holds beyond the shared listing (PIP-442's heap permits): positions, and the bytes
        that are gathered for the next piece of the answer."""
        if self.part.rows is None:
            return 0
        return 2 * min(self.fields_size, GATHERED) + int(self.part.rows.nbytes)

    @property
    def remembered_bytes(self) -> int:
        """What a listing holds on to when it remembers this selection: positions, never gathered bytes."""
        return 0 if self.part.rows is None else int(self.part.rows.nbytes)

    @property
    def topics_hash(self) -> str:
        """The topics hash of exactly these names."""
        part, listing = self.part, self.listing
        if part.hash is None:
            if part.rows is None:
                part.hash = listing.range_hash(part.low, part.high)
            else:
                crc = 0
                for first in range(0, len(part.rows), _HASHED_ROWS):
                    rows = part.rows[first : first + _HASHED_ROWS]
                    joined = memoryview(gathered(listing.joined, listing.joined_offsets, rows)[0])
                    crc = extend_crc(crc, joined if first else joined[1:])
                part.hash = crc_text(crc)
        return part.hash

    @property
    def hash_known(self) -> bool:
        """Whether :attr:`topics_hash` is there already and costs nothing."""
        part = self.part
        if part.hash is not None:
            return True
        return part.rows is None and self.listing.known_range_hash(part.low, part.high) is not None

    @property
    def names(self) -> pa.LargeStringArray:
        """The full names, in the order of the hash."""
        part, data, offsets = self.part, self.listing.joined, self.listing.joined_offsets
        if part.rows is None:
            offsets = offsets[part.low : part.high + 1]
        else:
            data, offsets = gathered(data, offsets, part.rows)
        joined = pa.LargeBinaryArray.from_buffers(
            pa.large_binary(), len(offsets) - 1, [None, pa.py_buffer(offsets), data]
        )
        return without_ends(joined, 1, 0)

    def body(self) -> memoryview:
        """The encoded fields as one buffer: a view of a slice, gathered otherwise (do not keep it)."""
        part, offsets = self.part, self.listing.field_offsets
        if part.rows is None:
            return memoryview(self.listing.fields)[int(offsets[part.low]) : int(offsets[part.high])]
        return memoryview(gathered(self.listing.fields, offsets, part.rows)[0])

    def reader(self) -> FieldsReader:
        """The encoded fields a piece at a time, which takes no more memory than a piece."""
        return FieldsReader(self.listing.fields, self.listing.field_offsets, *self.bounds, self.part.rows)

    def on_its_own(self) -> Selection:
        """The same topics in columns of their own, so that those of the listing can go.

        For a listing that was built for one answer: the names that are sent are all that is needed any more.
        """
        part, listing = self.part, self.listing
        offsets = listing.field_offsets
        fields: Any = listing.fields
        if part.rows is not None:
            fields, offsets = gathered(fields, offsets, part.rows)
        elif not self.is_whole:
            offsets = offsets[part.low : part.high + 1]
            fields = pa.py_buffer(bytes(fields.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))))
            offsets = offsets - offsets[0]
        own = Listing.from_fields(listing.namespace, listing.mode, fields, offsets, part.hash)
        whole = Part(0, len(self), text=part.text)
        whole.hash = part.hash
        return Selection(own, whole)

    def matching(self, pattern: TopicsPattern) -> Selection:
        """The topics of this selection that match ``pattern``, which RE2 supports.

        Of all of a listing the answer is remembered with it.
        """
        found = self.known_matching(pattern)
        if found is None:
            search = Matching(self, pattern)
            while (work := search.take()) is not None:
                work()
            found = search.result()
        return found

    def known_matching(self, pattern: TopicsPattern) -> Selection | None:
        """What :meth:`matching` gives, if it is known already and takes no work."""
        listing, part = self.listing, self.part
        if pattern.match_all:
            every = Part(part.low, part.high, part.rows, pattern.text)
            every.hash, every.fields_size = part.hash, part.fields_size
            return Selection(listing, every)
        known = listing.memo.get(pattern.text) if self.is_whole else None
        return None if known is None else Selection(listing, known)

    def matching_is_quick(self, pattern: TopicsPattern) -> bool:
        """Whether :meth:`matching` takes about a millisecond at most, so that it may run on the event loop."""
        if pattern.match_all:
            return True
        if not self.is_whole:
            return quick_to_match(self.listing, pattern, self)
        return self.listing.memo.get(pattern.text) is not None or quick_to_match(self.listing, pattern, None)

    def mask(self, keep: _Rows) -> Selection:
        """The topics where ``keep`` (bool, one a topic, in the order of :attr:`names`) is true."""
        if keep.shape != (len(self),):
            raise ValueError(f"a mask of shape {keep.shape} for {len(self)} topics")
        return self if keep.all() else self._of_rows(self.row_array[keep])

    def _of_rows(self, rows: _Rows) -> Selection:
        return Selection(self.listing, Part.of_rows(rows, len(self.listing), self.part.text))

    def range(self, low: int, high: int) -> Selection:
        """The topics from the one at ``low`` to the one at ``high`` of these, without the last."""
        if not 0 <= low <= high <= len(self):
            raise IndexError(f"topics from {low} to {high} of {len(self)}")
        part = self.part
        if part.rows is None:
            return Selection(self.listing, Part(part.low + low, part.low + high, text=part.text))
        return self._of_rows(part.rows[low:high])

    def batches(self, *columns: str, rows: int = 65_536) -> Iterator[pa.RecordBatch]:
        """The topics in the order of the hash, at most ``rows`` at a time, as the columns that are named.

        ``"name"`` is the full name, ``"field"`` (``large_binary``) the protobuf field that it is sent in, ``"matched"``
        what patterns match: ``tenant/namespace/topic`` without partition suffix. Raises :exc:`ValueError` for another.
        """
        unknown = set(columns) - {"name", "field", "matched"}
        if unknown or not columns:
            raise ValueError(
                f"columns are name, field and matched, not {', '.join(map(repr, columns)) or 'none'}"
            )
        for low in range(0, len(self), rows):
            part = self.range(low, min(low + rows, len(self)))
            names = part.names if set(columns) != {"field"} else None
            made: dict[str, Any] = {"name": names}
            if "field" in columns:
                made["field"] = part.column()
            if "matched" in columns:
                made["matched"] = matched_forms(names, self.listing.namespace)
            yield pa.record_batch([made[column] for column in columns], names=list(columns))

    def column(self) -> pa.LargeBinaryArray:
        """The encoded fields as a column; of a slice nothing is copied."""
        part, listing = self.part, self.listing
        if part.rows is None:
            return binary_column(listing.fields, listing.field_offsets[part.low : part.high + 1])
        return binary_column(*gathered(listing.fields, listing.field_offsets, part.rows))

    def spliced(self, gone: _Rows | Sequence[int], put: _Rows | Sequence[int], added: Selection) -> Selection:
        """All of a listing of its own: these topics without some, and with others in between.

        ``gone`` are positions among these topics, ascending; each topic of ``added`` goes in front of the position that
        ``put`` has for it. Nothing is searched: the order is looked at where something was put, and
        :exc:`~broker_core.errors.InvalidListing` is raised where it is not that of the hash. Costs one copy.
        """
        from broker_core.selection_splice import splice_selection

        return splice_selection(self, gone, put, added)

    def __repr__(self) -> str:
        return f"<Selection of {len(self)} of {self.listing!r}>"


class Matching:
    """The search for the topics of a selection that match a pattern, in slices for threads.

    :meth:`take` and :attr:`cost` are those of :class:`~broker_core.pattern_scan.PatternScan`; :meth:`result` is what
    :meth:`Selection.matching` gives.
    """

    __slots__ = ("_scan", "_searched", "pattern")

    def __init__(self, searched: Selection, pattern: TopicsPattern) -> None:
        self._searched = searched
        self.pattern = pattern
        self._scan = PatternScan(searched.listing, pattern, None if searched.is_whole else searched)

    @property
    def cost(self) -> int:
        cost: int = self._scan.cost
        return cost

    @property
    def same(self) -> tuple[int, str] | None:
        """What two searches have in common whose results are the same; ``None``: no other is the same."""
        return (id(self._searched.listing), self.pattern.text) if self._searched.is_whole else None

    def take(self) -> Callable[[], None] | None:
        return self._scan.take()

    def result(self) -> Selection:
        listing, text, rows = self._searched.listing, self.pattern.text, self._scan.result()
        if isinstance(rows, tuple):
            found = Selection(listing, Part(*rows, text=text))
        else:
            found = Selection(listing, Part.of_rows(rows, len(listing), text))
        if self._searched.is_whole:
            listing.memo.put(text, found.part, found.remembered_bytes)
        return found
