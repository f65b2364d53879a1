"""Encoding a listing page by page: a lister's names, in the form in which they are sent.

A page is the local names of one domain, each after a slash (``/a/b/c``): a local name has none, so slashes separate
names, and are the end of each full name's prefix. Encoding is then two replacements of one byte, at the
speed of memory; pages that arrive in the order of the hash are only appended, and the hash grows with them.
"""

from __future__ import annotations

from itertools import pairwise
from operator import lt
from typing import Final

import numpy as np
import pyarrow as pa

from broker_core.errors import InvalidListing, InvalidName
from broker_core.listing.chunks.build_chunks import chunk_size, cut_chunk, cuts_by_size
from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.fields.fields_codec import binary_column, encode_fields
from broker_core.listing.fields.topic_field import TAG
from broker_core.listing.listing import Listing, listing_of
from broker_core.listing.listing_data import ListingData
from broker_core.listing.listing_hash import crc_text, extend_crc, with_first_comma
from broker_core.names import (
    MAX_NAME_BYTES,
    NON_PERSISTENT,
    PARTITION_SUFFIX,
    Array,
    Mode,
    NamespaceName,
    check_local_names,
    column_data,
    hash_order_bytes,
    hash_order_key,
    is_ascending,
    partitioned_local_names,
    sorted_rows,
    system_topic_mask,
    system_topics_rule,
    with_ends,
    without_ends,
)
from broker_core.patterns import TopicsPattern

__all__ = ["ListingEncoder"]

_SLASH: Final = 0x2F
_ZERO: Final = np.zeros(1, np.int64)
_SUFFIX: Final = PARTITION_SUFFIX.encode()
#: Up to so many bytes of a page are put in order without Arrow, whose calls alone take longer.
_SMALL: Final = 1024


