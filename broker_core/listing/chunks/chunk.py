"""A chunk of a listing: consecutive topics of one domain as columns, which all versions of the listing share.

A chunk holds the encoded protobuf field of each name (tag 0x12, length, name), in the order of the hash (UTF-16 code
units of the full name). A slice of them is a part of the body of a ``CommandGetTopicsOfNamespaceResponse``. All else is
derived from the fields when it is first needed: the CRC32C of the names, and the forms that patterns match
(:mod:`~broker_core.listing.chunks.chunk_forms`). It has the values of selecting properties if the catalogue gave them.

Chunks that were encoded elsewhere are checked once, before an answer sends their names (:meth:`Chunk.check`). A mapped
chunk is such a chunk whose fields are a memory-mapped file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Final

import google_crc32c
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.counted import counted
from broker_core.listing.chunks.block_hashes import BlockHashes, crc_of_fields, text_of_fields
from broker_core.listing.chunks.chunk_forms import ChunkForms, PlainForms, SortedForms, are_plain
from broker_core.listing.chunks.chunk_rows import ChunkRows, MemoKey, Remembered
from broker_core.listing.chunks.json_escapes import needs_escapes
from broker_core.listing.chunks.property_codes import PropertyCodes
from broker_core.listing.fields.fields_codec import (
    SHORT_FIELD,
    alike_start,
    binary_column,
    check_fields,
    checked_column,
    decode_fields,
    gathered,
    name_start,
)
from broker_core.listing.listing_hash import TextCrc, extend_crc, joined
from broker_core.memory import BoundedCache
from broker_core.names import PERSISTENT, Array, Mode, NamespaceName, hash_order_bytes

__all__ = ["Chunk", "frozen", "have_alike_bounds", "rows_key"]

_NO_PROPERTIES: Final[Mapping[str, PropertyCodes]] = MappingProxyType({})

#: Up to so many consecutive names are joined one by one: as columns they take longer.
_ONE_BY_ONE: Final = 32
#: Rows that are gathered at a time.
_GATHERED: Final = 16 * 1024
#: Rows that are checked together; if far fewer are needed, they alone.
_CHECKED: Final = 4096
#: Names of fewer rows than these are hashed as a whole, without blocks.
_FEW: Final = 1024
#: The part of its bytes that a chunk may use to remember what was found in it.
_REMEMBERED: Final = 16
#: A smaller chunk is searched as quickly as it is looked up.
_SMALL: Final = 64 * 1024
#: Bytes in which a smaller chunk remembers which rows were checked.
_LEAST_REMEMBERED: Final = 8 * 1024
#: Bytes of objects and of what is derived from a chunk, about.
_OVERHEAD: Final = 2048


def frozen(buffer: pa.Buffer) -> pa.Buffer:
    """A read-only view of the bytes."""
    return pa.py_buffer(memoryview(buffer).toreadonly()) if buffer.is_mutable else buffer


def rows_key(rows: Array) -> bytes:
    """A key for these row numbers."""
    return hashlib.blake2b(rows.data, digest_size=16).digest()


class Chunk:
    """Consecutive topics of one domain. Immutable except for what it derives and remembers; for any thread.

    ``fields`` and ``field_offsets`` (int64, one more than there are rows) are the encoded names. ``properties`` are the
    values of selecting properties by key.
    """

    __slots__ = (
        "__weakref__",
        "_bounds",
        "_checked",
        "_forms",
        "_head",
        "_json_text",
        "_memo",
        "_nbytes",
        "_plain",
        "domain",
        "field_offsets",
        "fields",
        "fields_size",
        "is_mapped",
        "known_blocks",
        "known_crc",
        "known_newline",
        "namespace",
        "offsets_mapped",
        "properties",
        "size",
    )

    def __init__(
        self,
        namespace: NamespaceName,
        domain: str,
        fields: pa.Buffer,
        offsets: Array,
        properties: Mapping[str, PropertyCodes] = _NO_PROPERTIES,
    ) -> None:
        """A chunk of fields that the core encoded: in the order of the hash, each once, without system topics."""
        self.namespace = namespace
        self.domain = domain
        self.fields = frozen(fields)
        # Offsets are handed out with the columns, so they are read-only too.
        self.field_offsets = offsets.view()
        self.field_offsets.flags.writeable = False
        self.properties = properties
        #: How many topics there are.
        self.size = len(offsets) - 1
        #: Bytes of the encoded names.
        self.fields_size: int = offsets.item(-1) - offsets.item(0)
        #: Whether the fields, and their offsets, are a mapped file.
        self.is_mapped = self.offsets_mapped = False
        self._checked: Array | None = None
        #: Facts that are known, or were computed while the chunk was made: the CRCs of blocks, the CRC of all names,
        #: and whether one of them has a line feed.
        self.known_blocks: BlockHashes | None = None
        self._bounds: tuple[bytes, bytes] | None = None
        self.known_crc: TextCrc | None = None
        self._head: int | None = -1
        self._forms: ChunkForms | None = None
        self.known_newline: bool | None = None
        self._json_text: bool | None = None
        self._plain: bool | None = None
        self._memo: BoundedCache[MemoKey, Any] | None = None
        self._nbytes: int | None = None

    @classmethod
    def claimed(
        cls,
        namespace: NamespaceName,
        domain: str,
        fields: pa.Buffer,
        offsets: Array,
        *,
        mapped: bool = False,
        offsets_mapped: bool = False,
    ) -> Chunk:
        """A chunk of fields that were encoded elsewhere, in read-only memory: checked before they are sent."""
        chunk = cls(namespace, domain, fields, offsets)
        chunk.is_mapped, chunk.offsets_mapped = mapped, offsets_mapped
        chunk._checked = np.zeros(-(-chunk.size // _CHECKED), bool)
        return chunk

    def with_properties(self, properties: Mapping[str, PropertyCodes]) -> Chunk:
        """A chunk of the same topics with other values of properties: the columns are shared."""
        chunk = Chunk(self.namespace, self.domain, self.fields, self.field_offsets, properties)
        chunk.is_mapped, chunk.offsets_mapped = self.is_mapped, self.offsets_mapped
        chunk._checked, chunk.known_blocks, chunk.known_crc = self._checked, self.known_blocks, self.known_crc
        chunk._forms, chunk._plain, chunk.known_newline = self._forms, self._plain, self.known_newline
        chunk._json_text = self._json_text
        return chunk

    def __len__(self) -> int:
        return self.size

    # -- memory

    @property
    def column_bytes(self) -> int:
        """Bytes of the columns in memory; a mapped file takes none."""
        derived = (each.nbytes for each in (self._forms, self.known_blocks) if each is not None)
        return self._given_bytes() + sum(derived)

    def _given_bytes(self) -> int:
        own = 0 if self.is_mapped else self.fields_size
        own += 0 if self.offsets_mapped else int(self.field_offsets.nbytes)
        return own + sum(codes.nbytes for codes in self.properties.values())

    @property
    def nbytes(self) -> int:
        """Bytes of the columns and of their caches; constant."""
        if self._nbytes is None:
            forms = 0 if self.is_mapped or self._plain else self.fields_size + 20 * self.size
            self._nbytes = (
                self._given_bytes()
                + forms
                + BlockHashes.expected_bytes(self.size)
                + _OVERHEAD
                + self.memo_limit
            )
        return self._nbytes

    @property
    def memo_limit(self) -> int:
        """Bytes of what the chunk may remember."""
        if self.fields_size >= _SMALL:
            codes = sum(int(codes.codes.nbytes) for codes in self.properties.values())
            return self.fields_size // _REMEMBERED + codes
        return 0 if self._checked is None else _LEAST_REMEMBERED

    @property
    def memo(self) -> BoundedCache[MemoKey, Any]:
        """Results remembered for this chunk: rows by pattern, rows by properties, which rows were checked."""
        if self._memo is None:
            self._memo = BoundedCache(self.memo_limit)
        return self._memo

    def memo_has(self, key: MemoKey) -> bool:
        """Whether something is remembered under this key."""
        return self._memo is not None and key in self._memo

    # -- what was encoded elsewhere

    def check(self, low: int, high: int, rows: Array | None = None) -> None:
        """Check the names of these rows once. Raises :exc:`~broker_core.errors.InvalidListing`."""
        checked = self._checked
        count = high - low if rows is None else len(rows)
        if checked is None or not count:
            return
        first, last = low // _CHECKED, -(-high // _CHECKED)
        todo = np.flatnonzero(~checked[first:last]) + first
        if not len(todo):
            return
        if 8 * count < min(len(todo) * _CHECKED, self.size):
            self._check_few(np.arange(low, high) if rows is None else rows)
            return
        for start in todo.tolist():
            # With the last name before them and the first one after them, so that the order holds across.
            begin, end = max(start * _CHECKED - 1, 0), min((start + 1) * _CHECKED + 1, self.size)
            column = checked_column(self.fields, self.field_offsets[begin : end + 1])
            check_fields(column, self.namespace, self._mode)
            checked[start] = True

    def _check_few(self, rows: Array) -> None:
        key = (Remembered.CHECKED, rows_key(np.ascontiguousarray(rows)))
        if self.memo.get(key) is None:
            check_fields(checked_column(self.fields, self.field_offsets, rows), self.namespace, self._mode)
            self.memo.put(key, True)

    def is_checked(self, low: int, high: int) -> bool:
        """Whether :meth:`check` has nothing to do."""
        checked = self._checked
        return checked is None or low >= high or bool(checked[low // _CHECKED : -(-high // _CHECKED)].all())

    @property
    def is_believed(self) -> bool:
        """Whether all names were checked."""
        return self.is_checked(0, self.size)

    @property
    def _mode(self) -> Mode:
        return Mode.PERSISTENT if self.domain == PERSISTENT else Mode.NON_PERSISTENT

    # -- names and their text

    def column(self, low: int, high: int, rows: Array | None = None) -> pa.LargeBinaryArray:
        """The fields of the given rows; a range is not copied."""
        if rows is None:
            self.check(low, high)
            return binary_column(self.fields, self.field_offsets[low : high + 1])
        self.check(low, high, rows)
        if self.is_checked(low, high):  # then Arrow may follow their offsets, which is many times as fast
            return binary_column(*gathered(self.fields, self.field_offsets, rows))
        return checked_column(self.fields, self.field_offsets, rows)

    def body(self, low: int, high: int) -> memoryview:
        """The bytes of the fields of a range of rows."""
        offsets = self.field_offsets
        return memoryview(self.fields)[offsets.item(low) : offsets.item(high)]

    def names(self, low: int, high: int, rows: Array | None = None) -> pa.LargeStringArray:
        """The full names of the given rows."""
        return decode_fields(self.column(low, high, rows))

    def name(self, row: int) -> bytes:
        """One full name."""
        start, stop = self.field_offsets.item(row), self.field_offsets.item(row + 1)
        return bytes(memoryview(self.fields)[start + name_start(stop - start) : stop])

    def key_reader(self) -> Callable[[int], bytes]:
        """A function from a row to the key of its name, which sorts in the order of the hash."""
        data, offsets = memoryview(self.fields), self.field_offsets.data

        def key_at(row: int) -> bytes:
            start, stop = offsets[row], offsets[row + 1]
            head = 2 if stop - start <= SHORT_FIELD else name_start(stop - start)
            return hash_order_bytes(data[start + head : stop].tobytes())

        return key_at

    @property
    def crc(self) -> TextCrc:
        """The CRC of all names, each after a comma; computed once."""
        if self.known_crc is None:
            # The blocks take no longer than the whole, and a change of the chunk needs them.
            is_small = self.known_blocks is None and self.size < _FEW
            self.known_crc = crc_of_fields(self.column(0, self.size)) if is_small else self.blocks.total()
        return self.known_crc

    @property
    def blocks(self) -> BlockHashes:
        """The CRCs of its blocks; computed once."""
        if self.known_blocks is None:
            self.known_blocks = BlockHashes.of(self.column(0, self.size))
        return self.known_blocks

    def bytes_to_hash(self, low: int, high: int) -> int:
        """Bytes of names that :meth:`text_crc` reads for a range of rows."""
        if high - low == self.size and self.known_crc is not None:
            return 0
        if self.known_blocks is not None:
            return min(self.fields_size, _FEW * (self.fields_size // self.size + 1))
        return (
            self.field_offsets.item(high) - self.field_offsets.item(low)
            if high - low < _FEW
            else self.fields_size
        )

    @property
    def head(self) -> int | None:
        """Number of bytes before each name in its field; ``None`` if that differs from name to name."""
        if self._head == -1:
            self._head = alike_start(np.diff(self.field_offsets))
        return self._head

    def text_crc(self, low: int, high: int, rows: Array | None = None) -> TextCrc:
        """The CRC of the names of the given rows, each after a comma."""
        if rows is None:
            if high - low == self.size:
                return self.crc
            if high - low <= _ONE_BY_ONE:
                return self._few_names_crc(low, high)
            if high - low < _FEW or not self.is_believed:
                return crc_of_fields(self.column(low, high), self.head if self.is_believed else None)
            return self.blocks.between(self.column(0, self.size), low, high, self.head)
        parts = []
        for first in range(0, len(rows), _GATHERED):
            some = rows[first : first + _GATHERED]
            crc = size = 0
            for text in text_of_fields(self.column(int(some[0]), int(some[-1]) + 1, some)):
                crc = extend_crc(crc, text)
                size += len(text)
            parts.append(TextCrc(crc, size))
        return joined(parts)

    def _few_names_crc(self, low: int, high: int) -> TextCrc:
        self.check(low, high)
        data, edges = memoryview(self.fields), self.field_offsets[low : high + 1].tolist()
        names = [data[start + name_start(stop - start) : stop] for start, stop in pairwise(edges)]
        text = b",".join([b"", *names])
        return TextCrc(google_crc32c.value(text), len(text))

    # -- searching

    @property
    def is_plain(self) -> bool:
        """Whether no name is a partition or sorts otherwise in UTF-8: if so, positions of forms are rows."""
        if self._plain is None:
            self.check(0, self.size)
            self.know_plain(are_plain(self.column(0, self.size)))
        return self._plain is True

    def know_plain(self, plain: bool) -> None:
        """Take it as known whether the chunk is plain; ``False`` is always right, and costs time alone."""
        self._plain = plain
        if plain:  # they cost nothing, and a search on the event loop may count on them
            self._forms = PlainForms(self.fields, self.field_offsets, len(self.domain) + 3)

    @property
    def forms(self) -> ChunkForms:
        """The texts that patterns match, in UTF-8 order; made once."""
        if self._forms is None:
            if self.is_plain:
                return self.forms
            self._forms = SortedForms.of(self.names(0, self.size), len(self.domain) + 3)
        return self._forms

    def make_forms(self) -> None:
        """Make the forms and their bounds, for searches of the whole chunk."""
        _ = self.form_bounds

    def know_forms(self, forms: SortedForms) -> None:
        """Take the forms that were made with the chunk."""
        self._plain, self._forms = False, forms

    @property
    def is_searchable(self) -> bool:
        """Whether :attr:`forms` is there already."""
        return self._forms is not None

    @property
    def has_newline(self) -> bool:
        """Whether a name has a line feed, which ``.`` does not match."""
        if self.known_newline is None:
            self.check(0, self.size)
            known = bool((np.frombuffer(self.body(0, self.size), np.uint8) == 0x0A).any())
            if known:  # it may be a part of a length
                known = bool(pc.any(pc.match_substring(self.names(0, self.size), "\n")).as_py())
            self.known_newline = known
        return self.known_newline

    @property
    def is_json_text(self) -> bool:
        """Whether all names are the same between the quotes of JSON, without escapes; found out once."""
        if self._json_text is None:
            self._json_text = not needs_escapes(self.names(0, self.size))
        return self._json_text

    @property
    def form_bounds(self) -> tuple[bytes, bytes]:
        """The least and the greatest form; read once."""
        if self._bounds is None:
            self._bounds = self.forms.bounds
        return self._bounds

    def form_range(self, low: bytes, high: bytes) -> tuple[int, int]:
        """The positions of the forms within ``[low, high)`` bytes."""
        if not self.size:
            return 0, 0
        least, most = self.form_bounds
        return (0, self.size) if low <= least and most < high else self.forms.range(low, high)

    def rows_of_range(self, low: bytes, high: bytes) -> ChunkRows:
        """The rows of the forms within ``[low, high)`` bytes."""
        first, last = self.form_range(low, high)
        if self.forms.is_identity or last - first in (0, self.size):
            return ChunkRows(first, last)
        return ChunkRows.of(np.sort(self.forms.rows(np.arange(first, last))))

    def some_forms(self, rows: Array) -> pa.LargeStringArray:
        """The forms of some rows (ascending, at least one), without making all forms of the chunk."""
        low, high = int(rows[0]), int(rows[-1]) + 1
        names = self.names(low, high, None if high - low == len(rows) else rows)
        return SortedForms.unsorted(names, len(self.domain) + 3)

    def with_values(self, pairs: Mapping[str, str]) -> ChunkRows:
        """The rows that have all the given properties."""
        keep: Array | None = None
        for key, value in pairs.items():
            rows = self.properties[key].rows_with(value) if key in self.properties else None
            if rows is None:
                return ChunkRows(0, 0)
            keep = rows if keep is None else keep & rows
        return ChunkRows(0, self.size) if keep is None else ChunkRows.of(np.flatnonzero(keep))

    def __repr__(self) -> str:
        return f"<Chunk of {self.domain}://{self.namespace}: {counted(self.size, 'topic')}>"


def have_alike_bounds(chunks: Sequence[Chunk], others: Sequence[Chunk]) -> bool:
    """Whether chunks have the bounds of forms of as many others, as after most changes of a few names."""
    return len(chunks) == len(others) and all(
        chunk.is_searchable and other.is_searchable and chunk.form_bounds == other.form_bounds
        for chunk, other in zip(chunks, others, strict=True)
    )
