"""A listing: the topics of one namespace as Arrow columns, ready to be filtered, hashed and sent.

Three columns hold every name once in the form that each step needs, so that no step builds a Python object per topic:

- ``fields``: the pre-encoded protobuf field of each name (tag 0x12, length, name). A slice of it is the body of a
  ``CommandGetTopicsOfNamespaceResponse``.
- ``joined``: each name followed by a comma. CRC32C of a slice, less its last byte, is the topics hash.
- ``matched``: ``tenant/namespace/topic`` without partition suffix: what a pattern matches.

Rows of ``fields`` and ``joined`` are in the order of the hash (UTF-16 code units of the full name). ``matched`` is in
its own UTF-8 order, since ranges are searched in it; the two orders differ where partitions, two domains or characters
beyond the BMP are about, and ``by_matched`` is then the permutation from one to the other.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.name_columns import (
    as_column,
    check_local_names,
    column_data,
    contains,
    hash_order_key,
    is_ascending,
    partitioned_local_names,
    split_full_names,
    system_topics,
    with_ends,
    without_ends,
)
from broker_core.names import NON_PERSISTENT, PERSISTENT, Mode, NamespaceName
from broker_core.topics_hash import EMPTY_HASH, crc_text, extend_crc

if TYPE_CHECKING:
    from broker_core.selection import Selection

__all__ = ["Listing", "encode_fields"]

_TAG = 0x12  # field 2, length-delimited: `repeated string topics = 2`
_EMPTY = pa.array([], pa.large_string())


class Listing:
    """The topics of a namespace in one mode; immutable, and shared by all requests that it answers.

    Build one with :meth:`from_names` or :meth:`from_columns`; both check every name (or raise
    :exc:`~broker_core.errors.InvalidListing`), collapse duplicates and leave system topics out.
    """

    __slots__ = (
        "_hash",
        "_lock",
        "_memo",
        "_memo_bytes",
        "by_matched",
        "field_offsets",
        "fields",
        "has_newline",
        "joined",
        "joined_offsets",
        "matched",
        "matched_offsets",
        "mode",
        "namespace",
    )

    def __init__(
        self,
        namespace: NamespaceName,
        mode: Mode,
        fields: pa.LargeBinaryArray,
        joined: pa.LargeStringArray,
        matched: pa.LargeStringArray,
        by_matched: np.ndarray[Any, Any] | None,
    ) -> None:
        """For the builders of this package: columns as the module says, of equal length, already checked."""
        self.namespace = namespace
        self.mode = mode
        self.fields, self.field_offsets = column_data(fields)
        self.joined, self.joined_offsets = column_data(joined)
        self.matched = matched
        self.by_matched = by_matched
        self.matched_offsets: np.ndarray[Any, Any] = column_data(matched)[1]
        self.has_newline = contains(matched, "\n")
        self._hash: str | None = None
        self._memo: OrderedDict[str, Selection] = OrderedDict()
        self._memo_bytes = 0
        self._lock = threading.Lock()

    @classmethod
    def from_names(
        cls,
        namespace: NamespaceName | str,
        mode: Mode,
        names: Sequence[str] | pa.Array[Any] | pa.ChunkedArray[Any],
    ) -> Listing:
        """The listing of full names (``persistent://tenant/namespace/topic``) in any order."""
        namespace = NamespaceName.parse(namespace) if isinstance(namespace, str) else namespace
        persistent, other = split_full_names(as_column(names), namespace, mode)
        return cls.from_columns(namespace, mode, persistent, other, check=False)

    @classmethod
    def from_columns(
        cls,
        namespace: NamespaceName,
        mode: Mode,
        persistent: pa.LargeStringArray | None = None,
        non_persistent: pa.LargeStringArray | None = None,
        *,
        check: bool = True,
    ) -> Listing:
        """The listing of local names, one column a domain, in any order; ``check=False`` where they are checked."""
        blocks: list[tuple[pa.LargeStringArray, pa.LargeStringArray, str]] = []
        for domain, names in ((NON_PERSISTENT, non_persistent), (PERSISTENT, persistent)):
            if names is None or not mode.lists(domain):
                continue
            if check:
                check_local_names(names)
            locals_, bases = _ordered(names, namespace, domain)
            blocks.append((locals_, bases, f"{domain}://{namespace}/"))
        joined = _concat([with_ends(locals_, prefix, ",") for locals_, _, prefix in blocks])
        matched = _concat([with_ends(bases, f"{namespace}/", "") for _, bases, _ in blocks])
        order: np.ndarray[Any, Any] | None = None
        if not _not_descending(matched):
            order = pc.sort_indices(matched).to_numpy().astype(np.int64)
            matched = matched.take(pa.array(order))
        return cls(namespace, mode, encode_fields(joined), joined, matched, order)

    def __len__(self) -> int:
        return len(self.field_offsets) - 1

    @property
    def nbytes(self) -> int:
        """Bytes that this listing holds in memory, the room for remembered answers included."""
        return self.column_bytes + self._memo_limit

    @property
    def column_bytes(self) -> int:
        """Bytes of the columns alone."""
        own = self.fields.size + self.joined.size + self.matched.nbytes
        own += int(self.field_offsets.nbytes + self.joined_offsets.nbytes)
        return own + (0 if self.by_matched is None else int(self.by_matched.nbytes))

    @property
    def _memo_limit(self) -> int:
        return 8 * 1024 + self.joined.size // 16

    @property
    def topics_hash(self) -> str:
        """The topics hash of all of it: 8 hex digits."""
        return self.range_hash(0, len(self))

    @property
    def names(self) -> pa.LargeStringArray:
        """All full names in the order of the hash."""
        return self.all().names

    def joined_range(self, low: int, high: int) -> memoryview:
        """Names ``low`` to ``high`` with a comma between, as the hash is computed over them."""
        if low >= high:
            return memoryview(b"")
        return memoryview(self.joined)[self.joined_offsets[low] : self.joined_offsets[high] - 1]

    def range_hash(self, low: int, high: int) -> str:
        """The topics hash of rows ``low`` to ``high``; of the whole listing it is computed once."""
        known = self.known_range_hash(low, high)
        if known is not None:
            return known
        computed = crc_text(extend_crc(0, self.joined_range(low, high)))
        if high - low == len(self):
            self._hash = computed
        return computed

    def known_range_hash(self, low: int, high: int) -> str | None:
        """The hash of these rows where it takes no computing."""
        if low >= high:
            return EMPTY_HASH
        return self._hash if high - low == len(self) else None

    def matched_range(self, low: bytes, high: bytes) -> tuple[int, int]:
        """The positions in ``matched`` of the forms within ``[low, high)`` bytes."""
        return self._bisect(low), self._bisect(high)

    def _bisect(self, key: bytes) -> int:
        offsets = self.matched_offsets
        data = memoryview(self.matched.buffers()[2] or b"")
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if bytes(data[offsets[middle] : offsets[middle + 1]]) < key:
                low = middle + 1
            else:
                high = middle
        return low

    def all(self) -> Selection:
        """All topics of the listing."""
        from broker_core.selection import Selection

        return Selection(self, 0, len(self))

    def rows(self, rows: np.ndarray[Any, Any]) -> Selection:
        """The topics at these positions (ascending, each once)."""
        from broker_core.selection import Selection

        return Selection.of_rows(self, rows)

    def remembered(self, key: str) -> Selection | None:
        """What :meth:`remember` kept under ``key``, if it still does."""
        found = self._memo.get(key)
        if found is not None:
            try:
                self._memo.move_to_end(key)
            except KeyError:  # another thread has just let go of it
                pass
        return found

    def remember(self, key: str, selection: Selection) -> None:
        """Keep an answer for the life of this listing, which never changes; least used ones make room."""
        size = selection.remembered_bytes + 2 * len(key) + 512
        limit = self._memo_limit
        if size > limit // 4:
            return
        with self._lock:
            if key in self._memo:
                return
            self._memo[key] = selection
            self._memo_bytes += size
            while self._memo_bytes > limit:
                old_key, old = self._memo.popitem(last=False)
                self._memo_bytes -= old.remembered_bytes + 2 * len(old_key) + 512

    def positions(self, names: pa.LargeStringArray) -> np.ndarray[Any, Any]:
        """The row of each full name, -1 where the listing does not have it (int64)."""
        found = pc.index_in(names, self.names).fill_null(-1)
        return found.to_numpy(zero_copy_only=False).astype(np.int64)

    def with_changes(self, removed: Sequence[str], added: Sequence[str]) -> Listing:
        """This listing without some names and with others: the columns are spliced, not built anew.

        Names are full names; one to remove that is absent, or to add that is there, changes nothing. What is added must
        be a listing of this namespace and mode, else :exc:`~broker_core.errors.InvalidListing`.
        """
        from broker_core.listing_splice import splice

        addition = Listing.from_names(self.namespace, self.mode, list(added))
        return splice(self, as_column(list(removed)), addition)

    def __repr__(self) -> str:
        return f"<Listing of {self.namespace} {self.mode.name}: {len(self)} topics>"


def encode_fields(joined: pa.LargeStringArray) -> pa.LargeBinaryArray:
    """The protobuf field of each ``name,``: tag, length as a varint, and the name without its comma."""
    _, offsets = column_data(joined)
    sizes = np.diff(offsets) - 1
    present, codes = np.unique(sizes, return_inverse=True)
    heads = pa.array([bytes([_TAG]) + _varint(int(size)) for size in present], pa.large_binary())
    names = without_ends(joined, 0, 1).cast(pa.large_binary())
    if len(heads) == 1:
        return pc.binary_replace_slice(names, 0, 0, heads[0].as_py())
    return pc.binary_join_element_wise(heads.take(pa.array(codes)), names, pa.scalar(b"", pa.large_binary()))


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _ordered(
    names: pa.LargeStringArray, namespace: NamespaceName, domain: str
) -> tuple[pa.LargeStringArray, pa.LargeStringArray]:
    """(local names, the same without partition suffix): in hash order, nothing twice, no system topics."""
    key = hash_order_key(names)
    if not is_ascending(key):
        names = names.take(pc.sort_indices(key))
        if len(names) > 1:
            keep = pc.not_equal(names[:-1], names[1:]).to_numpy(zero_copy_only=False)
            if not keep.all():
                names = names.filter(pa.array(np.concatenate((keep, [True]))))
    bases = partitioned_local_names(names)
    hidden = system_topics(bases, namespace, domain)
    if hidden is not None:
        shown = pc.invert(hidden)
        names, bases = names.filter(shown), bases.filter(shown)
    return names, bases


def _not_descending(column: pa.LargeStringArray) -> bool:
    return len(column) < 2 or bool(pc.all(pc.less_equal(column[:-1], column[1:])).as_py())


def _concat(columns: list[pa.LargeStringArray]) -> pa.LargeStringArray:
    filled = [column for column in columns if len(column)]
    if not filled:
        return _EMPTY
    return filled[0] if len(filled) == 1 else pa.concat_arrays(filled)
