"""Finding the rows of a listing that match a pattern, by the cheapest way that is exact.

1. The rows that a chunk remembers for the pattern are taken from it: after a change only changed chunks are searched.
2. A literal or a range is two binary searches among the chunks and in the forms of the chunks at its ends; if all of
   the range must match, nothing else is done.
3. Within the range, a substring that every match needs, or a run of bytes of classes, is searched first, over
   contiguous memory (``substring_search``), and only the rows around its finds are matched in
   full.
4. If substrings and runs are everywhere, or none is needed, Arrow's RE2 kernel runs over the forms.

The work is cut into slices (:class:`PatternScan`), so that threads can be shared fairly among scans. A pattern can be a
thousand times slower than usual (an automaton with too many states), so each slice's number of rows follows from the
time of the slice before. The work is done in C, holding the interpreter's lock for less than a millisecond at a time;
nothing here is per topic.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from broker_core.listing.chunks.chunk_rows import ChunkRows
from broker_core.listing.listing_data import ListingData
from broker_core.listing.listing_part import ListingPart
from broker_core.listing.search.chunk_search import (
    GIVEN_UP,
    Candidates,
    ChunkSearch,
    RowsSearch,
    candidates,
    first_block,
    is_whole_range,
    keep_matching,
    ranges_in,
    useful_clues,
    useful_literals,
    whole_ranges,
)
from broker_core.patterns import TopicsPattern, real_pattern

if TYPE_CHECKING:
    from broker_core.listing.chunks.chunk import Chunk
    from broker_core.listing.listing_data import Pieces


__all__ = ["PatternScan", "find_matches", "matches_are_quick"]

T = TypeVar("T")


# Work on the event loop. As a rule RE2 matches 200 bytes a microsecond, and a substring is found thirty times
# quicker; at the worst a byte takes 2.5 ns for each instruction of the program.
_QUICK_MATCH: Final = 96 * 1024  # bytes
_QUICK_SEARCH: Final = 1024 * 1024  # bytes, with a required substring
_QUICK_LITERAL: Final = 3  # bytes of that substring: a shorter one may be in most names
_QUICK_WORST: Final = 4 * 1024 * 1024  # bytes times instructions: 10 ms
#: Chunks that a search on the event loop may look at.
_QUICK_CHUNKS: Final = 16

_LARGEST_BLOCK: Final = 4 * 1024 * 1024
_SMALLEST_BLOCK: Final = 256  # bytes; one name at the least
#: The time that a slice should take, in seconds of CPU: others may have to wait for twice as long.
_SLICE_SECONDS: Final = 0.01
_COST_UNIT: Final = 1_000_000  # bytes times instructions


def matches_are_quick(listing: ListingData, part: ListingPart, pattern: TopicsPattern) -> bool:
    """Whether :func:`find_matches` takes about a millisecond at most."""
    within = _within(listing, part)
    if within is not None:
        size = _size_of(listing, within)
        return size <= _QUICK_MATCH and size * pattern.program_size <= _QUICK_WORST and listing.is_believed
    if not listing.is_believed:
        return False
    numbers = candidates(listing, pattern)
    if numbers is None:  # to know the candidates, forms must be made
        return listing.fields_size(0, listing.size) <= _QUICK_MATCH
    size = 0
    looked = 0
    for number in numbers:
        chunk = listing.chunks[number]
        if chunk.memo_has(pattern.text):
            continue
        if not chunk.is_searchable and not chunk.is_plain and chunk.fields_size > _QUICK_MATCH:
            return False
        if is_whole_range(chunk, pattern):
            size += 0 if chunk.forms.is_identity else 8 * chunk.size
            continue
        looked += 1
        if looked > _QUICK_CHUNKS:
            return False
        offsets = chunk.forms.offsets
        size += sum(int(offsets[high] - offsets[low]) for low, high in ranges_in(chunk, pattern))
    if size <= _QUICK_MATCH and size * pattern.program_size <= _QUICK_WORST:
        return True
    if size > _QUICK_SEARCH or size * pattern.program_size > 4 * _QUICK_WORST:
        return False
    return any(len(literal) >= _QUICK_LITERAL for literal in useful_literals(listing.namespace, pattern))


def _size_of(listing: ListingData, part: ListingPart) -> int:
    if part.pieces is None:
        return listing.fields_size(part.low, part.high)
    average = listing.fields_size(0, listing.size) // max(listing.size, 1) + 1
    return len(part) * average


class _ScanState(Enum):
    PREPARING = auto()
    BEGINNING = auto()
    SEARCHING = auto()
    ENDING = auto()


class PatternScan(Generic[T]):
    """One search of a part of a listing, in slices that any threads may run, several at a time.

    :meth:`take` hands out the next slice, ``None`` while running slices have to end first, and for ever once all is
    done: after ``None``, with no slice running, :meth:`result` is ready: what ``finish`` makes of the matching rows.
    Only one thread at a time may take.
    """

    __slots__ = (
        "_block",
        "_clues",
        "_done",
        "_finish",
        "_handed_out",
        "_is_direct",
        "_known",
        "_listing",
        "_match_block",
        "_next",
        "_part",
        "_pattern",
        "_pending",
        "_pieces",
        "_position",
        "_searches",
        "_state",
        "_unprepared",
        "_within",
        "cost",
    )

    def __init__(
        self,
        listing: ListingData,
        part: ListingPart,
        pattern: TopicsPattern,
        finish: Callable[[ListingPart], T],
    ) -> None:
        """Raises :exc:`TypeError` for anything but a compiled pattern."""
        self._listing = listing
        self._part = part
        self._pattern = real_pattern(pattern)
        self._finish = finish
        self._within = within = _within(listing, part)
        # Selected rows are matched one by one: no columns are made for a search of a part.
        self._is_direct = within is not None and (within.is_direct or not listing.is_believed)
        self._state = _ScanState.PREPARING
        self._unprepared = self._without_forms()
        self._known: list[tuple[int, ChunkRows]] = []
        self._searches: list[tuple[int, ChunkSearch | RowsSearch]] = []
        self._next = 0  # search to cut a slice of, and where in it
        self._position: int | None = None
        self._block = self._match_block = first_block(pattern)
        self._pending: list[Candidates] = []  # found by a substring, to be matched
        self._handed_out = 0
        self._done: list[None] = []  # slices that have ended, in several threads
        self._pieces: Pieces = ()
        #: The most that the scan may cost, in millions of bytes times instructions; more exact once it has begun.
        size = listing.fields_size(0, listing.size)
        self.cost: int = size * pattern.program_size // _COST_UNIT
        self._clues = useful_clues(listing.namespace, pattern) if size > _QUICK_MATCH // 8 else {}

    def take(self) -> Callable[[], None] | None:
        """The next slice, if there is one now."""
        if self._state is _ScanState.PREPARING:
            if self._unprepared:
                self._handed_out += 1
                return partial(self._prepare, self._unprepared.pop())
            if len(self._done) < self._handed_out:
                return None
            self._state = _ScanState.BEGINNING
            return self._begin
        if self._state is not _ScanState.SEARCHING:
            return None
        if self._pending and sum(some.weight for some in self._pending) >= self._match_block:
            return self._matching()
        if len(self._done) < self._handed_out and self._searches_clues():
            return None
        slices: list[tuple[ChunkSearch | RowsSearch, int, int]] = []
        left = self._block
        while self._next < len(self._searches) and left > 0:
            _, search = self._searches[self._next]
            low = 0 if self._position is None else self._position
            if low >= search.size:
                self._next, self._position = self._next + 1, None
                continue
            stop = search.until(low, left)
            if slices and stop < search.size:
                break  # a chunk that is searched as a whole costs less
            self._position = stop
            left -= search.weight(low, stop)
            slices.append((search, low, stop))
        if slices:
            self._handed_out += 1
            return partial(self._search, slices)
        if len(self._done) < self._handed_out:
            return None
        if self._pending:
            return self._matching()
        self._state = _ScanState.ENDING
        return self._end

    def _searches_clues(self) -> bool:
        """Whether the next slice searches for a clue: this holds the interpreter's lock, so two threads would take
        longer than one. Full matches run at the same time."""
        if self._next >= len(self._searches) or not isinstance(self._searches[self._next][1], ChunkSearch):
            return False
        return any(dense < GIVEN_UP for dense in list(self._clues.values()))

    @property
    def same(self) -> tuple[int, str] | None:
        """A key that equal searches share; ``None`` if the search cannot be shared."""
        return (id(self._listing), self._pattern.text) if self._part.is_whole(self._listing) else None

    def result(self) -> T:
        """The result of the matching rows; equal searches share the first rows."""
        data, part, text = self._listing, self._part, self._pattern.text
        found = ListingPart.of_pieces(self._pieces, data, text)
        if len(found) == len(part) and part.pieces is not None:
            # All rows match: the result shares the rows and their key with the part.
            found.pieces, found.hash, found.fields_size = part.pieces, part.hash, part.fields_size
            found.is_given = part.is_given
        return self._finish(_remembered(data, part, text, found))

    def _without_forms(self) -> list[Chunk]:
        """The chunks whose forms have to be made before the search, some milliseconds each."""
        if self._is_direct or self._listing.forms_are_made or self._within is not None:
            return []
        return [chunk for chunk in self._listing.chunks if not chunk.is_searchable]

    def _prepare(self, chunk: Chunk) -> None:
        chunk.make_forms()
        self._done.append(None)

    def _begin(self) -> None:
        listing, pattern, within = self._listing, self._pattern, self._within
        if within is None:
            numbers = candidates(listing, pattern, make=True)
            assert numbers is not None
            for number in numbers:
                self._begin_chunk(number, listing.chunks[number])
        else:
            for number, rows in within.pieces_in(listing):
                self._begin_rows(number, listing.chunks[number], rows)
        size = sum(search.weight(0, search.size) for _, search in self._searches)
        self.cost = size * pattern.program_size // _COST_UNIT
        self._state = _ScanState.SEARCHING

    def _begin_chunk(self, number: int, chunk: Chunk) -> None:
        """Begin the search of a whole chunk, unless the answer is known, or is a range."""
        pattern = self._pattern
        known: ChunkRows | None = chunk.memo.get(pattern.text) if len(self._listing.chunks) > 1 else None
        if known is None and is_whole_range(chunk, pattern):
            (begin, end), *_ = pattern.ranges or ((b"", None),)
            known = ChunkRows(0, chunk.size) if end is None else chunk.rows_of_range(begin, end)
        if known is not None:
            self._known.append((number, known))
            return
        self._searches.append((number, ChunkSearch(chunk, pattern, self._clues)))

    def _begin_rows(self, number: int, chunk: Chunk, rows: ChunkRows) -> None:
        """Begin the search of some rows of a chunk."""
        if not self._is_direct and len(rows) == chunk.size:
            self._begin_chunk(number, chunk)
        else:
            self._searches.append((number, RowsSearch(chunk, self._pattern, rows, direct=self._is_direct)))

    def _search(self, slices: list[tuple[ChunkSearch | RowsSearch, int, int]]) -> None:
        started = time.thread_time()
        size = 0
        for search, low, high in slices:
            self._pending += search.run(low, high)
            size += search.weight(low, high)
        self._block = _next_block(self._block, time.thread_time() - started, size)
        self._done.append(None)

    def _matching(self) -> Callable[[], None]:
        """A slice that matches as many candidates as it may have: few calls, as each makes an engine anew."""
        some: list[Candidates] = []
        left = self._match_block
        while self._pending and left > 0:
            first, rest = self._pending.pop().cut(left)
            some.append(first)
            left -= first.weight
            if rest is not None:
                self._pending.append(rest)
        self._handed_out += 1
        return partial(self._match, some)

    def _match(self, candidates: list[Candidates]) -> None:
        started = time.thread_time()
        size = sum(some.weight for some in candidates)
        keep_matching(candidates, self._pattern)
        self._match_block = _next_block(self._match_block, time.thread_time() - started, size)
        self._done.append(None)

    def _end(self) -> None:
        found = self._known
        remember = len(self._listing.chunks) > 1
        for number, search in self._searches:
            rows = search.result()
            if remember and isinstance(search, ChunkSearch):
                chunk = self._listing.chunks[number]
                text = self._pattern.text
                rows = chunk.memo.put_first(text, rows, rows.remembered_bytes(chunk) + 4 * len(text))
            found.append((number, rows))
        self._searches.clear()
        found.sort(key=_number)
        self._pieces = tuple((number, rows) for number, rows in found if len(rows))


def _next_block(block: int, seconds: float, size: int) -> int:
    """The next block's size, from the time that ``size`` bytes took: it grows in a few steps, and shrinks at once."""
    following = int(size * min(4.0, _SLICE_SECONDS / max(seconds, 1e-6)))
    if seconds < _SLICE_SECONDS:
        following = max(following, block)  # this one was small only since the rows had ended
    return min(max(following, _SMALLEST_BLOCK), _LARGEST_BLOCK)


