"""A listing: the topics of one namespace, checked once and shared by all requests that it answers.

This is what plugins have of it. What it holds is :mod:`broker_core.listing.listing_data`, to which no attribute
leads: a listing that answers others cannot be changed by who has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.immutable.sealed import Sealed, seal
from broker_core.listing.build_columns import Columns, build_columns, checked_local_names
from broker_core.listing.listing_data import ListingData
from broker_core.listing.listing_part import Part, row_range
from broker_core.names import NON_PERSISTENT, PERSISTENT, Mode, NamespaceName
from broker_core.names.name_columns import as_column, hash_order_key, split_full_names

if TYPE_CHECKING:
    from broker_core.listing.selection import Selection
    from broker_core.patterns import TopicsPattern

__all__ = ["Listing", "Names", "data_of", "listing_of", "listing_of_locals"]

#: Full names as they may be handed over.
Names: TypeAlias = "Sequence[str] | pa.Array[Any] | pa.ChunkedArray[Any]"
#: Names that are looked up one by one; for more, a hash table over all of the listing is made.
_FEW: Final = 2048
_Array = np.ndarray[Any, Any]


@final
class Listing(Sealed):
    """The topics of a namespace in one mode; immutable, and shared by all requests that it answers.

    Build one with :meth:`from_names` or :meth:`from_columns`; both check every name (or raise
    :exc:`~broker_core.errors.InvalidListing`), collapse duplicates and leave system topics out.
    """

    __slots__ = ("__weakref__", "_data")  # who counts the memory of listings wants to know when one has gone

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
        :attr:`~broker_core.EncodedNames.fields` gives them; they are copied. ``topics_hash`` is what the hash of all of
        it should be. ``mapped`` says that the one column is a file that is mapped read-only: where the kernel says so
        too, it is not copied, and counts as no memory. It must be a file that nobody else can change, best one without
        a name: what is written into it is sent unseen, and where it is cut short the kernel ends the process
        (``SIGBUS``). One that still has a name is a :exc:`RuntimeWarning`.

        Nothing of that is believed. Names are looked at before they go into an answer, once, and only those that do:
        one that is wrong makes the answer an error, and a wrong hash is counted and replaced by the right one.
        """
        namespace = NamespaceName.parse(namespace) if isinstance(namespace, str) else namespace
        columns = [fields] if isinstance(fields, pa.Array) else list(fields)
        return listing_of(ListingData.claimed(namespace, mode, columns, topics_hash, mapped=mapped))

    @classmethod
    def from_names(cls, namespace: NamespaceName | str, mode: Mode, names: Names) -> Listing:
        """The listing of full names (``persistent://tenant/namespace/topic``) in any order."""
        namespace = NamespaceName.parse(namespace) if isinstance(namespace, str) else namespace
        return listing_of_locals(namespace, mode, *split_full_names(as_column(names), namespace, mode))

    @classmethod
    def from_columns(
        cls,
        namespace: NamespaceName,
        mode: Mode,
        persistent: pa.LargeStringArray | None = None,
        non_persistent: pa.LargeStringArray | None = None,
    ) -> Listing:
        """The listing of local names, one column a domain, in any order.

        A domain that ``mode`` does not list is left out.
        """

        def shown(domain: str, names: pa.LargeStringArray | None) -> pa.LargeStringArray | None:
            return None if names is None or not mode.lists(domain) else checked_local_names(names)

        return listing_of_locals(
            namespace, mode, shown(PERSISTENT, persistent), shown(NON_PERSISTENT, non_persistent)
        )

    @property
    def namespace(self) -> NamespaceName:
        return data_of(self).namespace

    @property
    def mode(self) -> Mode:
        return data_of(self).mode

    def __len__(self) -> int:
        return data_of(self).size

    @property
    def nbytes(self) -> int:
        """Bytes that this listing holds in memory, the room for remembered answers included."""
        data = data_of(self)
        return data.column_bytes + data.memo.limit

    @property
    def topics_hash(self) -> str:
        """The topics hash of all of it: 8 hex digits."""
        data = data_of(self)
        return data.range_hash(0, len(data))

    @property
    def names(self) -> pa.LargeStringArray:
        """All full names in the order of the hash."""
        return self.all().names

    def all(self) -> Selection:
        """All topics of the listing."""
        return _selection(self, Part(0, data_of(self).size))

    def range(self, low: int, high: int) -> Selection:
        """Rows ``low`` to ``high``, without the last; nothing is copied. Raises :exc:`IndexError`."""
        return _selection(self, Part.given_range(*row_range(low, high, len(self))))

    def rows(self, rows: _Array | Sequence[int]) -> Selection:
        """The topics at these positions (ascending, each once), which are copied.

        Raises :exc:`IndexError` for one that is outside, and :exc:`ValueError` where they do not ascend.
        """
        return _selection(self, Part.given(rows, len(self)))

    def matching(self, pattern: TopicsPattern) -> Selection:
        """The topics that match ``pattern``; the answer is remembered."""
        return self.all().matching(pattern)

    def positions(self, names: Names) -> _Array:
        """The row of each full name, -1 where the listing does not have it (int64)."""
        names = as_column(names)
        if len(names) <= _FEW:
            rows, present = self.locate(names)
            return np.where(present, rows, -1)
        found: _Array = pc.index_in(names, self.names).fill_null(-1).to_numpy(zero_copy_only=False)
        return found.astype(np.int64)

    def locate(self, names: Names) -> tuple[_Array, _Array]:
        """For each full name the row where it is, or would be put in front of (int64), and whether it is there.

        A binary search for each.
        """
        keys = hash_order_key(as_column(names))
        return data_of(self).locate([key.as_buffer().to_pybytes() for key in keys])

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

    def with_changes(self, removed: Names, added: Names) -> Listing:
        """This listing without some names and with others: the columns are spliced, not built anew.

        Names are full names; one to remove that is absent, or to add that is there, changes nothing. What is added must
        be a listing of this namespace and mode, else :exc:`~broker_core.errors.InvalidListing`.
        """
        from broker_core.listing.listing_splice import splice

        addition = Listing.from_names(self.namespace, self.mode, added)
        spliced = splice(data_of(self), as_column(removed), data_of(addition))
        return self if spliced is data_of(self) else listing_of(spliced)

    def __repr__(self) -> str:
        return f"<Listing of {self.namespace} {self.mode.name}: {len(self)} topics>"


_data = seal(Listing, "_data")
#: What a listing holds.
data_of: Final[Callable[[Listing], ListingData]] = _data.__get__


class _Selections:
    """How selections are made, by the module above, which is looked up once: each answer begins with one."""

    make: Callable[[Listing, Part], Selection] | None = None


def _selection(listing: Listing, part: Part) -> Selection:
    make = _Selections.make
    if make is None:
        from broker_core.listing.selection import selection_of

        make = _Selections.make = selection_of
    return make(listing, part)


def listing_of(data: ListingData) -> Listing:
    """The listing that plugins have, of what it holds."""
    listing = object.__new__(Listing)
    _data.__set__(listing, data)
    return listing


def listing_of_locals(
    namespace: NamespaceName,
    mode: Mode,
    persistent: pa.LargeStringArray | None,
    non_persistent: pa.LargeStringArray | None,
) -> Listing:
    """The listing of local names that are checked, of domains that ``mode`` lists, in any order."""
    columns: Columns = build_columns(namespace, persistent, non_persistent)
    return listing_of(ListingData.built(namespace, mode, columns))
