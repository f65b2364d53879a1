"""A listing, which is the topics of one namespace, and selections of it, which are some of its topics.

A listing is checked once and shared by all requests that it answers. A selection is the answer to one request: a slice
of the listing's columns, or a few gathered rows. The two classes return each other, so they are one module.

Plugins hold these objects. Their columns are in :mod:`broker_core.listing.listing_data`, which no attribute reaches: a
plugin cannot change a listing that answers other requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias, final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker_core.counted import counted
from broker_core.immutable import Sealed, seal
from broker_core.listing.changes.part_difference import part_difference
from broker_core.listing.changes.selection_splice import bytes_to_splice, own_chunks, spliced_at, spliced_part
from broker_core.listing.changes.version_splice import ListingChange, locate, splice
from broker_core.listing.chunks.build_chunks import build_chunks, checked_local_names
from broker_core.listing.fields_reader import GATHERED, FieldsReader
from broker_core.listing.listing_data import ListingData, RowsKey
from broker_core.listing.listing_part import ListingPart, checked_mask, row_range
from broker_core.listing.search.pattern_scan import find_matches, matches_are_quick
from broker_core.names import (
    NON_PERSISTENT,
    PERSISTENT,
    Array,
    Mode,
    NamespaceName,
    as_column,
    hash_order_keys,
    split_full_names,
)
from broker_core.patterns import TopicsPattern, real_pattern

__all__ = [
    "Listing",
    "Names",
    "Selection",
    "data_of",
    "listing_of",
    "listing_of_locals",
    "part_of",
    "rows_key_of",
    "selection_of",
    "unhashed_bytes",
]

#: Full names, in any of the accepted types.
Names: TypeAlias = "Sequence[str] | pa.Array[Any] | pa.ChunkedArray[Any]"
#: Names that are looked up one by one; for more, a hash table over all of the listing is made.
_FEW: Final = 2048


@final
class Listing(Sealed):
    """The topics of a namespace in one mode; immutable, and shared by all requests that it answers.

    Build one with :meth:`from_names` or :meth:`from_columns`; both check every name (or raise
    :exc:`~broker_core.errors.InvalidListing`), collapse duplicates and leave system topics out.
    """

    __slots__ = ("__weakref__", "_data")  # memory accounting learns when a listing is freed

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
        """The listing of encoded names: each the protobuf field that it is sent in.

        They are in the order of the hash, each once, of this namespace and mode, without system topics, as
        :attr:`~broker_core.EncodedNames.fields` gives them; they are copied. ``topics_hash`` is the hash that the whole
        listing should have. ``mapped`` claims that the one column is a file mapped read-only: if the kernel agrees, it
        is not copied, and counts as no memory. It must be a file that nobody else can change, best one without a name:
        later writes to it are sent unchecked, and if it is cut short the kernel ends the process
        (``SIGBUS``). A file that still has a name is a :exc:`RuntimeWarning`.

        None of that is trusted. Names are checked once, when they first go into an answer: an invalid one makes the
        answer an error, and a wrong hash is counted and replaced by the right one.
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
        """Bytes that this listing holds in memory, including the room for remembered answers."""
        return data_of(self).nbytes

    @property
    def memory(self) -> list[tuple[object, int]]:
        """The listing's columns in memory, each with its size in bytes, without mapped files: ``parts`` of
        :meth:`~broker_core.BoundedCache.put`. Listings that share a chunk have the same object."""
        return [(chunk.fields, chunk.column_bytes) for chunk in data_of(self).chunks if not chunk.is_mapped]

    @property
    def topics_hash(self) -> str:
        """The topics hash of the whole listing: 8 hex digits."""
        data = data_of(self)
        return data.range_hash(0, len(data))

    @property
    def names(self) -> pa.LargeStringArray:
        """All full names in the order of the hash."""
        return self.all().names

    def all(self) -> Selection:
        """All topics of the listing."""
        return selection_of(self, ListingPart(0, data_of(self).size))

    def range(self, low: int, high: int) -> Selection:
        """Rows ``low`` to ``high``, without the last; nothing is copied. Raises :exc:`IndexError`."""
        return selection_of(self, ListingPart.given_range(*row_range(low, high, len(self))))

    def rows(self, rows: Array | Sequence[int]) -> Selection:
        """The topics at these positions, ascending and each once (:exc:`ValueError`), and none outside
        (:exc:`IndexError`)."""
        return selection_of(self, ListingPart.given(rows, data_of(self)))

    def matching(self, pattern: TopicsPattern) -> Selection:
        """The topics that match ``pattern``; the answer is remembered."""
        return self.all().matching(pattern)

    def positions(self, names: Names) -> Array:
        """The row of each full name, -1 if the listing does not have it (int64)."""
        names = as_column(names)
        if len(names) <= _FEW:
            rows, present = self.locate(names)
            return np.where(present, rows, -1)
        found: Array = pc.index_in(names, self.names).fill_null(-1).to_numpy(zero_copy_only=False)
        return found.astype(np.int64)

    def locate(self, names: Names) -> tuple[Array, Array]:
        """By a binary search, for each full name its row or that of the next name (int64), and whether it is there."""
        return locate(data_of(self), hash_order_keys(as_column(names)))

    def difference(self, older: Listing) -> tuple[Selection, Selection]:
        """The topics that ``older`` does not have, and (of ``older``) the topics that are not here any more.

        Chunks that the two share are not read, so that the difference of two versions costs what changed. Raises
        :exc:`ValueError` for a listing of another namespace.
        """
        if older.namespace != self.namespace:
            raise ValueError(f"a listing of {older.namespace} beside one of {self.namespace}")
        mine, theirs = data_of(self), data_of(older)
        added, gone = part_difference(mine, ListingPart(0, mine.size), theirs, ListingPart(0, theirs.size))
        return selection_of(self, added), selection_of(older, gone)

    def batches(self, *columns: str, rows: int = 65_536) -> Iterator[pa.RecordBatch]:
        """The topics in the order of the hash, at most ``rows`` at a time: see :meth:`Selection.batches`."""
        return self.all().batches(*columns, rows=rows)

    def with_changes(self, removed: Names, added: Names) -> Listing:
        """This listing without some names and with others. Chunks of columns where nothing changed are shared.

        Names are full names; one to remove that is absent, or to add that is there, changes nothing. Added names must
        be of this namespace and mode, else :exc:`~broker_core.errors.InvalidListing`.
        """
        spliced = splice(data_of(self), ListingChange(as_column(removed), as_column(added)))
        return self if spliced is data_of(self) else listing_of(spliced)

    def __repr__(self) -> str:
        return f"<Listing of {self.namespace} {self.mode.name}: {counted(len(self), 'topic')}>"


