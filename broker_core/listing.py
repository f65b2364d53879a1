"""A listing: the topics of one namespace as Arrow columns, ready to be filtered, hashed and sent.

Three columns hold every name once in the form that each step needs, so that no step builds a Python object per topic:

- ``fields``: the pre-encoded protobuf field of each name (tag 0x12, length, name). A slice of it is the body of a
  ``CommandGetTopicsOfNamespaceResponse``.
- ``joined``: a comma and each name. CRC32C of a slice, less its first byte, is the topics hash.
- ``matched``: ``tenant/namespace/topic`` without partition suffix: what a pattern matches.

Rows of ``fields`` and ``joined`` are in the order of the hash (UTF-16 code units of the full name). ``matched`` is in
its own UTF-8 order, since ranges are searched in it; the two orders differ where partitions, two domains or characters
beyond the BMP are about, and ``by_matched`` is then the permutation from one to the other.

Sending needs the first column only. A listing that was encoded for one answer has just that (and its hash), and makes
the others when somebody asks it more, as a plugin that hides topics does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.fields_codec import binary_column, decode_fields
from broker_core.listing_columns import (
    Columns,
    build_columns,
    checked_local_names,
    row_type,
)
from broker_core.listing_memo import Memo
from broker_core.name_columns import as_column, column_data, contains, split_full_names
from broker_core.names import NON_PERSISTENT, PERSISTENT, Mode, NamespaceName
from broker_core.topics_hash import EMPTY_HASH, crc_text, extend_crc

if TYPE_CHECKING:
    from broker_core.patterns import TopicsPattern
    from broker_core.selection import Part, Selection

__all__ = ["Listing"]

#: Names that are looked up one by one; for more, a hash table over all of the listing is made.
_FEW = 2048
#: What is made of ``fields`` when it is first asked for.
_DERIVED = frozenset({"by_matched", "has_newline", "joined", "joined_offsets", "matched", "matched_offsets"})


class Listing:
    """The topics of a namespace in one mode; immutable, and shared by all requests that it answers.

    Build one with :meth:`from_names` or :meth:`from_columns`; both check every name (or raise
    :exc:`~broker_core.errors.InvalidListing`), collapse duplicates and leave system topics out.
    """

    __slots__ = (
        "__weakref__",  # who counts the memory of listings wants to know when one has gone
        "_hash",
        "_is_encoded",
        "_is_mapped",
        "_last_range",
        "_places",
        "by_matched",
        "field_offsets",
        "fields",
        "has_newline",
        "joined",
        "joined_offsets",
        "matched",
        "matched_offsets",
        "memo",
        "mode",
        "namespace",
    )

    def __init__(
        self, namespace: NamespaceName, mode: Mode, columns: Columns, *, has_newline: bool | None = None
    ) -> None:
        """For the builders of this package: columns that are checked; ``has_newline`` where it is known."""
        self.fields, self.field_offsets = column_data(columns.fields)
        self._begin(namespace, mode)
        self._derive(columns, has_newline)

    def _begin(
        self, namespace: NamespaceName, mode: Mode, topics_hash: str | None = None, *, encoded: bool = False
    ) -> None:
        self.namespace = namespace
        self.mode = mode
        self._is_encoded = encoded
        self._is_mapped = False
        self._places: np.ndarray[Any, Any] | None = None
        self._hash = topics_hash
        self._last_range: tuple[bytes, bytes, tuple[int, int]] | None = None
        #: The parts of this listing that patterns match. They do not refer to the listing, which is freed at once when
        #: nobody has it any more.
        self.memo: Memo[Part] = Memo(8 * 1024 + self.fields.size // 16)

    def _derive(self, columns: Columns, has_newline: bool | None = None) -> None:
        self.joined, self.joined_offsets = column_data(columns.joined)
        self.matched: pa.LargeStringArray = columns.matched
        self.matched_offsets: np.ndarray[Any, Any] = column_data(columns.matched)[1]
        self.by_matched = columns.by_matched
        self.has_newline = contains(self.matched, "\n") if has_newline is None else has_newline

    if not TYPE_CHECKING:  # the attributes are as they are declared above

        def __getattr__(self, name: str) -> Any:
            """Make the columns that :meth:`from_fields` left out; called only where one is not there yet."""
            if name not in _DERIVED:
                raise AttributeError(name)
            names = decode_fields(binary_column(self.fields, self.field_offsets))
            self._derive(build_columns(self.namespace, *split_full_names(names, self.namespace, self.mode)))
            return getattr(self, name)

    @property
    def is_searchable(self) -> bool:
        """Whether the columns of the names are there; of encoded fields they are made when they are first asked for."""
        try:
            object.__getattribute__(self, "matched")
        except AttributeError:
            return False
        return True

    @classmethod
    def from_fields(
        cls,
        namespace: NamespaceName,
        mode: Mode,
        fields: pa.Buffer,
        offsets: np.ndarray[Any, Any],
        topics_hash: str | None = None,
    ) -> Listing:
        """The listing of encoded fields that are in the order of the hash, each once, without system topics.

        Nothing is checked: it is for who made the fields of checked names. ``offsets`` are int64, one more than names.
        """
        listing = cls.__new__(cls)
        listing.fields, listing.field_offsets = fields, offsets
        listing._begin(namespace, mode, topics_hash, encoded=True)  # noqa: SLF001 - it is the constructor
        return listing

    @classmethod
    def from_encoded(
        cls,
        namespace: NamespaceName | str,
        mode: Mode,
        fields: pa.LargeBinaryArray | Iterable[pa.LargeBinaryArray],
        *,
        topics_hash: str | None = None,
        mapped: bool = False,
    ) -> Listing:
        """The listing of names that are encoded already: each the protobuf field that it is sent in.

        They are in the order of the hash, each once, of this namespace and mode, without system topics, as
        :attr:`~broker_core.EncodedNames.fields` gives them; a column that is one is not copied. ``topics_hash`` is what
        the hash of all of it should be. ``mapped`` says that the column is a file that is mapped: it counts as no
        memory. Nothing of it is believed: names are checked before they go into an answer, once and only those, and
        where one is wrong, or the hash, that answer is an error.
        """
        namespace = NamespaceName.parse(namespace) if isinstance(namespace, str) else namespace
        if not isinstance(fields, pa.Array):
            columns = list(fields)
            fields = pa.concat_arrays(columns) if columns else pa.array([], pa.large_binary())
        data, offsets = column_data(fields)
        listing = cls.from_fields(namespace, mode, data, offsets, topics_hash)
        listing._is_mapped = mapped  # noqa: SLF001 - it is the constructor
        return listing

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
        """The listing of local names, one column a domain, in any order; ``check=False`` where they are checked.

        A domain that ``mode`` does not list is left out.
        """

        def shown(domain: str, names: pa.LargeStringArray | None) -> pa.LargeStringArray | None:
            if names is None or not mode.lists(domain):
                return None
            return checked_local_names(names) if check else names

        columns = build_columns(
            namespace, shown(PERSISTENT, persistent), shown(NON_PERSISTENT, non_persistent)
        )
        return cls(namespace, mode, columns)

    def __len__(self) -> int:
        return len(self.field_offsets) - 1

    @property
    def nbytes(self) -> int:
        """Bytes that this listing holds in memory, the room for remembered answers included."""
        return self.column_bytes + self.memo.limit

    @property
    def column_bytes(self) -> int:
        """Bytes of the columns alone; of one that was made of fields, of these."""
        if self._is_encoded:
            if self._is_mapped:
                return 0
            return int(self.fields.size + self.field_offsets.nbytes)
        own = self.fields.size + self.joined.size + self.matched.nbytes
        own += int(self.field_offsets.nbytes + self.joined_offsets.nbytes)
        return int(own) + (0 if self.by_matched is None else 2 * int(self.by_matched.nbytes))

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
        return memoryview(self.joined)[self.joined_offsets[low] + 1 : self.joined_offsets[high]]

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
        last = self._last_range
        if last is not None and last[0] == low and last[1] == high:
            return last[2]  # asked for twice: to know whether it is quick, and then for the answer
        first = self._bisect(low, 0)
        found = first, self._bisect(high, first if low <= high else 0)
        self._last_range = low, high, found
        return found

    def _bisect(self, key: bytes, start: int) -> int:
        # Views, since an array would make an object of numpy's for each offset.
        offsets = self.matched_offsets.data
        data = memoryview(self.matched.buffers()[2] or b"")

        def form(position: int) -> bytes:
            return bytes(data[offsets[position] : offsets[position + 1]])

        return bisect_left(range(len(self)), key, start, key=form)

    def all(self) -> Selection:
        """All topics of the listing."""
        from broker_core.selection import Part, Selection

        return Selection(self, Part(0, len(self)))

    def rows(self, rows: np.ndarray[Any, Any]) -> Selection:
        """The topics at these positions (ascending, each once)."""
        from broker_core.selection import Part, Selection

        return Selection(self, Part.of_rows(rows, len(self)))

    def range(self, low: int, high: int) -> Selection:
        """Rows ``low`` to ``high``, without the last; nothing is copied."""
        from broker_core.selection import Part, Selection

        if not 0 <= low <= high <= len(self):
            raise IndexError(f"rows from {low} to {high} of {len(self)}")
        return Selection(self, Part(low, high))

    def locate(
        self, names: Sequence[str] | pa.Array[Any] | pa.ChunkedArray[Any]
    ) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
        """For each full name the row where it is, or would be put in front of (int64), and whether it is there.

        A binary search for each.
        """
        from broker_core.listing_splice import locate

        return locate(self, as_column(names))

    def difference(self, older: Listing) -> tuple[Selection, Selection]:
        """The topics that ``older`` does not have, and (of ``older``) those that are not here any more.

        Raises :exc:`ValueError` for a listing of another namespace.
        """
        if older.namespace != self.namespace:
            raise ValueError(f"a listing of {older.namespace} beside one of {self.namespace}")
        if older is self:
            return self.range(0, 0), older.range(0, 0)
        names, former = self.names, older.names
        known = pc.is_in(names, former).to_numpy(zero_copy_only=False)
        stays = pc.is_in(former, names).to_numpy(zero_copy_only=False)
        return self.rows(np.flatnonzero(~known)), older.rows(np.flatnonzero(~stays))

    def batches(self, *columns: str, rows: int = 65_536) -> Iterator[pa.RecordBatch]:
        """The topics in the order of the hash, at most ``rows`` at a time: see :meth:`Selection.batches`."""
        return self.all().batches(*columns, rows=rows)

    def matching(self, pattern: TopicsPattern) -> Selection:
        """The topics that match ``pattern``; the answer is remembered."""
        return self.all().matching(pattern)

    def forget(self) -> None:
        """Remember no answers any more, because nobody new will ask this listing."""
        self.memo.close()

    @property
    def places(self) -> np.ndarray[Any, Any]:
        """Where in ``matched`` each row is: the inverse of ``by_matched``."""
        if self._places is None:
            places = np.arange(len(self), dtype=row_type(len(self)))
            if self.by_matched is None:
                return places
            inverse = np.empty_like(places)
            inverse[self.by_matched] = places
            self._places = inverse
        return self._places

    def positions(self, names: pa.LargeStringArray) -> np.ndarray[Any, Any]:
        """The row of each full name, -1 where the listing does not have it (int64)."""
        if len(names) <= _FEW:
            from broker_core.listing_splice import locate

            rows, present = locate(self, names)
            return np.where(present, rows, -1)
        found: np.ndarray[Any, Any] = (
            pc.index_in(names, self.names).fill_null(-1).to_numpy(zero_copy_only=False)
        )
        return found.astype(np.int64)

    def with_changes(
        self,
        removed: Sequence[str] | pa.Array[Any] | pa.ChunkedArray[Any],
        added: Sequence[str] | pa.Array[Any] | pa.ChunkedArray[Any],
    ) -> Listing:
        """This listing without some names and with others: the columns are spliced, not built anew.

        Names are full names; one to remove that is absent, or to add that is there, changes nothing. What is added must
        be a listing of this namespace and mode, else :exc:`~broker_core.errors.InvalidListing`.
        """
        from broker_core.listing_splice import splice

        return splice(self, as_column(removed), Listing.from_names(self.namespace, self.mode, added))

    def __repr__(self) -> str:
        return f"<Listing of {self.namespace} {self.mode.name}: {len(self)} topics>"