class ListingEncoder:
    """Builds one :class:`~broker_core.listing.listing.Listing`; for one thread at a time."""

    def __init__(self, namespace: NamespaceName, mode: Mode, pattern: TopicsPattern | None = None) -> None:
        """``pattern``, which RE2 supports, leaves out names that it does not match."""
        self.namespace = namespace
        self.mode = mode
        self._pattern = pattern
        #: Whether the first and last name of a page in order may prove that all of it matches.
        self._by_ends = pattern is not None and (
            pattern.match_all or pattern.exact_range or pattern.literal is not None
        )
        self._chunks: list[Chunk] = []
        # The chunk that is being filled.
        self._domain = NON_PERSISTENT
        self._fields = bytearray()  # encoded, and the offset at which each name ends
        self._ends: list[Array] = []
        self._crc = self._text_size = 0  # of its text without the first comma, and the bytes of all of it
        self._last = b""  # the last full name, as it is ordered
        self._loose: list[pa.LargeStringArray] = []  # full names that came out of order

    @property
    def nbytes(self) -> int:
        """Bytes that the encoder holds."""
        loose = sum(column.nbytes for column in self._loose)
        own = len(self._fields) + sum(int(ends.nbytes) for ends in self._ends)
        return sum(chunk.column_bytes for chunk in self._chunks) + own + int(loose)

    def add(self, domain: str, page: bytes) -> int:
        """Take a page of names, in any order, duplicates allowed; gives how many it had.

        System topics are left out, and names that the pattern does not match. Raises
        :exc:`~broker_core.errors.InvalidListing` for an invalid name.
        """
        if not page or not self.mode.lists(domain):
            return 0
        offsets = _offsets(page)
        sizes = offsets[1:] - offsets[:-1]
        count = len(sizes)
        if (
            page[0] != _SLASH
            or int(sizes.min()) < 2
            # In a page that is no longer than a name may be, no name is longer.
            or (len(page) > MAX_NAME_BYTES + 1 and int(sizes.max()) > MAX_NAME_BYTES + 1)
            or b"\0" in page
        ):
            try:
                check_local_names(without_ends(_column(page, offsets), 1, 0))
            except InvalidName as error:
                raise InvalidListing(str(error)) from None
            raise InvalidListing("a page of names does not begin with a slash")
        if not self._by_ends:
            # Names that do not match need not be put in order.
            page, offsets = self._matching(page, offsets)
        page, offsets = self._visible(domain, *self._ordered(page, offsets))
        if self._by_ends:
            page, offsets = self._matching(page, offsets)
        if page:
            self._append(domain, page, offsets)
        return count

    def finish(self) -> Listing:
        """The listing of all pages; the encoder cannot be used afterwards."""
        topics_hash = None if self._chunks or self._loose else crc_text(self._crc)
        if self._ends:
            self._close(is_all=topics_hash is not None)
        data = ListingData(self.namespace, self.mode, self._chunks)
        if not self._loose:
            data.known_hash = topics_hash or data.range_hash(0, data.size)
            return listing_of(data)
        names = pa.concat_arrays([data.names(data.pieces(0, data.size)), *self._loose])
        return Listing.from_names(self.namespace, self.mode, names)

    def _close(self, *, is_all: bool = False) -> None:
        """Make a chunk of the collected names, and begin the next; ``is_all``: it is the only one."""
        offsets = np.concatenate((_ZERO, *self._ends))
        chunk = Chunk(
            self.namespace, self._domain, pa.py_buffer(memoryview(self._fields).toreadonly()), offsets
        )
        if not is_all:
            chunk.known_crc = with_first_comma(self._crc, self._text_size)
        self._chunks += cut_chunk(chunk)  # names of very different sizes
        self._fields, self._ends, self._crc, self._text_size = bytearray(), [], 0, 0

    def _ordered(self, page: bytes, offsets: Array) -> tuple[bytes, Array]:
        """The page in the order of the hash, each name once."""
        is_ascii = page.isascii()
        if is_ascii and len(page) <= _SMALL:
            names = page.split(b"/")  # an empty one comes first
            if all(map(lt, names, names[1:])):
                return page, offsets
        column = _column(page, offsets)
        key = column if is_ascii else hash_order_key(column)
        if is_ascending(key):
            return page, offsets
        column = column.take(pa.array(sorted_rows(key)))
        page, offsets = _page_of(column)
        key = hash_order_key(column)
        if not is_ascending(key):
            every = column.to_numpy(zero_copy_only=False)
            column = column.filter(pa.array(np.concatenate(([True], every[1:] != every[:-1]))))
            page, offsets = _page_of(column)
        return page, offsets

    def _visible(self, domain: str, page: bytes, offsets: Array) -> tuple[bytes, Array]:
        """The page without the topics that brokers keep for themselves."""
        rule = system_topics_rule()
        mark = rule.mark.encode()
        # One byte is found many times as fast as two, and as a rule no name has it.
        marked = mark[:1] in page and mark in page
        if not marked and not rule.local_prefixes(self.namespace, domain):
            return page, offsets
        column = _column(page, offsets)
        hidden = system_topic_mask(
            partitioned_local_names(without_ends(column, 1, 0)), self.namespace, domain
        )
        if hidden is None:
            return page, offsets
        return _page_of(column.filter(pa.array(~hidden.to_numpy(zero_copy_only=False))))

    def _matching(self, page: bytes, offsets: Array) -> tuple[bytes, Array]:
        """The names of a page in order that match."""
        pattern = self._pattern
        if pattern is None or not page or self._is_proven(page, offsets, pattern):
            return page, offsets
        column = _column(page, offsets)
        if _SUFFIX in page:
            names = partitioned_local_names(without_ends(column, 1, 0))
            forms = with_ends(names, f"{self.namespace}/", "")
        else:
            forms = with_ends(column.cast(pa.large_string()), str(self.namespace), "")
        keep = pattern.match_column(forms)
        return (page, offsets) if keep.true_count == len(column) else _page_of(column.filter(keep))

    def _is_proven(self, page: bytes, offsets: Array, pattern: TopicsPattern) -> bool:
        """Whether the first and last name of a page in order prove that all of it matches.

        All names between two that begin with a text begin with it. That is enough if the pattern is such a text and
        then anything, and if no name has a partition suffix. A pattern without any operator is compared with the one
        name.
        """
        if pattern.match_all:
            return True
        if b"\n" in page or _SUFFIX in page:
            return False
        head = str(self.namespace).encode()
        if pattern.literal is not None:
            return len(offsets) == 2 and head + page == pattern.literal.encode()
        if not pattern.exact_range or len(pattern.ranges) > 1:
            return False
        begin = pattern.ranges[0][0] if pattern.ranges else b""
        first = head + page[: offsets.item(1)]
        return first.startswith(begin) and (head + page[offsets.item(-2) :]).startswith(begin)

    def _append(self, domain: str, page: bytes, offsets: Array) -> None:
        """Encode a page that is in order: after the names so far, if it belongs there; else keep it for later."""
        prefix = f"{domain}://{self.namespace}".encode()
        if self._loose or (self._last and hash_order_bytes(prefix + page[: offsets.item(1)]) <= self._last):
            joined = page.replace(b"/", b"," + prefix + b"/")
            column = _column(joined, offsets + np.arange(len(offsets)) * (len(prefix) + 1))
            self._loose.append(without_ends(column, 1, 0))
            return
        self._last = hash_order_bytes(prefix + page[offsets.item(-2) :])
        rows = len(offsets) - 1
        # A large page is cut before it is encoded, so that no chunk of it is copied and hashed once more.
        for low, high in pairwise(cuts_by_size(len(page) + (len(prefix) + 2) * rows, rows)):
            if self._ends and (domain != self._domain or len(self._fields) >= chunk_size().made):
                self._close()
            self._domain = domain
            if high - low == rows:
                self._encode(prefix, page, offsets)
            else:
                own = offsets[low : high + 1]
                self._encode(prefix, page[own.item(0) : own.item(-1)], own - own.item(0))

    def _encode(self, prefix: bytes, page: bytes, offsets: Array) -> None:
        """Append the names of a page, or of a part of it, to the chunk that is being filled."""
        joined = page.replace(b"/", b"," + prefix + b"/")
        self._crc = extend_crc(self._crc, memoryview(joined)[0 if self._ends else 1 :])
        self._text_size += len(joined)
        base = len(self._fields)
        sizes = offsets[1:] - offsets[:-1] + len(prefix)
        longest = int(sizes.max())
        width = 1 if longest < 1 << 7 else 2
        if width == 2 and not (longest < 1 << 14 and int(sizes.min()) >= 1 << 7):
            column = _column(joined, offsets + np.arange(len(offsets)) * (len(prefix) + 1))
            encoded, ends = column_data(encode_fields(column))
            low = ends.item(0)
            self._fields += memoryview(encoded)[low : ends.item(-1)]
            self._ends.append(ends[1:] + (base - low))
            return
        # One piece of memory that grows: parts would be copied once more in the end.
        self._fields += page.replace(b"/", bytes([TAG, *bytes(width)]) + prefix + b"/")
        ends = (sizes + (1 + width)).cumsum()
        ends += base
        bytes_of = np.frombuffer(self._fields, np.uint8)
        lengths_at = ends - sizes - width
        if width == 1:
            bytes_of[lengths_at] = sizes
        else:
            bytes_of[lengths_at] = sizes & 0x7F | 0x80
            bytes_of[lengths_at + 1] = sizes >> 7
        del bytes_of  # while it is there, the bytes cannot grow
        self._ends.append(ends)


def _offsets(page: bytes) -> Array:
    """Offsets (int64) at which each name of a page begins, and the last one ends."""
    starts = (np.frombuffer(page, np.uint8) == _SLASH).nonzero()[0]
    offsets = np.empty(len(starts) + 1, np.int64)
    offsets[:-1] = starts
    offsets[-1] = len(page)
    return offsets


def _column(data: bytes, offsets: Array) -> pa.LargeBinaryArray:
    return binary_column(pa.py_buffer(data), offsets)


def _page_of(column: pa.LargeBinaryArray) -> tuple[bytes, Array]:
    data, offsets = column_data(column)
    low, high = int(offsets[0]), int(offsets[-1])
    return bytes(memoryview(data)[low:high]), offsets - low
