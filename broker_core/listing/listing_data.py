"""The data of a listing: the chunks of one namespace's topics, in the order of the hash.

Chunks are immutable and shared: a changed listing has new chunks where topics changed, and shares all others with the
version before. The chunks of ``non-persistent://`` come before those of ``persistent://``.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from itertools import accumulate, pairwise
from operator import attrgetter
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.errors import InvalidListing
from broker_core.listing.chunks.chunk import Chunk, have_alike_bounds
from broker_core.listing.chunks.chunk_rows import ChunkRows, MemoKey, Remembered
from broker_core.listing.chunks.claimed_chunks import claimed_chunks
from broker_core.listing.listing_hash import (
    EMPTY_HASH,
    JoinedCrcs,
    TextCrc,
    crc_text,
    joined,
    without_first_comma,
)
from broker_core.memory import BoundedCache
from broker_core.names import Array, Mode, NamespaceName, hash_order_bytes, hash_order_key

__all__ = ["ListingData", "Pieces", "RowsKey"]

#: A key that identifies rows: the first and the row after the last, or a digest of row numbers.
RowsKey: TypeAlias = "tuple[int, int] | bytes"
#: Rows of a listing in order: the number of each chunk that has some, and its rows.
Pieces: TypeAlias = "tuple[tuple[int, ChunkRows], ...]"

#: Room in bytes for results remembered by the whole listing, besides some for each chunk.
_REMEMBERED: Final = 8 * 1024
_REMEMBERED_EACH: Final = 2 * 1024
_SMALL_PART: Final = 16
#: Bytes that a listing knows of each chunk: its first row, its first name, the bounds of its forms.
_KNOWN_EACH: Final = 256
#: Bytes of the names of the last changes that are kept, and the overhead of each.
_CHANGES: Final = 16 * 1024
_EACH_CHANGED: Final = 64
#: Numbers of rows: 64 bits.
_ROWS: Final = "q"
_SIZE: Final = attrgetter("size")


class ListingData:
    """The chunks of one listing. Only the core has it: plugins have the listing itself."""

    __slots__ = (
        "_believed",
        "_borders_checked",
        "_bytes_before",
        "_changes",
        "_changes_size",
        "_first_keys",
        "_form_edges",
        "_former",
        "_joined",
        "_nbytes",
        "_since",
        "_starts",
        "_version",
        "chunks",
        "declared_hash",
        "known_hash",
        "memo",
        "mode",
        "namespace",
        "size",
    )

    def __init__(
        self,
        namespace: NamespaceName,
        mode: Mode,
        chunks: Sequence[Chunk],
        starts: array[int] | None = None,
    ) -> None:
        """A listing of chunks that are not empty and in order; ``starts`` are their first rows, if known."""
        if type(namespace) is not NamespaceName or type(mode) is not Mode:
            raise TypeError(
                f"a listing is of a NamespaceName and a Mode, not of {namespace!r:.100} and {mode!r:.100}"
            )
        self.namespace = namespace
        self.mode = mode
        self.chunks = tuple(chunks)
        #: The row of the first topic of each chunk, and the row after the last topic.
        self._starts = array(_ROWS, [0, *accumulate(map(_SIZE, self.chunks))]) if starts is None else starts
        self._bytes_before: list[int] | None = None
        self._first_keys: list[bytes] | None = None
        self._form_edges: tuple[list[bytes], list[bytes]] | None = None
        #: How many topics there are.
        self.size = self._starts[-1]
        #: The hash of the whole listing as its maker claims it.
        self.declared_hash: str | None = None
        #: The hash of the whole listing, if it is known or was computed while the listing was made.
        self.known_hash: str | None = None
        self._joined: JoinedCrcs | None = None
        self._nbytes: int | None = None
        self._borders_checked = True
        self._believed = False
        self._version = object()
        #: The version that this one was made of, and the range of chunks that are new since.
        self._former: tuple[object, int, int] | None = None
        #: Earlier versions, the newest last, the keys of the names that came and went from each to the next, and the
        #: bytes of these.
        self._changes: tuple[tuple[object, Sequence[bytes], Sequence[bytes], int], ...] = ()
        self._changes_size = 0
        #: The last result of :meth:`changes_since`: many answers change between the same two versions.
        self._since: tuple[object, tuple[list[bytes], list[bytes]] | None] | None = None
        #: The parts of this listing that patterns match, and the hashes of parts, by pattern and rows. They do not
        #: refer to the listing, which is freed at once with its last reference.
        self.memo: BoundedCache[tuple[MemoKey, RowsKey | None], Any] = BoundedCache(self._memo_room)

    @property
    def _memo_room(self) -> int:
        if len(self.chunks) > 1:
            return _REMEMBERED + _REMEMBERED_EACH * len(self.chunks)
        return _REMEMBERED + (self.chunks[0].fields_size // _SMALL_PART if self.chunks else 0)

    @classmethod
    def claimed(
        cls,
        namespace: NamespaceName,
        mode: Mode,
        columns: Sequence[pa.LargeBinaryArray],
        declared_hash: str | None,
        *,
        mapped: bool,
    ) -> ListingData:
        """A listing of fields that were encoded elsewhere, in read-only memory: checked before they are sent."""
        if declared_hash is not None and re.fullmatch("[0-9a-f]{8}", declared_hash) is None:
            raise InvalidListing(f"{declared_hash!r:.40} is no topics hash: 8 lower-case hex digits")
        chunks = claimed_chunks(namespace, mode, columns, mapped=mapped)
        data = cls(namespace, mode, chunks)
        data.declared_hash = None if declared_hash is None else str.__str__(declared_hash)
        data._borders_checked = len(chunks) < 2
        return data

    def __len__(self) -> int:
        return self.size

    @property
    def column_bytes(self) -> int:
        """Bytes of the columns alone; a mapped file takes none."""
        return sum(chunk.column_bytes for chunk in self.chunks)

    @property
    def is_mapped(self) -> bool:
        """Whether the fields of a chunk are a mapped file."""
        return any(chunk.is_mapped for chunk in self.chunks)

    @property
    def own_bytes(self) -> int:
        """Bytes of this version alone, without its chunks."""
        return self.memo.limit + _KNOWN_EACH * len(self.chunks) + self._changes_size

    @property
    def nbytes(self) -> int:
        """Bytes of this version and of its chunks, including room for what is derived and remembered."""
        if self._nbytes is None:
            self._nbytes = self.own_bytes + sum(chunk.nbytes for chunk in self.chunks)
        return self._nbytes

    # -- rows and chunks

    def start(self, number: int) -> int:
        """The row of the first topic of a chunk; for the number after the last chunk, the number of topics."""
        return self._starts[number]

    @property
    def form_edges(self) -> tuple[list[bytes], list[bytes]]:
        """For each chunk the least form of it and all later chunks, and the greatest of it and all earlier ones: both
        ascend, whatever the order of the forms in the chunks is.
        """
        if self._form_edges is None:
            bounds = [chunk.form_bounds for chunk in self.chunks]
            firsts = list(accumulate((first for first, _ in reversed(bounds)), min))[::-1]
            self._form_edges = firsts, list(accumulate((last for _, last in bounds), max))
        return self._form_edges

    def chunk_at(self, row: int) -> int:
        """The number of the chunk that has a row."""
        return bisect_right(self._starts, row, 1, len(self.chunks)) - 1 if len(self.chunks) > 1 else 0

    def pieces(self, low: int, high: int) -> Pieces:
        """The rows from ``low`` to ``high``."""
        if low >= high:
            return ()
        first, last = self.chunk_at(low), self.chunk_at(high - 1)
        starts = self._starts
        if first == last:
            return ((first, ChunkRows(low - starts[first], high - starts[first])),)
        return (
            (first, ChunkRows(low - starts[first], self.chunks[first].size)),
            *((number, ChunkRows(0, self.chunks[number].size)) for number in range(first + 1, last)),
            (last, ChunkRows(0, high - starts[last])),
        )

    def pieces_of(self, rows: Array) -> Pieces:
        """The pieces of ascending rows."""
        if len(self.chunks) == 1:
            return ((0, ChunkRows.of(rows)),) if len(rows) else ()
        made: list[tuple[int, ChunkRows]] = []
        edges = np.searchsorted(rows, self._starts).tolist()
        for number, (low, high) in enumerate(pairwise(edges)):
            if low < high:
                made.append((number, ChunkRows.of(rows[low:high] - self._starts[number])))
        return tuple(made)

    def rows_of(self, pieces: Pieces) -> Array:
        """The row numbers of pieces."""
        kind = np.int32 if self.size < 2**31 else np.int64
        parts = [rows.array.astype(kind, copy=False) + self._starts[number] for number, rows in pieces]
        if not parts:
            return np.zeros(0, kind)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def fields_size(self, low: int, high: int) -> int:
        """Bytes of the encoded names from row ``low`` to ``high``."""
        if low >= high:
            return 0
        if len(self.chunks) == 1 and high - low == self.size:
            return self.chunks[0].fields_size
        return self._bytes_at(high) - self._bytes_at(low)

    def _bytes_at(self, row: int) -> int:
        """Bytes of the encoded names before a row."""
        if self._bytes_before is None:
            self._bytes_before = [0, *accumulate(chunk.fields_size for chunk in self.chunks)]
        if row == self.size:
            return self._bytes_before[-1]
        number = self.chunk_at(row)
        offsets = self.chunks[number].field_offsets
        before: int = offsets.item(row - self._starts[number]) - offsets.item(0)
        return self._bytes_before[number] + before

    # -- what was encoded elsewhere

    def check(self, pieces: Pieces) -> None:
        """Check the names of some rows once. Raises :exc:`~broker_core.errors.InvalidListing`."""
        for number, rows in pieces:
            self.chunks[number].check(rows.low, rows.high, rows.rows)
        if not self._borders_checked and len(pieces) > 1:
            self._check_borders(pieces)
            self._borders_checked = sum(len(rows) for _, rows in pieces) == self.size

    def check_borders(self) -> None:
        """Check the order from chunk to chunk once, after which a chunk may be replaced by one that fits in its place.

        Raises :exc:`~broker_core.errors.InvalidListing`.
        """
        if not self._borders_checked:
            self._check_borders(self.pieces(0, self.size))
            self._borders_checked = True

    def _check_borders(self, pieces: Pieces) -> None:
        """Check the order from chunk to chunk; a chunk's own check covers only its names."""
        edges: list[bytes] = []
        for number, rows in pieces:
            edges += [self.chunks[number].name(row) for row in (rows.low, rows.high - 1)]
        try:
            keys = hash_order_key(pa.array(edges, pa.large_binary()).cast(pa.large_string()))
        except pa.ArrowInvalid as error:
            raise InvalidListing(f"encoded names of {self.namespace} are no UTF-8: {error!s:.200}") from None
        lasts = keys.take(pa.array(range(1, len(edges) - 1, 2)))
        firsts = keys.take(pa.array(range(2, len(edges), 2)))
        if not pc.all(pc.less(lasts, firsts)).as_py():
            raise InvalidListing(
                f"encoded names of {self.namespace} are not in the order of the hash, each once"
            )

    def is_checked(self, pieces: Pieces) -> bool:
        """Whether :meth:`check` has nothing to do."""
        return (self._borders_checked or len(pieces) < 2) and all(
            self.chunks[number].is_checked(rows.low, rows.high) for number, rows in pieces
        )

    @property
    def is_believed(self) -> bool:
        """Whether all names were checked."""
        if not self._believed:
            self._believed = self._borders_checked and all(chunk.is_believed for chunk in self.chunks)
        return self._believed

    @property
    def forms_are_made(self) -> bool:
        """Whether :attr:`form_edges` needs no chunk to make its forms."""
        return self._form_edges is not None or all(chunk.is_searchable for chunk in self.chunks)

    # -- names and their text

    def column(self, pieces: Pieces) -> pa.LargeBinaryArray:
        """The fields of some rows; a range in one chunk is not copied."""
        self.check(pieces)
        columns = [self.chunks[number].column(rows.low, rows.high, rows.rows) for number, rows in pieces]
        return _joined_columns(columns, pa.large_binary())

    def names(self, pieces: Pieces) -> pa.LargeStringArray:
        """The full names of some rows."""
        self.check(pieces)
        columns = [self.chunks[number].names(rows.low, rows.high, rows.rows) for number, rows in pieces]
        return _joined_columns(columns, pa.large_string())

    def text_crc(self, pieces: Pieces) -> TextCrc:
        """The CRC of the names of some rows, each after a comma."""
        return joined([rows.text(self.chunks[number]) for number, rows in pieces])

    def hash(self, pieces: Pieces) -> str:
        """The topics hash of some rows."""
        return crc_text(without_first_comma(self.text_crc(pieces)))

    def range_hash(self, low: int, high: int, *, remember: bool = True) -> str:
        """The topics hash of rows ``low`` to ``high``; computed once for all rows, and if it is remembered."""
        known = self.known_range_hash(low, high)
        if known is None:
            if high - low == self.size:
                self.known_hash = known = crc_text(without_first_comma(self._text_crc()))
            else:
                known = self.hash(self.pieces(low, high))
                if remember:
                    self.memo.put(((Remembered.HASH, (low, high)), None), known)
        return known

    def _text_crc(self) -> TextCrc:
        """The CRC of all names, each after a comma."""
        if len(self.chunks) == 1:
            return self.chunks[0].crc
        if self._joined is None:
            self._joined = JoinedCrcs.of(*_crcs_of(self.chunks))
        return self._joined.total

    @property
    def is_nearly_hashed(self) -> bool:
        """Whether the hash of the whole listing reads no chunk."""
        return self._joined is not None or self.known_hash is not None

    def known_range_hash(self, low: int, high: int) -> str | None:
        """The hash of rows ``low`` to ``high`` if it is known already."""
        if low >= high:
            return EMPTY_HASH
        return (
            self.known_hash
            if high - low == self.size
            else self.memo.get(((Remembered.HASH, (low, high)), None))
        )

    def rows_hash(self, key: bytes, pieces: Pieces) -> str:
        """The topics hash of the rows that have a key; computed once."""
        known: str | None = self.memo.get(((Remembered.HASH, key), None))
        if known is None:
            known = self.hash(pieces)
            self.memo.put(((Remembered.HASH, key), None), known)
        return known

    # -- changes

    def replaced(self, first: int, end: int, chunks: Sequence[Chunk]) -> ListingData:
        """The listing with other chunks, any number of them, in place of the chunks number ``first`` to ``end``.

        They fit in that place, and the order from chunk to chunk was checked (:meth:`check_borders`). All that is known
        of this listing, also of its hash, is taken over: only the new chunks are read.
        """
        starts = array(_ROWS, accumulate(map(_SIZE, chunks), initial=self._starts[first]))
        grown = starts.pop() - self._starts[end]
        after = np.frombuffer(self._starts, np.int64)[end:] + grown
        starts = self._starts[:first] + starts
        starts.frombytes(after.tobytes())
        made = ListingData(
            self.namespace, self.mode, (*self.chunks[:first], *chunks, *self.chunks[end:]), starts
        )
        made._former = self._version, first, first + len(chunks)
        if self._believed:
            made._believed = all(chunk.is_believed for chunk in chunks)
        known = self.first_keys  # a listing that changed once will change again
        # Between chunks that changed there may be hundreds that did not.
        before = dict(zip(self.chunks[first:end], known[first:end], strict=True))
        keys = [before.get(chunk) or _first_key(chunk) for chunk in chunks]
        made._first_keys = [*known[:first], *keys, *known[end:]]
        if self._joined is not None:
            made._joined = self._joined.replaced(first, end, *_crcs_of(chunks))
        made._form_edges = self._form_edges if have_alike_bounds(chunks, self.chunks[first:end]) else None
        return made

    def chunks_since(self, former: ListingData) -> Collection[Chunk]:
        """The chunks that another listing does not have, and perhaps a few shared ones."""
        if self._former is not None and self._former[0] is former._version:
            _, first, end = self._former
            return self.chunks[first:end]
        return set(self.chunks).difference(former.chunks)

    def know_changes(self, former: ListingData, came: Sequence[bytes], went: Sequence[bytes]) -> None:
        """Record the keys of all names that came and went since another version, and take over its changes."""
        size = sum(_EACH_CHANGED + len(key) for keys in (came, went) for key in keys)
        if size > _CHANGES:
            return
        steps, total = former._changes, former._changes_size + size
        first = 0
        while total > _CHANGES:
            total -= steps[first][3]
            first += 1
        self._changes, self._changes_size = (*steps[first:], (former._version, came, went, size)), total

    def changes_since(self, former: ListingData) -> tuple[list[bytes], list[bytes]] | None:
        """The keys of the names that only this version has, and of those that only another version has, each in order.

        ``None`` if that is not known.
        """
        if self._since is None or self._since[0] is not former._version:
            self._since = former._version, self._changes_since(former)
        return self._since[1]

    def _changes_since(self, former: ListingData) -> tuple[list[bytes], list[bytes]] | None:
        if former._version is self._version:
            return [], []
        has: dict[bytes, bool] = {}
        had: dict[bytes, bool] = {}
        for version, came, went, _ in reversed(self._changes):
            for keys, is_there in ((came, True), (went, False)):
                for key in keys:
                    has.setdefault(key, is_there)
                    had[key] = not is_there
            if version is former._version:
                changed = sorted(key for key in has if has[key] is not had[key])
                return [key for key in changed if has[key]], [key for key in changed if had[key]]
        return None

    # -- looking names up

    @property
    def first_keys(self) -> list[bytes]:
        """The key of each chunk's first name (:func:`~broker_core.names.hash_order.hash_order_bytes`)."""
        if self._first_keys is None:
            self._first_keys = [*map(_first_key, self.chunks)]
        return self._first_keys

    def place(self, key: bytes, first: int = 0, end: int | None = None) -> tuple[int, int, bool]:
        """The chunk and the row in it where a name is or would be inserted, and whether it is there.

        ``key`` is from :func:`~broker_core.names.hash_order.hash_order_bytes`; only the chunks number ``first`` to
        ``end`` are searched.
        """
        after = self._chunk_after(key, first, end)
        if after == first:
            return first, 0, False
        chunk = self.chunks[after - 1]
        key_at = chunk.key_reader()
        row = bisect_left(range(chunk.size), key, key=key_at)
        return after - 1, row, row < chunk.size and key_at(row) == key

    def keys_before(self, keys: Sequence[bytes], row: int) -> int:
        """Number of keys of names, which ascend, that are of names before a row of this listing."""
        if row >= self.size or not keys:
            return len(keys)
        number = self.chunk_at(row)
        return bisect_left(keys, hash_order_bytes(self.chunks[number].name(row - self._starts[number])))

    def chunk_of(self, key: bytes) -> int:
        """The number of the chunk that has or would get a name; the first chunk's for a name before all others."""
        return max(self._chunk_after(key, 0, None) - 1, 0)

    def _chunk_after(self, key: bytes, first: int, end: int | None) -> int:
        """The first of the chunks number ``first`` to ``end`` that begins after the name."""
        if self._first_keys is None:  # few lookups are not worth a look at every chunk
            return bisect_right(self.chunks, key, first, end, key=_first_key)
        return bisect_right(self._first_keys, key, first, end)


def _first_key(chunk: Chunk) -> bytes:
    """The key of a chunk's first name, which sorts in the order of the hash."""
    return hash_order_bytes(chunk.name(0))


def _crcs_of(chunks: Sequence[Chunk]) -> tuple[list[int], list[int]]:
    """The CRC and the size in bytes of each chunk."""
    texts = [chunk.crc for chunk in chunks]
    return [text.crc for text in texts], [text.size for text in texts]


def _joined_columns(columns: list[Any], type_: pa.DataType) -> Any:
    if not columns:
        return pa.array([], type_)
    return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)