@final
class Selection(Sealed):
    """Rows of one listing, in its order: either ``low`` to ``high`` (nothing is copied) or an array of positions.

    Immutable; the hash and the gathered bytes are made when they are first needed.
    """

    __slots__ = ("__weakref__", "_data", "_listing", "_part")

    @property
    def listing(self) -> Listing:
        """The listing that the topics belong to."""
        return _listing_of(self)

    @property
    def pattern(self) -> str | None:
        """The pattern (without scheme) that the core itself has applied, so that it is not checked again."""
        return part_of(self).text

    def __len__(self) -> int:
        return len(part_of(self))

    @property
    def is_slice(self) -> bool:
        """Whether this is a contiguous part of the shared listing, which is sent without a copy."""
        return part_of(self).pieces is None

    @property
    def is_whole(self) -> bool:
        """Whether this is all of the listing."""
        return part_of(self).is_whole(_data_of(self))

    @property
    def row_array(self) -> Array:
        """The positions in the listing, ascending."""
        return part_of(self).rows_in(_data_of(self))

    @property
    def bounds(self) -> tuple[int, int]:
        """The first row, and the row after the last."""
        return part_of(self).low, part_of(self).high

    @property
    def fields_size(self) -> int:
        """Bytes of the encoded ``topics`` fields: the body of the response."""
        return part_of(self).fields_in(_data_of(self))

    @property
    def heap_bytes(self) -> int:
        """Bytes that answering with this takes beyond the shared listing (PIP-442's heap permits): positions, and the
        bytes gathered for the next piece of the answer."""
        part = part_of(self)
        return 0 if part.pieces is None else min(2 * self.fields_size, GATHERED) + part.nbytes

    @property
    def remembered_bytes(self) -> int:
        """Bytes that a listing keeps when it caches this selection: positions, and the fields if they are few."""
        return part_of(self).remembered_bytes(_data_of(self))

    @property
    def topics_hash(self) -> str:
        """The topics hash of exactly these names."""
        part = part_of(self)
        if part.hash is None:
            part.hash = part.compute_hash(_data_of(self))
        return part.hash

    @property
    def hash_known(self) -> bool:
        """Whether :attr:`topics_hash` is known already and costs nothing."""
        part = part_of(self)
        if part.hash is not None:
            return True
        known = part.remembered_hash(_data_of(self))
        if part.pieces is not None:
            part.hash = known
        return known is not None

    @property
    def names(self) -> pa.LargeStringArray:
        """The full names, in the order of the hash."""
        data = _data_of(self)
        return data.names(part_of(self).pieces_in(data))

    def check(self) -> None:
        """Check the names once, if a plugin or a file encoded them: :exc:`~broker_core.errors.InvalidListing`."""
        part, data = part_of(self), _data_of(self)
        data.check(part.pieces_in(data))
        part.is_checked = True

    @property
    def is_checked(self) -> bool:
        """Whether :meth:`check` has nothing to do."""
        part, data = part_of(self), _data_of(self)
        return part.is_checked or data.is_believed or data.is_checked(part.pieces_in(data))

    @property
    def declared_hash(self) -> str | None:
        """The claimed hash of a whole listing that was encoded elsewhere; ``None`` otherwise."""
        return _data_of(self).declared_hash if self.is_whole else None

    def body(self) -> memoryview:
        """The encoded fields as one buffer: a view of a slice of one chunk, gathered otherwise (do not keep it)."""
        part, data = part_of(self), _data_of(self)
        if part.pieces is None and len(data.chunks) == 1:
            return data.chunks[0].body(part.low, part.high)
        pieces = part.pieces_in(data)
        if len(pieces) == 1:
            number, rows = pieces[0]
            if rows.rows is None:
                return data.chunks[number].body(rows.low, rows.high)
        return self.reader().read_all()

    def reader(self) -> FieldsReader:
        """The encoded fields a piece at a time, which takes no more memory than a piece."""
        part, data = part_of(self), _data_of(self)
        rows = ((data.chunks[number], rows) for number, rows in part.pieces_in(data))
        return FieldsReader.of_rows(rows, self.fields_size)

    def on_its_own(self) -> Selection:
        """A copy in columns of its own, so that a listing that was built for one answer can be freed."""
        part, data = part_of(self), _data_of(self)
        own = ListingData(data.namespace, data.mode, own_chunks(data, part))
        if part.hash is not None:
            own.known_hash = part.hash
        whole = ListingPart(0, own.size, text=part.text)
        whole.hash = part.hash
        return selection_of(listing_of(own), whole)

    def matching(self, pattern: TopicsPattern) -> Selection:
        """The topics of this selection that match ``pattern``, which RE2 supports (:exc:`TypeError` for anything but a
        compiled pattern); the answer is remembered."""
        found = self.known_matching(pattern)
        if found is not None:
            return found
        return selection_of(_listing_of(self), find_matches(_data_of(self), part_of(self), pattern))

    def known_matching(self, pattern: TopicsPattern) -> Selection | None:
        """The result of :meth:`matching` if it is cached; ``None`` otherwise."""
        part = part_of(self)
        text = real_pattern(pattern).text
        if part.text == text:
            return self
        if pattern.match_all:
            every = ListingPart(part.low, part.high, part.pieces, text)
            every.hash, every.fields_size = part.hash, part.fields_size
            return selection_of(_listing_of(self), every)
        data = _data_of(self)
        known: ListingPart | None = data.memo.get((text, None if part.is_whole(data) else part.key()))
        return None if known is None else selection_of(_listing_of(self), known)

    def matching_is_quick(self, pattern: TopicsPattern) -> bool:
        """Whether :meth:`matching` takes about a millisecond at most, so that it may run on the event loop."""
        if self.known_matching(pattern) is not None:
            return True
        return matches_are_quick(_data_of(self), part_of(self), pattern)

    def mask(self, keep: Array) -> Selection:
        """The topics for which ``keep`` (bool, one a topic, in the order of :attr:`names`) is true.

        Raises :exc:`TypeError` for anything but a numpy array of booleans, and :exc:`ValueError` for one of another
        shape.
        """
        own = checked_mask(keep, len(self))
        if own.all():
            return self
        return selection_of(_listing_of(self), part_of(self).masked(own, _data_of(self)))

    def as_claim(self) -> Selection:
        """A selection that is matched once, to check a claim: unlike for other searches of a mapped listing, no columns
        are made of all of it.
        """
        data, part = _data_of(self), part_of(self)
        if part.is_direct or not data.is_mapped or data.forms_are_made or not self.is_whole:
            return self
        direct = ListingPart(part.low, part.high, text=part.text)
        direct.is_direct = True
        return selection_of(_listing_of(self), direct)

    def sampled(self, count: int) -> Selection:
        """``count`` of the topics, evenly spaced; always the same ones."""
        places = np.unique(np.linspace(0, len(self) - 1, min(count, len(self))).astype(np.int64))
        return selection_of(_listing_of(self), part_of(self).at(places, _data_of(self)))

    def range(self, low: int, high: int) -> Selection:
        """The topics at places ``low`` to ``high`` of this selection, ``high`` excluded."""
        part = part_of(self)
        low, high = row_range(low, high, len(part))
        return selection_of(_listing_of(self), part.stretch(low, high, _data_of(self)))

    def batches(self, *columns: str, rows: int = 65_536) -> Iterator[pa.RecordBatch]:
        """The topics in the order of the hash, at most ``rows`` at a time, as the columns that are named.

        ``"name"`` is the full name, ``"field"`` (``large_binary``) the protobuf field that it is sent in, ``"matched"``
        the text that patterns match: ``tenant/namespace/topic`` without partition suffix. Raises :exc:`ValueError` for
        other columns.
        """
        return part_of(self).batches(_data_of(self), columns, rows)

    def column(self) -> pa.LargeBinaryArray:
        """The encoded fields as a column; a slice of one chunk is not copied."""
        data = _data_of(self)
        return data.column(part_of(self).pieces_in(data))

    def with_changes(self, removed: Names, added: Selection) -> Selection:
        """These topics without some full names and with those of another selection; this selection if nothing changes.

        Names are as for :meth:`Listing.with_changes`; ``added`` may be of a listing of all modes. Only pieces of chunks
        where something changed are copied, to a new listing of which only the selection is an answer. The hash is
        known.
        """
        names = as_column(removed)
        data, part = spliced_part(_data_of(self), part_of(self), names, _data_of(added), part_of(added))
        return self if part is part_of(self) else selection_of(listing_of(data), part)

    def changes_size(self, names: int) -> int:
        """Bytes of the topics that :meth:`with_changes` of so many names copies at most."""
        return bytes_to_splice(_data_of(self), part_of(self), names)

    def spliced(self, gone: Array | Sequence[int], put: Array | Sequence[int], added: Selection) -> Selection:
        """:meth:`with_changes` by positions among these topics (ascending), as all of a new listing: without the
        positions ``gone``, with topic ``n`` of ``added`` before position ``put[n]``. Raises
        :exc:`~broker_core.errors.InvalidListing` if the result is not in the order of the hash."""
        data, part = spliced_at(_data_of(self), part_of(self), gone, put, _data_of(added), part_of(added))
        return selection_of(listing_of(data), part)

    def __repr__(self) -> str:
        return f"<Selection of {len(self)} of {self.listing!r}>"