def _number(piece: tuple[int, ChunkRows]) -> int:
    return piece[0]


def _within(data: ListingData, part: ListingPart) -> ListingPart | None:
    """The part that a search is restricted to; ``None`` to search the whole listing, by columns made for that."""
    return None if part.is_whole(data) and not part.is_direct else part


def find_matches(data: ListingData, part: ListingPart, pattern: TopicsPattern) -> ListingPart:
    """The rows of a part that match ``pattern``. Raises :exc:`TypeError` for anything but a compiled pattern."""
    if _within(data, part) is None and data.is_believed:
        pieces = whole_ranges(data, real_pattern(pattern))
        if pieces is not None:
            return _remembered(data, part, pattern.text, ListingPart.of_pieces(pieces, data, pattern.text))
    scan = PatternScan(data, part, pattern, _as_it_is)
    while (work := scan.take()) is not None:
        work()
    return scan.result()


def _as_it_is(part: ListingPart) -> ListingPart:
    return part


def _remembered(data: ListingData, part: ListingPart, text: str, found: ListingPart) -> ListingPart:
    """The found part, remembered by the listing; equal searches share the first one."""
    is_whole = part.is_whole(data)
    size = 128 * len(found.pieces or ())
    if len(data.chunks) == 1 or not is_whole:  # else the chunks remember them
        size += found.remembered_bytes(data)
    key = None if is_whole else part.key()
    first: ListingPart = data.memo.put_first((text, key), found, size + 4 * len(text))
    return first
