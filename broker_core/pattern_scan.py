"""Finding the rows of a listing that match a pattern, by the cheapest way that is exact.

1. A literal or a range is two binary searches in the sorted column of matched forms; where all of the range must match,
   nothing else is done.
2. Within the range, a substring that every match needs is searched first, over contiguous memory: RE2 finds it at
   memory speed, and only the rows around its finds are matched in full.
3. Where the substring is everywhere, or none is needed, Arrow's RE2 kernel runs over the column in blocks, on two
   threads. Patterns can be a thousand times slower than usual (automata with too many states), so the size of a block
   follows the time that the one before took.

All of it happens in C without the interpreter's lock; nothing here is per topic.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import re2

from broker_core.patterns import TopicsPattern

if TYPE_CHECKING:
    from broker_core.listing import Listing
    from broker_core.selection import Selection

__all__ = ["matching_rows", "quick_to_match"]

_TINY: Final = 8 * 1024  # bytes matched at once: looking for a substring first would cost more
#: A required substring that one name in so many has is no help: the regex runs over every name instead.
_DENSE: Final = 3
_SAMPLE: Final = 256  # names
#: The shortest substring that is searched, in bytes; of a longer one, how much is kept and looked at, in characters.
_SHORTEST: Final = 3
_KEPT_CHARACTERS: Final = 5
_LONGEST: Final = 24
_FREQUENCY_SAMPLE: Final = 16 * 1024  # bytes

# Work on the event loop. As a rule RE2 matches 200 bytes a microsecond, and finds a substring ten times quicker; at the
# worst a byte takes 2.5 ns for each instruction of the program.
_QUICK_MATCH: Final = 96 * 1024  # bytes
_QUICK_SEARCH: Final = 1024 * 1024  # bytes, with a required substring
_QUICK_WORST: Final = 16 * 1024 * 1024  # bytes times instructions: 40 ms

_THREADS: Final = 2
_scanners = ThreadPoolExecutor(_THREADS, thread_name_prefix="pattern-scan")
_FIRST_BLOCK: Final = 128 * 1024  # bytes
_LARGEST_BLOCK: Final = 4 * 1024 * 1024
_SMALLEST_BLOCK: Final = 4 * 1024
_BLOCK_SECONDS: Final = 0.03  # what a block should take, so that others have their turn and `check` is heard
_AT_ONCE: Final = 1024 * 1024  # bytes that are not worth a second thread

Rows = np.ndarray[Any, Any]
_Search = Callable[[int, int], Rows]


def quick_to_match(listing: Listing, pattern: TopicsPattern, within: Selection | None) -> bool:
    """Whether the rows of ``pattern`` are found in about a millisecond, whatever it is."""
    if within is None and _is_whole_range(listing, pattern) and listing.by_matched is None:
        return True
    offsets = listing.matched_offsets
    size = sum(int(offsets[high] - offsets[low]) for low, high in _parts(listing, pattern))
    if within is not None and len(listing):
        size = min(size, 2 * len(within) * (int(offsets[-1]) // len(listing) + 1))
    if size * pattern.program_size > _QUICK_WORST:
        return False
    return size <= (_QUICK_SEARCH if within is None and _useful_literal(listing, pattern) else _QUICK_MATCH)


def matching_rows(
    listing: Listing,
    pattern: TopicsPattern,
    within: Selection | None,
    check: Callable[[], None] | None = None,
) -> tuple[int, int] | Rows:
    """Positions of the matching topics, ascending; or ``(low, high)`` where they are a slice of the listing.

    ``within`` restricts to a selection of the listing; ``check`` may raise to end long work.
    """
    parts = _parts(listing, pattern)
    if within is not None:
        return _within(listing, pattern, within, parts, check)
    if _is_whole_range(listing, pattern):
        low, high = parts[0]
        if listing.by_matched is None:
            return low, high
        if high - low == len(listing):
            return 0, len(listing)
        return np.sort(listing.by_matched[low:high])
    return _in_order(listing, [_search(listing, pattern, low, high, check) for low, high in parts])


def _in_order(listing: Listing, found: list[Rows]) -> Rows:
    """Rows of the listing, ascending, of ascending positions in its matched column."""
    positions = np.concatenate(found) if found else np.empty(0, np.int64)
    return positions if listing.by_matched is None else np.sort(listing.by_matched[positions])


def _is_whole_range(listing: Listing, pattern: TopicsPattern) -> bool:
    """Whether all names in the one range of the pattern match, so that none has to be looked at."""
    return pattern.literal is not None or (pattern.exact_range and not listing.has_newline)


def _parts(listing: Listing, pattern: TopicsPattern) -> list[tuple[int, int]]:
    """Stretches of the matched column, ``[low, high)``, outside of which nothing matches."""
    if not pattern.ranges:
        return [(0, len(listing))]
    return [listing.matched_range(low, high) for low, high in pattern.ranges]


def _within(
    listing: Listing,
    pattern: TopicsPattern,
    within: Selection,
    parts: list[tuple[int, int]],
    check: Callable[[], None] | None,
) -> Rows:
    """Rows of a selection that match: few are gathered and matched; many are found among all that match."""
    positions = within.row_array
    if listing.by_matched is not None:
        positions = np.sort(listing.places[positions])
    found: list[Rows] = []
    for low, high in parts:
        first, last = np.searchsorted(positions, (low, high))
        wanted = positions[first:last]
        if 4 * len(wanted) > high - low:
            matched = _search(listing, pattern, low, high, check)
            found.append(np.intersect1d(matched, wanted, assume_unique=True))
            continue

        def gather(start: int, stop: int, wanted: Rows = wanted) -> Rows:
            return _gathered(listing, pattern, wanted[start:stop])

        size = int(listing.matched_offsets[-1]) // len(listing) + 1 if len(listing) else 1
        weights = np.arange(len(wanted) + 1) * size
        found.append(_in_blocks(gather, weights, (0, len(wanted)), _first_block(pattern), check))
    return _in_order(listing, found)


def _gathered(listing: Listing, pattern: TopicsPattern, positions: Rows) -> Rows:
    """Those of the positions in the matched column that match."""
    if not len(positions):
        return positions
    keep = pattern.match_column(listing.matched.take(pa.array(positions)))
    matching: Rows = positions[keep.to_numpy(zero_copy_only=False)]
    return matching


def _useful_literal(listing: Listing, pattern: TopicsPattern) -> str | None:
    """A required substring that not every name of the namespace has anyway, cut so that it is quick to find."""
    everywhere = f"{listing.namespace}/"
    for literal in pattern.required:
        rest = literal.removeprefix(everywhere)
        if len(rest.encode()) >= _SHORTEST and rest not in everywhere:
            return _quick_part(listing, rest)
    return None


def _quick_part(listing: Listing, literal: str) -> str:
    """The part of a substring whose ends are the rarest bytes of the names.

    RE2 skips through memory to where the first and the last byte stand at the right distance, so that "x0123" is found
    three times as quickly as "-x0123" where every name has dashes.
    """
    data, offsets = memoryview(listing.matched.buffers()[2]), listing.matched_offsets
    middle = int(offsets[0] + offsets[-1]) // 2
    sample = np.frombuffer(data[middle : middle + _FREQUENCY_SAMPLE], np.uint8)
    frequency = np.bincount(sample, minlength=256) + 1
    ends = [(frequency[char.encode()[0]], frequency[char.encode()[-1]]) for char in literal[:_LONGEST]]
    keep = min(len(ends), _KEPT_CHARACTERS)
    parts = (
        (int(ends[first][0]) * int(ends[last][1]), first - last, first, last)
        for first in range(len(ends))
        for last in range(first + keep - 1, len(ends))
    )
    _, _, first, last = min(parts)
    return literal[first : last + 1]


def _search(
    listing: Listing, pattern: TopicsPattern, low: int, high: int, check: Callable[[], None] | None
) -> Rows:
    """Positions in the matched column, within ``[low, high)``, that match."""
    offsets = listing.matched_offsets
    literal = None if offsets[high] - offsets[low] <= _TINY else _useful_literal(listing, pattern)

    def search(first: int, last: int) -> Rows:
        if literal is None or _is_dense(listing, literal, first, last):
            keep = pattern.match_column(listing.matched.slice(first, last - first))
            return np.flatnonzero(keep.to_numpy(zero_copy_only=False)) + first
        return _gathered(listing, pattern, _rows_with(listing, literal, first, last))

    # Looking for a substring takes no more than memory does, unless it is everywhere.
    block = _first_block(pattern) if literal is None else min(8 * _first_block(pattern), _AT_ONCE)
    return _in_blocks(search, offsets, (low, high), block, check)


def _first_block(pattern: TopicsPattern) -> int:
    """Bytes of the first block: what takes no long time even if the pattern turns out to be of the slowest."""
    return min(max(_QUICK_WORST // pattern.program_size, _SMALLEST_BLOCK), _FIRST_BLOCK)


def _in_blocks(
    search: _Search, offsets: Rows, bounds: tuple[int, int], block: int, check: Callable[[], None] | None
) -> Rows:
    """What ``search`` finds within the bounds, asked block by block, the first of ``block`` bytes.

    ``offsets`` says how many bytes each row has.
    """
    low, high = bounds
    size = offsets[high] - offsets[low]
    if size <= block:
        return search(low, high)

    def timed(first: int, last: int) -> tuple[int, Rows, float]:
        started = time.perf_counter()
        return first, search(first, last), time.perf_counter() - started

    found: list[tuple[int, Rows]] = []
    position = low
    threads = 1 if size <= _AT_ONCE else _THREADS
    running: set[Future[tuple[int, Rows, float]]] = set()
    try:
        while position < high or running:
            if check is not None:
                check()
            while position < high and len(running) < threads:
                stop = int(np.searchsorted(offsets, offsets[position] + block, side="right")) - 1
                stop = min(max(stop, position + 1), high)
                running.add(_scanners.submit(timed, position, stop))
                position = stop
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for first, rows, seconds in map(Future.result, done):
                found.append((first, rows))
                # Up by a few steps, down at once.
                block = int(block * min(4.0, _BLOCK_SECONDS / max(seconds, 1e-6)))
                block = min(max(block, _SMALLEST_BLOCK), _LARGEST_BLOCK)
    finally:
        for future in running:
            future.cancel()
    return np.concatenate([rows for _, rows in sorted(found, key=itemgetter(0))])


def _is_dense(listing: Listing, literal: str, low: int, high: int) -> bool:
    """Whether so many names have the literal that finding it first costs more than it saves, judged by a sample."""
    sampled = min(_SAMPLE, high - low)
    return len(_rows_with(listing, literal, low, low + sampled)) * _DENSE > sampled


def _rows_with(listing: Listing, literal: str, low: int, high: int) -> Rows:
    """Positions of the names in ``[low, high)`` around a find of the literal, ascending.

    The stretch of memory is split at the literal as if it were one string; between the pieces the finds are. A find may
    lie across two names, and hide one in the second that overlaps it: then both are given. The caller matches them.
    """
    offsets = listing.matched_offsets
    bounds = np.array([offsets[low], offsets[high]], np.int64)
    stretch = pa.LargeStringArray.from_buffers(1, pa.py_buffer(bounds), listing.matched.buffers()[2])
    pieces = pc.split_pattern_regex(stretch, re2.escape(literal)).flatten()
    if len(pieces) < 2:
        return np.empty(0, np.int64)
    size = len(literal.encode())
    before = np.cumsum(pc.binary_length(pieces).to_numpy(zero_copy_only=False))[:-1]
    starts = offsets[low] + before + size * np.arange(len(before))
    rows = np.searchsorted(offsets, starts, side="right") - 1
    last_rows = np.searchsorted(offsets, starts + (size - 1), side="right") - 1
    if not np.array_equal(rows, last_rows):
        rows = np.sort(np.concatenate((rows, last_rows)))
    found: Rows = rows[np.concatenate(([True], rows[1:] != rows[:-1]))]
    return found