_selected_listing = seal(Selection, "_listing")
_selected_part = seal(Selection, "_part")
_selected_data = seal(Selection, "_data")
_listing_of: Final[Callable[[Selection], Listing]] = _selected_listing.__get__
#: The rows that a selection has.
part_of: Final[Callable[[Selection], ListingPart]] = _selected_part.__get__
_data_of: Final[Callable[[Selection], ListingData]] = _selected_data.__get__
_new: Final = object.__new__
_put_listing, _put_part, _put_data = (
    slot.__set__ for slot in (_selected_listing, _selected_part, _selected_data)
)


def selection_of(listing: Listing, part: ListingPart) -> Selection:
    """The selection of a part of a listing."""
    selection = _new(Selection)
    _put_listing(selection, listing)
    _put_part(selection, part)
    _put_data(selection, data_of(listing))
    return selection


def unhashed_bytes(selection: Selection) -> int:
    """About how many bytes of names the hash of a selection reads: those of chunks whose hash is not known."""
    return 0 if selection.hash_known else part_of(selection).bytes_to_hash(_data_of(selection))


def rows_key_of(selection: Selection) -> RowsKey:
    """A key for the rows of a selection within its listing."""
    return part_of(selection).key()


_data = seal(Listing, "_data")
#: The data that a listing holds.
data_of: Final[Callable[[Listing], ListingData]] = _data.__get__


def listing_of(data: ListingData) -> Listing:
    """The listing object for plugins, around its data."""
    listing = object.__new__(Listing)
    _data.__set__(listing, data)
    return listing


def listing_of_locals(
    namespace: NamespaceName,
    mode: Mode,
    persistent: pa.LargeStringArray | None,
    non_persistent: pa.LargeStringArray | None,
) -> Listing:
    """The listing of checked local names, of domains that ``mode`` lists, in any order."""
    return listing_of(ListingData(namespace, mode, build_chunks(namespace, persistent, non_persistent)))
