"""Finding the rows of a listing that match a pattern, by the cheapest way that is exact.

1. A literal or a range is two binary searches in the sorted column of matched forms; where all of the range must match,
   nothing else is done.
2. Within the range, a substring that every match needs is searched first, over contiguous memory
   (``substring_search``), and only the rows around its finds are matched in full.
3. Where the substring is everywhere, or none is needed, Arrow's RE2 kernel runs over the column.

The work is cut into slices (:class:`PatternScan`), so that threads can be shared fairly among scans. A pattern can be a
thousand times slower than usual (an automaton with too many states), so each slice's number of rows follows from the
time of the slice before. The work is done in C, with the interpreter's lock for parts of a millisecond at the most;
nothing here is per topic.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from broker_core.listing.build_columns import row_type
from broker_core.listing.substring_search import rows_with
from broker_core.patterns import TopicsPattern

if TYPE_CHECKING:
    from broker_core.listing.listing_data import ListingData
    from broker_core.listing.listing_part import Part

__all__ = ["PatternScan", "matching_rows", "quick_to_match"]

_TINY: Final = 8 * 1024  # bytes matched at once: looking for a substring first would cost more
# Required substrings that are searched: the longest ones, until one is found that few names have.
_SHORTEST: Final = 1  # bytes
_MOST_LITERALS: Final = 3

# Work on the event loop. As a rule RE2 matches 200 bytes a microsecond, and a substring is found thirty times
# quicker; at the worst a byte takes 2.5 ns for each instruction of the program.
_QUICK_MATCH: Final = 96 * 1024  # bytes
_QUICK_SEARCH: Final = 1024 * 1024  # bytes, with a required substring
_QUICK_LITERAL: Final = 3  # bytes of that substring: a shorter one may be in most names
_QUICK_WORST: Final = 4 * 1024 * 1024  # bytes times instructions: 10 ms

_FIRST_BLOCK: Final = 128 * 1024  # bytes
_LARGEST_BLOCK: Final = 4 * 1024 * 1024
_SMALLEST_BLOCK: Final = 256  # bytes; one name at the least
#: What a slice should take, in seconds of the processor: twice that is the most that others may have to wait for.
_SLICE_SECONDS: Final = 0.01
_COST_UNIT: Final = 1_000_000  # bytes times instructions

_Array = np.ndarray[Any, Any]
_Search = Callable[[int, int], _Array]


def quick_to_match(listing: ListingData, pattern: TopicsPattern, within: Part | None) -> bool:
    """Whether the rows of ``pattern`` are found in about a millisecond, whatever it is."""
    if not listing.is_searchable:
        offsets = listing.field_offsets
        if within is None:
            size = listing.fields.size
        elif within.rows is None:
            size = int(offsets[within.high] - offsets[within.low])
        else:
            size = len(within) * (listing.fields.size // len(listing) + 1)
        if size > _QUICK_MATCH or not listing.is_checked(0, len(listing)):
            return False
        if within is not None:
            return bool(size * pattern.program_size <= _QUICK_WORST)
    if within is None and _is_whole_range(listing, pattern) and listing.by_matched is None:
        return True
    offsets = listing.matched_offsets
    size = sum(int(offsets[high] - offsets[low]) for low, high in _parts(listing, pattern))
    if within is not None and len(listing):
        size = min(size, 2 * len(within) * (int(offsets[-1]) // len(listing) + 1))
    if size <= _QUICK_MATCH and size * pattern.program_size <= _QUICK_WORST:
        return True
    if within is not None or size > _QUICK_SEARCH or size * pattern.program_size > 4 * _QUICK_WORST:
        return False
    return any(len(literal) >= _QUICK_LITERAL for literal in _useful_literals(listing, pattern))


class _ScanState(Enum):
    NEW = auto()
    BEGINNING = auto()
    SEARCHING = auto()
    ENDING = auto()


class PatternScan:
    """One search of a listing, in slices that any threads may run, several at a time.

    :meth:`take` hands out the next slice, ``None`` while there is nothing to do until those under way have ended, and
    for ever once all is done: who gets ``None`` and has none under way has the answer, :meth:`result`. Only one thread
    at a time may take.
    """

    __slots__ = (
        "_found",
        "_handed_out",
        "_is_direct",
        "_listing",
        "_next",
        "_pattern",
        "_position",
        "_rows",
        "_state",
        "_stretches",
        "_within",
        "cost",
    )

    def __init__(self, listing: ListingData, pattern: TopicsPattern, within: Part | None) -> None:
        self._listing = listing
        self._pattern = pattern
        self._within = within
        # Selected rows are matched by themselves: no columns are made for a search of a part.
        self._is_direct = within is not None and not listing.is_searchable
        self._state = _ScanState.NEW
        self._stretches: list[_Stretch] = []
        self._next = 0  # stretch to cut a slice of, and where in it
        self._position: int | None = None
        self._handed_out = 0
        self._found: list[tuple[int, int, _Array]] = []
        self._rows: tuple[int, int] | _Array | None = None
        #: What this may take at most, in millions of bytes times instructions; known better once it has begun.
        self.cost: int = listing.fields.size * pattern.program_size // _COST_UNIT

    def take(self) -> Callable[[], None] | None:
        """The next slice, if there is one now."""
        if self._state is _ScanState.NEW:
            self._state = _ScanState.BEGINNING
            return self._begin
        if self._state is not _ScanState.SEARCHING:
            return None
        while self._next < len(self._stretches):
            stretch = self._stretches[self._next]
            low = stretch.low if self._position is None else self._position
            if low >= stretch.high:
                self._next, self._position = self._next + 1, None
                continue
            stop = int(np.searchsorted(stretch.weights, stretch.weights[low] + stretch.block, "right")) - 1
            self._position = stop = min(max(stop, low + 1), stretch.high)
            self._handed_out += 1
            return partial(self._search, self._next, low, stop)
        if len(self._found) < self._handed_out:
            return None
        self._state = _ScanState.ENDING
        return self._end

    def result(self) -> tuple[int, int] | _Array:
        """The positions of the matching topics, as :func:`matching_rows` gives them."""
        assert self._rows is not None
        return self._rows

    def _begin(self) -> None:
        listing, pattern = self._listing, self._pattern
        parts = [] if self._is_direct else _parts(listing, pattern)
        if self._is_direct:
            assert self._within is not None
            self._stretches = [_direct(listing, pattern, self._within)]
        elif self._within is not None:
            self._stretches = _within(listing, pattern, self._within, parts)
        elif not _is_whole_range(listing, pattern):
            self._stretches = [_stretch(listing, pattern, low, high) for low, high in parts]
        self.cost = sum(stretch.size for stretch in self._stretches) * pattern.program_size // _COST_UNIT
        self._state = _ScanState.SEARCHING

    def _search(self, number: int, low: int, high: int) -> None:
        stretch = self._stretches[number]
        started = time.thread_time()
        rows = stretch.search(low, high)
        stretch.took(time.thread_time() - started, int(stretch.weights[high] - stretch.weights[low]))
        # Of many slices with many finds, what is kept until the end should be small.
        self._found.append((number, low, rows.astype(row_type(len(self._listing)), copy=False)))

    def _end(self) -> None:
        listing = self._listing
        if self._within is None and _is_whole_range(listing, self._pattern):
            self._rows = _whole_range(listing, *_parts(listing, self._pattern)[0])
            return
        found: list[list[_Array]] = [[] for _ in self._stretches]
        for number, _, rows in sorted(self._found, key=itemgetter(0, 1)):
            found[number].append(rows)
        self._found.clear()
        ends = zip(self._stretches, found, strict=True)
        chosen = [stretch.chosen(rows) for stretch, rows in ends if rows]
        if self._is_direct:
            self._rows = np.concatenate(chosen) if chosen else np.empty(0, np.int64)
        else:
            self._rows = _in_order(listing, chosen)


def matching_rows(
    listing: ListingData, pattern: TopicsPattern, within: Part | None
) -> tuple[int, int] | _Array:
    """Positions of the matching topics, ascending; or ``(low, high)`` where they are a slice of the listing.

    ``within`` restricts to a selection of the listing.
    """
    scan = PatternScan(listing, pattern, within)
    while (work := scan.take()) is not None:
        work()
    return scan.result()


def _whole_range(listing: ListingData, low: int, high: int) -> tuple[int, int] | _Array:
    if listing.by_matched is None:
        return low, high
    if high - low == len(listing):
        return 0, len(listing)
    return np.sort(listing.by_matched[low:high])


class _Stretch:
    """Rows ``low`` to ``high`` that are searched; ``weights`` are the bytes in front of each row and behind the last.

    ``block`` is how many bytes the next slice has. ``wanted`` are the only positions that count, if not all do.
    """

    __slots__ = ("block", "high", "low", "search", "wanted", "weights")

    def __init__(
        self,
        search: _Search,
        weights: _Array,
        bounds: tuple[int, int],
        block: int,
        wanted: _Array | None = None,
    ) -> None:
        self.search = search
        self.weights = weights
        self.low, self.high = bounds
        self.block = block
        self.wanted = wanted

    @property
    def size(self) -> int:
        """Bytes to search."""
        return int(self.weights[self.high] - self.weights[self.low])

    def took(self, seconds: float, size: int) -> None:
        """Make the next block as large as the time of one of ``size`` bytes says: up by a few steps, down at once."""
        block = int(size * min(4.0, _SLICE_SECONDS / max(seconds, 1e-6)))
        if seconds < _SLICE_SECONDS:
            block = max(block, self.block)  # this one was small only since the rows had ended
        self.block = min(max(block, _SMALLEST_BLOCK), _LARGEST_BLOCK)

    def chosen(self, found: list[_Array]) -> _Array:
        """Those of the positions found, slice by slice, that are wanted."""
        every = np.concatenate(found)
        return every if self.wanted is None else np.intersect1d(every, self.wanted, assume_unique=True)


def _in_order(listing: ListingData, found: list[_Array]) -> _Array:
    """Rows of the listing, ascending, of ascending positions in its matched column."""
    positions = np.concatenate(found) if found else np.empty(0, np.int64)
    return positions if listing.by_matched is None else np.sort(listing.by_matched[positions])


def _is_whole_range(listing: ListingData, pattern: TopicsPattern) -> bool:
    """Whether all names in the one range of the pattern match, so that none has to be looked at."""
    return pattern.literal is not None or (pattern.exact_range and not listing.has_newline)


def _parts(listing: ListingData, pattern: TopicsPattern) -> list[tuple[int, int]]:
    """Stretches of the matched column, ``[low, high)``, outside of which nothing matches."""
    if not pattern.ranges:
        return [(0, len(listing))]
    return [listing.matched_range(low, high) for low, high in pattern.ranges]


def _within(
    listing: ListingData, pattern: TopicsPattern, within: Part, parts: list[tuple[int, int]]
) -> list[_Stretch]:
    """Rows of a selection: few are gathered and matched; many are found among all that match."""
    positions = _rows_of(within)
    if listing.by_matched is not None:
        positions = np.sort(listing.places[positions])
    stretches: list[_Stretch] = []
    for low, high in parts:
        first, last = np.searchsorted(positions, (low, high))
        wanted = positions[first:last]
        if 4 * len(wanted) > high - low:
            stretches.append(_stretch(listing, pattern, low, high, wanted))
            continue

        def gather(start: int, stop: int, wanted: _Array = wanted) -> _Array:
            return _gathered(listing, pattern, wanted[start:stop])

        size = int(listing.matched_offsets[-1]) // len(listing) + 1 if len(listing) else 1
        weights = np.arange(len(wanted) + 1) * size
        stretches.append(_Stretch(gather, weights, (0, len(wanted)), _first_block(pattern)))
    return stretches


def _rows_of(part: Part) -> _Array:
    return np.arange(part.low, part.high) if part.rows is None else part.rows


def _direct(listing: ListingData, pattern: TopicsPattern, within: Part) -> _Stretch:
    """The rows of a part, whose forms are made for this search alone."""
    rows = _rows_of(within)

    def search(start: int, stop: int) -> _Array:
        some = rows[start:stop]
        keep = pattern.match_column(listing.forms(some))
        matching: _Array = some[keep.to_numpy(zero_copy_only=False)]
        return matching

    size = listing.fields.size // len(listing) + 1 if len(listing) else 1
    return _Stretch(search, np.arange(len(rows) + 1) * size, (0, len(rows)), _first_block(pattern))


def _gathered(listing: ListingData, pattern: TopicsPattern, positions: _Array) -> _Array:
    """Those of the positions in the matched column that match."""
    if not len(positions):
        return positions
    keep = pattern.match_column(listing.matched.take(pa.array(positions)))
    matching: _Array = positions[keep.to_numpy(zero_copy_only=False)]
    return matching


def _useful_literals(listing: ListingData, pattern: TopicsPattern) -> list[bytes]:
    """Required substrings that not every name of the namespace has anyway, longest first."""
    everywhere = f"{listing.namespace}/"
    rests = (literal.removeprefix(everywhere) for literal in pattern.required)
    useful = (rest.encode() for rest in rests if rest not in everywhere)
    return [rest for rest in useful if len(rest) >= _SHORTEST][:_MOST_LITERALS]


def _stretch(
    listing: ListingData, pattern: TopicsPattern, low: int, high: int, wanted: _Array | None = None
) -> _Stretch:
    """The search of the matched column within ``[low, high)``."""
    offsets = listing.matched_offsets
    literals = [] if offsets[high] - offsets[low] <= _TINY else _useful_literals(listing, pattern)

    def search(first: int, last: int) -> _Array:
        for literal in literals:
            rows = rows_with(listing.matched.buffers()[2], offsets, first, last, literal)
            if rows is not None:
                return _gathered(listing, pattern, rows)
        keep = pattern.match_column(listing.matched.slice(first, last - first))
        return np.flatnonzero(keep.to_numpy(zero_copy_only=False)) + first

    return _Stretch(search, offsets, (low, high), _first_block(pattern), wanted)


def _first_block(pattern: TopicsPattern) -> int:
    """Bytes of the first slice: what takes no long time even if the pattern turns out to be of the slowest."""
    return min(max(_QUICK_WORST // pattern.program_size, _SMALLEST_BLOCK), _FIRST_BLOCK)
