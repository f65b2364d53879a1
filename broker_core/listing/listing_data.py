"""The Arrow columns of a listing: the topics of one namespace, ready to be filtered, hashed and sent.

Three columns hold every name once in the form that each step needs, so that no step builds a Python object per topic:

- ``fields``: the pre-encoded protobuf field of each name (tag 0x12, length, name). A slice of it is the body of a
  ``CommandGetTopicsOfNamespaceResponse``.
- ``joined``: a comma and each name. CRC32C of a slice, less its first byte, is the topics hash.
- ``matched``: ``tenant/namespace/topic`` without partition suffix: what a pattern matches.

Rows of ``fields`` and ``joined`` are in the order of the hash (UTF-16 code units of the full name). ``matched`` is in
its own UTF-8 order, since ranges are searched in it; the two orders differ where partitions, two domains or characters
beyond the BMP are about, and ``by_matched`` is then the permutation from one to the other.

A listing that was *built* here has all three columns. An *encoded* listing has ``fields`` alone, which is enough to
send it: the text of the hash is derived in pieces, and ``matched`` at the first search over the whole listing. A
*mapped* listing is encoded, and its ``fields`` are a memory-mapped file. Rows that were encoded elsewhere are checked
once, before an answer sends them (:meth:`ListingData.check`).
"""

from __future__ import annotations

import hashlib
import re
import warnings
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.errors import InvalidListing
from broker_core.listing.build_columns import Columns, gathered, row_type
from broker_core.listing.check_encoded_names import check_fields, checked_column
from broker_core.listing.fields_codec import binary_column, decode_fields, name_start
from broker_core.listing.topics_hash import EMPTY_HASH, crc_text, extend_crc
from broker_core.memory.bounded_cache import BoundedCache
from broker_core.memory.mapped_memory import map_of
from broker_core.names import Mode, NamespaceName
from broker_core.names.column_sort import sorted_rows
from broker_core.names.hash_order import hash_order_bytes
from broker_core.names.name_columns import column_data, contains, without_ends
from broker_core.names.partition_columns import matched_forms

__all__ = ["ListingData", "RowsKey", "frozen", "rows_key"]

#: What tells rows apart: the first and the one behind the last, or a digest of row numbers.
RowsKey: TypeAlias = "tuple[int, int] | bytes"
_Array = np.ndarray[Any, Any]

#: What is made of ``fields`` when it is first asked for.
_DERIVED: Final = frozenset({"by_matched", "has_newline", "matched", "matched_offsets"})
#: Rows that are made a text at a time.
_STRETCH: Final = 64 * 1024
_GATHERED: Final = 16 * 1024
#: Rows that are checked together; of fewer than a part of that, only these.
_CHECKED: Final = 4096
_FEW: Final = 512


def frozen(buffer: pa.Buffer) -> pa.Buffer:
    """The same bytes as a read-only view."""
    return pa.py_buffer(memoryview(buffer).toreadonly()) if buffer.is_mutable else buffer


def _own(offsets: _Array) -> _Array:
    return np.frombuffer(offsets.tobytes(), np.int64)


def _claimed_column(column: object) -> tuple[pa.Buffer, _Array]:
    """The memory of a foreign column, whose first and last offset are within its bytes."""
    if not isinstance(column, pa.Array) or not pa.types.is_large_binary(column.type):
        kind = column.type if isinstance(column, pa.Array) else type(column).__name__
        raise InvalidListing(f"encoded names are a column of large_binary, not of {kind}")
    try:
        column.validate()
    except pa.ArrowException as error:
        raise InvalidListing(f"encoded names: {error!s:.200}") from None
    if column.null_count:
        raise InvalidListing("encoded names must not be null")
    return column_data(column)


def _copied(parts: Sequence[tuple[pa.Buffer, _Array]]) -> tuple[pa.Buffer, _Array]:
    """The bytes of columns, one behind the other, and where the values begin and the last ends."""
    pieces: list[bytes] = []
    ends = [np.zeros(1, np.int64)]
    size = 0
    for buffer, given in parts:
        offsets = _own(given)
        first, last = int(offsets[0]), int(offsets[-1])
        if not 0 <= first <= last <= buffer.size:
            raise InvalidListing("the offsets of encoded names do not ascend within their bytes")
        pieces.append(bytes(memoryview(buffer)[first:last]))
        ends.append(offsets[1:] - first + size)
        size += last - first
    joined = pieces[0] if len(pieces) == 1 else b"".join(pieces)
    return pa.py_buffer(joined), _own(np.concatenate(ends))


def rows_key(rows: _Array) -> bytes:
    """A key for these row numbers."""
    return hashlib.blake2b(rows.data, digest_size=16).digest()


