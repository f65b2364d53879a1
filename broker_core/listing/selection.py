"""Some topics of a listing: the answer to a question, as a slice of the listing's columns or a few gathered rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import index
from typing import Any, Final, final

import numpy as np
import pyarrow as pa

from broker_core.immutable.sealed import Sealed, seal
from broker_core.listing.build_columns import gathered, row_type
from broker_core.listing.fields_reader import GATHERED, FieldsReader
from broker_core.listing.listing import Listing, data_of, listing_of
from broker_core.listing.listing_data import ListingData
from broker_core.listing.listing_part import Part, row_range
from broker_core.listing.pattern_scan import PatternScan, quick_to_match
from broker_core.listing.selection_splice import spliced_fields
from broker_core.names.partition_columns import matched_forms
from broker_core.patterns import TopicsPattern
from broker_core.patterns.topics_pattern import real_pattern

__all__ = ["Matching", "Selection", "part_of", "search", "search_is_quick", "selection_of"]

_Rows = np.ndarray[Any, Any]


@final
class Selection(Sealed):
    """Rows of one listing, in its order: either ``low`` to ``high`` (nothing is copied) or an array of positions.

    Immutable; the hash and the gathered bytes are made when they are first asked for.
    """

    __slots__ = ("__weakref__", "_data", "_listing", "_part")

    @property
    def listing(self) -> Listing:
        """The listing that these topics are of."""
        return _listing_of(self)

    @property
    def pattern(self) -> str | None:
        """The pattern (without scheme) that the core itself has applied, so that nobody need check it again."""
        return part_of(self).text

    def __len__(self) -> int:
        return len(part_of(self))

    @property
    def is_slice(self) -> bool:
        """Whether this is a contiguous part of the shared listing, which sending does not copy."""
        return part_of(self).rows is None

    @property
    def is_whole(self) -> bool:
        """Whether this is all of the listing."""
        part = part_of(self)
        return part.rows is None and part.high - part.low == _data_of(self).size

    @property
    def row_array(self) -> _Rows:
        """The positions in the listing, ascending."""
        part = part_of(self)
        if part.rows is not None:
            return part.rows
        return np.arange(part.low, part.high, dtype=row_type(part.high))

    @property
    def bounds(self) -> tuple[int, int]:
        """The first of these rows, and the one behind the last."""
        return part_of(self).low, part_of(self).high

    @property
    def fields_size(self) -> int:
        """Bytes of the encoded ``topics`` fields: the body of the response."""
        part, offsets = part_of(self), _data_of(self).field_offsets
        if part.rows is None:
            return int(offsets[part.high] - offsets[part.low])
        if part.fields_size is None:
            part.fields_size = int((offsets[1:][part.rows] - offsets[:-1][part.rows]).sum())
        return part.fields_size

    @property
    def heap_bytes(self) -> int:
        """What answering with this holds beyond the shared listing (PIP-442's heap permits): positions, and the bytes
        that are gathered for the next piece of the answer."""
        rows = part_of(self).rows
        return 0 if rows is None else 2 * min(self.fields_size, GATHERED) + int(rows.nbytes)

    @property
    def remembered_bytes(self) -> int:
        """What a listing holds on to when it remembers this selection: positions, never gathered bytes."""
        rows = part_of(self).rows
        return 0 if rows is None else int(rows.nbytes)

    @property
    def topics_hash(self) -> str:
        """The topics hash of exactly these names."""
        part = part_of(self)
        if part.hash is None:
            data = _data_of(self)
            if part.rows is None:
                part.hash = data.range_hash(part.low, part.high, remember=part.is_given)
            elif part.is_given:
                assert isinstance(part.key, bytes)
                part.hash = data.rows_hash(part.key, part.low, part.high, part.rows)
            else:
                part.hash = data.hash(part.low, part.high, part.rows)
        return part.hash

    @property
    def hash_known(self) -> bool:
        """Whether :attr:`topics_hash` is there already and costs nothing."""
        part = part_of(self)
        if part.hash is not None:
            return True
        data = _data_of(self)
        if part.rows is None:
            return data.known_range_hash(part.low, part.high) is not None
        if part.is_given:
            part.hash = data.memo.get(("\0hash", part.key))
        return part.hash is not None

    @property
    def names(self) -> pa.LargeStringArray:
        """The full names, in the order of the hash."""
        part = part_of(self)
        return _data_of(self).names(part.low, part.high, part.rows)

    def check(self) -> None:
        """Look at the names, where others encoded them and nobody has looked yet.

        Raises :exc:`~broker_core.errors.InvalidListing`.
        """
        part = part_of(self)
        _data_of(self).check(part.low, part.high, part.rows)
        part.is_checked = True

    @property
    def is_checked(self) -> bool:
        """Whether :meth:`check` has nothing to do."""
        part = part_of(self)
        return part.is_checked or _data_of(self).is_checked(part.low, part.high)

    @property
    def said_hash(self) -> str | None:
        """What somebody said that the hash of these is, where they are all of a listing that was encoded elsewhere."""
        return _data_of(self).said_hash if self.is_whole else None

    def body(self) -> memoryview:
        """The encoded fields as one buffer: a view of a slice, gathered otherwise (do not keep it)."""
        part, data = part_of(self), _data_of(self)
        offsets = data.field_offsets
        if part.rows is None:
            return memoryview(data.fields)[int(offsets[part.low]) : int(offsets[part.high])]
        return memoryview(gathered(data.fields, offsets, part.rows)[0]).toreadonly()

    def reader(self) -> FieldsReader:
        """The encoded fields a piece at a time, which takes no more memory than a piece."""
        part, data = part_of(self), _data_of(self)
        return FieldsReader(data.fields, data.field_offsets, part.low, part.high, part.rows)

    def on_its_own(self) -> Selection:
        """The same topics in columns of their own, so that those of the listing can go.

        For a listing that was built for one answer: the names that are sent are all that is needed any more.
        """
        part, data = part_of(self), _data_of(self)
        offsets = data.field_offsets
        fields: Any = data.fields
        if part.rows is not None:
            fields, offsets = gathered(fields, offsets, part.rows)
        elif not self.is_whole:
            offsets = offsets[part.low : part.high + 1]
            fields = pa.py_buffer(bytes(fields.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))))
            offsets = offsets - offsets[0]
        self.check()
        own = listing_of(ListingData.encoded(data.namespace, data.mode, fields, offsets, part.hash))
        whole = Part(0, len(self), text=part.text)
        whole.hash = part.hash
        return selection_of(own, whole)

    def matching(self, pattern: TopicsPattern) -> Selection:
        """The topics of this selection that match ``pattern``, which RE2 supports.

        The answer is remembered with the listing. Raises :exc:`TypeError` for what is no compiled pattern.
        """
        found = self.known_matching(pattern)
        return search(self, pattern) if found is None else found

    def known_matching(self, pattern: TopicsPattern) -> Selection | None:
        """What :meth:`matching` gives, if it is known already and takes no work."""
        part = part_of(self)
        text = real_pattern(pattern).text
        if part.text == text:
            return self
        if pattern.match_all:
            every = Part(part.low, part.high, part.rows, text)
            every.hash, every.fields_size = part.hash, part.fields_size
            return selection_of(_listing_of(self), every)
        data = _data_of(self)
        is_whole = part.rows is None and part.high - part.low == data.size
        known: Part | None = data.memo.get((text, None if is_whole else part.key))
        return None if known is None else selection_of(_listing_of(self), known)

    def matching_is_quick(self, pattern: TopicsPattern) -> bool:
        """Whether :meth:`matching` takes about a millisecond at most, so that it may run on the event loop."""
        return self.known_matching(pattern) is not None or search_is_quick(self, pattern)

    def mask(self, keep: _Rows) -> Selection:
        """The topics where ``keep`` (bool, one a topic, in the order of :attr:`names`) is true.

        Raises :exc:`TypeError` for what is no numpy array of booleans, and :exc:`ValueError` for one of another shape.
        """
        if type(keep) is not np.ndarray or keep.dtype != np.bool_:
            shown = f"an array of {keep.dtype}" if type(keep) is np.ndarray else f"a {type(keep).__name__}"
            raise TypeError(f"a mask is a numpy array of bool, one for each topic, not {shown}")
        if keep.shape != (len(self),):
            raise ValueError(f"a mask of shape {keep.shape} for {len(self)} topics")
        own = keep.copy()  # whoever has the array may write it meanwhile
        return self if own.all() else self._of_rows(self.row_array[own])

    def _of_rows(self, rows: _Rows) -> Selection:
        return selection_of(_listing_of(self), Part.of_rows(rows, len(_data_of(self)), part_of(self).text))

    def as_claim(self) -> Selection:
        """The same topics, for whom they are matched to see whether a claim is true, once: no columns are made of all
        of a mapped listing for that, as they are for searches of it."""
        data, part = _data_of(self), part_of(self)
        if not data.is_mapped or data.is_searchable or part.is_direct or not self.is_whole:
            return self
        direct = Part(part.low, part.high, text=part.text)
        direct.is_direct = True
        return selection_of(_listing_of(self), direct)

    def sampled(self, count: int) -> Selection:
        """So many of these topics, evenly spaced; always the same ones."""
        at = np.unique(np.linspace(0, len(self) - 1, min(count, len(self))).astype(np.int64))
        part = part_of(self)
        rows = at + part.low if part.rows is None else part.rows[at]
        return selection_of(_listing_of(self), Part.of_rows(rows, len(_data_of(self)), part.text))

    def range(self, low: int, high: int) -> Selection:
        """The topics from the one at ``low`` to the one at ``high`` of these, without the last."""
        low, high = row_range(low, high, len(self))
        part = part_of(self)
        if part.rows is None:
            return selection_of(
                _listing_of(self), Part.given_range(part.low + low, part.low + high, part.text)
            )
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
        if (rows := index(rows)) < 1:
            raise ValueError(f"rows must be at least 1, not {rows}")
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
        part = part_of(self)
        return _data_of(self).column(part.low, part.high, part.rows)

    def spliced(self, gone: _Rows | Sequence[int], put: _Rows | Sequence[int], added: Selection) -> Selection:
        """All of a listing of its own: these topics without some, and with others in between.

        ``gone`` are positions among these topics, ascending; each topic of ``added`` goes in front of the position that
        ``put`` has for it. It may be of a listing of all modes. Nothing is searched: the order is looked at where
        something was put, and :exc:`~broker_core.errors.InvalidListing` is raised where it is not that of the hash, or
        a topic is none of this mode. Costs one copy.
        """
        base, other = _data_of(self), _data_of(added)
        begins = self.bounds[0] if self.is_slice else None
        data = spliced_fields(base, self.column(), gone, put, other, added.column(), begins)
        whole = Part(0, len(data), text=self.pattern if self.pattern == added.pattern else None)
        whole.hash = data.range_hash(0, len(data))
        return selection_of(listing_of(data), whole)

    def __repr__(self) -> str:
        return f"<Selection of {len(self)} of {self.listing!r}>"


_selected_listing = seal(Selection, "_listing")
_selected_part = seal(Selection, "_part")
_selected_data = seal(Selection, "_data")
_listing_of: Final[Callable[[Selection], Listing]] = _selected_listing.__get__
#: Which rows a selection has.
part_of: Final[Callable[[Selection], Part]] = _selected_part.__get__
_data_of: Final[Callable[[Selection], ListingData]] = _selected_data.__get__
_new: Final = object.__new__
_put_listing, _put_part, _put_data = (
    slot.__set__ for slot in (_selected_listing, _selected_part, _selected_data)
)


def selection_of(listing: Listing, part: Part) -> Selection:
    """The selection of a part of a listing."""
    selection = _new(Selection)
    _put_listing(selection, listing)
    _put_part(selection, part)
    _put_data(selection, data_of(listing))
    return selection


def _within(selection: Selection) -> Part | None:
    """What a search is restricted to: ``None``: it is one of all of the listing, by its columns for that."""
    part = part_of(selection)
    return None if selection.is_whole and not part.is_direct else part


def search_is_quick(selection: Selection, pattern: TopicsPattern) -> bool:
    """Whether :func:`search` takes about a millisecond at most."""
    return quick_to_match(_data_of(selection), pattern, _within(selection))


def search(selection: Selection, pattern: TopicsPattern) -> Selection:
    """What :meth:`Selection.matching` gives where it is not known yet."""
    searching = Matching(selection, pattern)
    while (work := searching.take()) is not None:
        work()
    return searching.result()


class Matching:
    """The search for the topics of a selection that match a pattern, in slices for threads.

    :meth:`take` and :attr:`cost` are those of :class:`~broker_core.listing.pattern_scan.PatternScan`;
    :meth:`result` is what :meth:`Selection.matching` gives.
    """

    __slots__ = ("_scan", "_searched", "pattern")

    def __init__(self, searched: Selection, pattern: TopicsPattern) -> None:
        self._searched = searched
        self.pattern = real_pattern(pattern)
        self._scan = PatternScan(_data_of(searched), pattern, _within(searched))

    @property
    def cost(self) -> int:
        cost: int = self._scan.cost
        return cost

    @property
    def same(self) -> tuple[int, str] | None:
        """What two searches have in common whose results are the same; ``None``: no other is the same."""
        return (id(_data_of(self._searched)), self.pattern.text) if self._searched.is_whole else None

    def take(self) -> Callable[[], None] | None:
        return self._scan.take()

    def result(self) -> Selection:
        searched, text, rows = self._searched, self.pattern.text, self._scan.result()
        data, part = _data_of(searched), part_of(searched)
        found = Part(*rows, text=text) if isinstance(rows, tuple) else Part.of_rows(rows, len(data), text)
        size = 0 if found.rows is None else int(found.rows.nbytes)
        if len(found) == len(part) and part.rows is not None:
            # All of them: what is remembered needs no rows of its own, which are told by their key.
            found.rows, found.hash, found.fields_size = part.rows, part.hash, part.fields_size
            found.is_given = part.is_given
        key = None if searched.is_whole else part.key
        data.memo.put_first((text, key), found, size + 4 * len(text))
        return selection_of(_listing_of(searched), found)