class ListingData:
    """The columns of one listing. Only the core has it: plugins have the listing itself."""

    __slots__ = (
        "_checked",
        "_hash",
        "_last_range",
        "_places",
        "by_matched",
        "field_offsets",
        "fields",
        "has_newline",
        "is_mapped",
        "is_searchable",
        "joined",
        "joined_offsets",
        "matched",
        "matched_offsets",
        "memo",
        "mode",
        "namespace",
        "offsets_mapped",
        "said_hash",
        "size",
    )

    by_matched: _Array | None
    has_newline: bool
    joined: pa.Buffer | None
    joined_offsets: _Array
    matched: pa.LargeStringArray
    matched_offsets: _Array

    def __init__(self, namespace: NamespaceName, mode: Mode, fields: pa.Buffer, offsets: _Array) -> None:
        """For :meth:`built`, :meth:`encoded` and :meth:`claimed`."""
        if type(namespace) is not NamespaceName or type(mode) is not Mode:
            raise TypeError(
                f"a listing is of a NamespaceName and a Mode, not of {namespace!r:.100} and {mode!r:.100}"
            )
        self.namespace = namespace
        self.mode = mode
        self.fields = frozen(fields)
        # They are handed out with the columns, so they are read-only too.
        self.field_offsets = offsets.view()
        self.field_offsets.flags.writeable = False
        #: How many topics there are.
        self.size = len(offsets) - 1
        self.joined = None
        #: Whether the fields, and where each begins, are a file that is mapped.
        self.is_mapped = self.offsets_mapped = False
        #: Whether there is what patterns match; of encoded fields it is made when all of them are first searched.
        self.is_searchable = False
        #: The hash of the whole listing as its maker claims it.
        self.said_hash: str | None = None
        self._places: _Array | None = None
        self._hash: str | None = None
        self._last_range: tuple[bytes, bytes, tuple[int, int]] | None = None
        self._checked: _Array | None = None
        #: The parts of this listing that patterns match, and the hashes of parts, by what they are of. They do not
        #: refer to the listing, which is freed at once with its last reference.
        self.memo: BoundedCache[tuple[str, RowsKey | None], Any] = BoundedCache(
            8 * 1024 + self.fields.size // 16
        )

    @classmethod
    def built(
        cls, namespace: NamespaceName, mode: Mode, columns: Columns, *, has_newline: bool | None = None
    ) -> ListingData:
        """Of columns that were made of checked names; ``has_newline`` where it is known."""
        data = cls(namespace, mode, *column_data(columns.fields))
        data.joined, data.joined_offsets = column_data(columns.joined)
        data._set_matched(columns.matched, columns.by_matched, has_newline)
        return data

    @classmethod
    def encoded(
        cls,
        namespace: NamespaceName,
        mode: Mode,
        fields: pa.Buffer,
        offsets: _Array,
        topics_hash: str | None = None,
    ) -> ListingData:
        """Of fields that the core itself encoded (in the order of the hash, each once, no system topics)."""
        data = cls(namespace, mode, fields, offsets)
        data._hash = topics_hash
        return data

    @classmethod
    def claimed(
        cls,
        namespace: NamespaceName,
        mode: Mode,
        columns: Sequence[pa.LargeBinaryArray],
        said_hash: str | None,
        *,
        mapped: bool,
    ) -> ListingData:
        """From fields that were encoded elsewhere, in read-only memory: checked before they are sent."""
        if said_hash is not None and re.fullmatch("[0-9a-f]{8}", said_hash) is None:
            raise InvalidListing(f"{said_hash!r:.40} is no topics hash: 8 lower-case hex digits")
        parts = [_claimed_column(column) for column in columns]
        file = map_of(parts[0][0]) if mapped and len(parts) == 1 else None
        if file is None:
            data = cls(namespace, mode, *_copied(parts))
        else:
            if file.has_name:
                warnings.warn(
                    f"{file.path} is mapped for a listing and still has a name: "
                    "whoever cuts it short ends this process",
                    RuntimeWarning,
                    stacklevel=3,
                )
            column, (buffer, offsets) = columns[0], parts[0]
            held = column.buffers()[1]
            are_mapped = held is not None and map_of(held) is not None
            if are_mapped:  # by the very buffer that was asked about
                offsets = np.frombuffer(held, np.int64)[column.offset : column.offset + len(column) + 1]
            data = cls(namespace, mode, buffer, offsets if are_mapped else _own(offsets))
            data.is_mapped, data.offsets_mapped = True, are_mapped
        data.said_hash = None if said_hash is None else str.__str__(said_hash)
        data._checked = np.zeros(-(-data.size // _CHECKED), bool)
        return data

    def _set_matched(
        self, matched: pa.LargeStringArray, order: _Array | None, has_newline: bool | None = None
    ) -> None:
        self.has_newline = contains(matched, "\n") if has_newline is None else has_newline
        self.by_matched = order
        self.matched_offsets = column_data(matched)[1]
        self.matched = matched
        self.is_searchable = True

    def search_in(self, forms: pa.LargeStringArray) -> None:
        """Take what patterns match of each row, in the order of the rows, for searches of all of them."""
        order: _Array | None = None
        if len(forms) > 1 and not pc.all(pc.less_equal(forms[:-1], forms[1:])).as_py():
            order = sorted_rows(forms).astype(row_type(len(forms)), copy=False)
            forms = forms.take(pa.array(order))
        self._set_matched(forms, order)

    if not TYPE_CHECKING:  # the attributes are as they are declared above

        def __getattr__(self, name: str) -> Any:
            """Make the columns that an encoded listing lacks; called only where one is not there yet."""
            if name not in _DERIVED:
                raise AttributeError(name)
            self.search_in(matched_forms(self.names(0, len(self)), self.namespace))
            return getattr(self, name)

    def __len__(self) -> int:
        return self.size

    @property
    def column_bytes(self) -> int:
        """Bytes of the columns alone; a file that is mapped takes none."""
        own = 0 if self.is_mapped else int(self.fields.size)
        own += 0 if self.offsets_mapped else int(self.field_offsets.nbytes)
        if self.joined is not None:
            own += int(self.joined.size + self.joined_offsets.nbytes)
        elif not self.is_mapped:
            return own  # what is made of them is not charged to the answer that they were encoded for
        if self.is_searchable:
            own += int(self.matched.nbytes)
            own += 0 if self.by_matched is None else 2 * int(self.by_matched.nbytes)
        return own

    # -- what was encoded elsewhere

    def check(self, low: int, high: int, rows: _Array | None = None) -> None:
        """Check the names of these rows once. Raises :exc:`~broker_core.errors.InvalidListing`."""
        checked = self._checked
        count = high - low if rows is None else len(rows)
        if checked is None or not count:
            return
        if not 0 <= low < high <= self.size:  # nothing that could be looked at goes by unseen
            raise InvalidListing(f"rows from {low} to {high} of {self.size}")
        first, last = low // _CHECKED, -(-high // _CHECKED)
        todo = np.flatnonzero(~checked[first:last]) + first
        if not len(todo):
            return
        if 8 * count < len(todo) * _CHECKED:
            self._check_few(np.arange(low, high) if rows is None else rows)
            return
        for start in todo.tolist():
            # With the last name before them, and the first behind, so that the order holds across.
            begin, end = max(start * _CHECKED - 1, 0), min((start + 1) * _CHECKED + 1, len(self))
            column = checked_column(self.fields, self.field_offsets[begin : end + 1])
            check_fields(column, self.namespace, self.mode)
            checked[start] = True

    def _check_few(self, rows: _Array) -> None:
        key = ("\0checked", rows_key(rows))
        if self.memo.get(key) is None:
            check_fields(checked_column(self.fields, self.field_offsets, rows), self.namespace, self.mode)
            self.memo.put(key, True)

    def is_checked(self, low: int, high: int) -> bool:
        """Whether :meth:`check` has nothing to do."""
        checked = self._checked
        return checked is None or low >= high or bool(checked[low // _CHECKED : -(-high // _CHECKED)].all())

    # -- names and their text

    def column(self, low: int, high: int, rows: _Array | None = None) -> pa.LargeBinaryArray:
        """The fields of these rows; of a stretch nothing is copied."""
        if rows is None:
            self.check(low, high)
            return binary_column(self.fields, self.field_offsets[low : high + 1])
        self.check(low, high, rows)
        if self.is_checked(low, high):  # then Arrow may follow their offsets, which is many times as fast
            return binary_column(*gathered(self.fields, self.field_offsets, rows))
        return checked_column(self.fields, self.field_offsets, rows)

    def own_fields(self, low: int, high: int, rows: _Array | None = None) -> tuple[pa.Buffer, _Array]:
        """The fields of these rows and where each begins, in memory of their own unless they are all that there is."""
        if rows is not None:
            return gathered(self.fields, self.field_offsets, rows)
        if high - low == self.size:
            return self.fields, self.field_offsets
        offsets = self.field_offsets[low : high + 1]
        first, last = int(offsets[0]), int(offsets[-1])
        return pa.py_buffer(bytes(self.fields.slice(first, last - first))), offsets - first

    def names(self, low: int, high: int, rows: _Array | None = None) -> pa.LargeStringArray:
        """The full names of these rows."""
        if self.joined is None:
            return decode_fields(self.column(low, high, rows))
        buffer, offsets = self.joined, self.joined_offsets
        if rows is None:
            offsets = offsets[low : high + 1]
        else:
            buffer, offsets = gathered(buffer, offsets, rows)
        return without_ends(binary_column(buffer, offsets), 1, 0)

    def forms(self, rows: _Array) -> pa.LargeStringArray:
        """What patterns match of these rows (ascending), without what all of the listing needs for that."""
        low, high = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
        some = None if high - low == len(rows) else rows
        return matched_forms(self.names(low, high, some), self.namespace)

    def _texts(self, low: int, high: int, rows: _Array | None) -> Iterator[memoryview]:
        """The text of these rows that is hashed, a stretch at a time, each name behind a comma."""
        step = _STRETCH if rows is None else _GATHERED
        count = high - low if rows is None else len(rows)
        for first in range(0, count, step):
            last = min(first + step, count)
            if rows is not None and self.joined is not None:
                yield memoryview(gathered(self.joined, self.joined_offsets, rows[first:last])[0])
                continue
            if rows is None:
                column = self.column(low + first, low + last)
            else:
                some = rows[first:last]
                column = self.column(int(some[0]), int(some[-1]) + 1, some)
            buffer, offsets = column_data(decode_fields(column, comma=True))
            yield memoryview(buffer)[int(offsets[0]) : int(offsets[-1])]

    def hash(self, low: int, high: int, rows: _Array | None = None) -> str:
        """The topics hash of these rows."""
        if rows is None and self.joined is not None and low < high:
            offsets = self.joined_offsets
            return crc_text(extend_crc(0, memoryview(self.joined)[offsets[low] + 1 : offsets[high]]))
        crc, comma = 0, 1
        for text in self._texts(low, high, rows):
            crc = extend_crc(crc, text[comma:])
            comma = 0
        return crc_text(crc)

    def range_hash(self, low: int, high: int, *, remember: bool = True) -> str:
        """The topics hash of rows ``low`` to ``high``; of all, and where it is remembered, it is computed once."""
        known = self.known_range_hash(low, high)
        if known is None:
            known = self.hash(low, high)
            if high - low == self.size:
                self._hash = known
            elif remember:
                self.memo.put(("\0hash", (low, high)), known)
        return known

    def known_range_hash(self, low: int, high: int) -> str | None:
        """The hash of these rows where it takes no computing."""
        if low >= high:
            return EMPTY_HASH
        return self._hash if high - low == self.size else self.memo.get(("\0hash", (low, high)))

    def rows_hash(self, key: bytes, low: int, high: int, rows: _Array) -> str:
        """The topics hash of row numbers that have this key; it is computed once."""
        known: str | None = self.memo.get(("\0hash", key))
        if known is None:
            known = self.hash(low, high, rows)
            self.memo.put(("\0hash", key), known)
        return known

    # -- searching

    def matched_range(self, low: bytes, high: bytes) -> tuple[int, int]:
        """The positions in ``matched`` of the forms within ``[low, high)`` bytes."""
        last = self._last_range
        if last is not None and last[0] == low and last[1] == high:
            return last[2]  # asked for twice: to know whether it is quick, and then for the answer
        # Views, since an array would make an object of numpy's for each offset.
        offsets = self.matched_offsets.data
        data = memoryview(self.matched.buffers()[2] or b"")

        def form(position: int) -> bytes:
            return bytes(data[offsets[position] : offsets[position + 1]])

        every = range(self.size)
        first = bisect_left(every, low, key=form)
        # As a rule the end is near, and the longer the steps the farther it is.
        start, step = first if low <= high else 0, 8
        while start + step < self.size and form(start + step) < high:
            start, step = start + step, 16 * step
        found = first, bisect_left(every, high, start, min(start + step, self.size), key=form)
        self._last_range = low, high, found
        return found

    def locate(self, keys: list[bytes]) -> tuple[_Array, _Array]:
        """For each key of a name the row where it is or would be put, and whether it is there.

        Keys are those of :func:`~.name_columns.hash_order_bytes`.
        """
        data, offsets = memoryview(self.fields), self.field_offsets.data

        def key_of(row: int) -> bytes:
            start, stop = offsets[row], offsets[row + 1]
            return hash_order_bytes(bytes(data[start + name_start(stop - start) : stop]))

        every = range(len(self))
        rows, present = np.empty(len(keys), np.int64), np.zeros(len(keys), bool)
        for index, key in enumerate(keys):
            row = bisect_left(every, key, key=key_of)
            rows[index] = row
            present[index] = row < len(self) and key_of(row) == key
        return rows, present

    @property
    def places(self) -> _Array:
        """Where in ``matched`` each row is: the inverse of ``by_matched``."""
        if self._places is None:
            places = np.arange(len(self), dtype=row_type(len(self)))
            if self.by_matched is None:
                return places
            inverse = np.empty_like(places)
            inverse[self.by_matched] = places
            self._places = inverse
        return self._places
