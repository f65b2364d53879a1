"""Finding the rows of a listing that match a pattern, by the cheapest way that is exact.

1. A literal or a range is two binary searches in the sorted column of matched forms; where all of the range must match,
   nothing else is done.
2. Within the range, a substring that every match needs is searched first, over contiguous memory: RE2 finds it at
   memory speed, and only the rows around its finds are matched in full.
3. Where the substring is everywhere, or none is needed, Arrow's RE2 kernel runs over the column in blocks, on two threads.

All of it happens in C without the interpreter's lock; nothing here is per topic.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import re2

from broker_core.patterns import TopicsPattern

if TYPE_CHECKING:
    from broker_core.listing import Listing
    from broker_core.selection import Selection

__all__ = ["matching_rows", "quick_to_match"]

_BLOCK_BYTES = 4 * 1024 * 1024
_TINY = 8 * 1024  # matched at once: looking for a substring first would cost more
#: A required substring that one name in so many has is no help: the regex runs over every name instead.
_DENSE = 3
_SAMPLE = 256  # names
#: Bytes that may be matched (and, with a required substring, be searched) on the event loop: about half a millisecond.
_QUICK_MATCH = 96 * 1024
_QUICK_SEARCH = 1024 * 1024

_scanners = ThreadPoolExecutor(2, thread_name_prefix="pattern-scan")

Rows = np.ndarray[Any, Any]


def quick_to_match(listing: Listing, pattern: TopicsPattern) -> bool:
    """Whether the rows of ``pattern`` are found well under a millisecond."""
    parts = _parts(listing, pattern)
    if pattern.exact_range and listing.by_matched is None and not listing.has_newline:
        return True
    offsets = listing.matched_offsets
    size = sum(int(offsets[high] - offsets[low]) for low, high in parts)
    return size <= (_QUICK_SEARCH if _useful_literal(listing, pattern) else _QUICK_MATCH)


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
    everything_in_range = (pattern.exact_range and not listing.has_newline) or pattern.literal is not None
    if within is not None and (within.is_slice is False or len(within) < len(listing)):
        return _within(listing, pattern, within, parts)
    if everything_in_range and len(parts) == 1:
        low, high = parts[0]
        if listing.by_matched is None:
            return low, high
        if high - low == len(listing):
            return 0, len(listing)
        return np.sort(listing.by_matched[low:high])
    found = [_search(listing, pattern, low, high, check) for low, high in parts if low < high]
    positions = np.concatenate(found) if found else np.empty(0, np.int64)
    if listing.by_matched is None:
        return positions
    return np.sort(listing.by_matched[positions])


def _parts(listing: Listing, pattern: TopicsPattern) -> list[tuple[int, int]]:
    """Stretches of the matched column, ``[low, high)``, outside of which nothing matches."""
    if not pattern.ranges:
        return [(0, len(listing))]
    return [listing.matched_range(low, high) for low, high in pattern.ranges]


def _within(
    listing: Listing, pattern: TopicsPattern, within: Selection, parts: list[tuple[int, int]]
) -> Rows:
    """Rows of a selection that match: those in range are gathered and matched, which pays while they are few."""
    if listing.by_matched is None:
        positions = within.row_array
    else:
        inverse = np.empty(len(listing), np.int64)
        inverse[listing.by_matched] = np.arange(len(listing))
        positions = np.sort(inverse[within.row_array])
    found: list[Rows] = []
    for low, high in parts:
        first, last = np.searchsorted(positions, (low, high))
        candidates = positions[first:last]
        if len(candidates):
            keep = pattern.match_column(listing.matched.take(pa.array(candidates)))
            found.append(candidates[keep.to_numpy(zero_copy_only=False)])
    matched = np.concatenate(found) if found else np.empty(0, np.int64)
    return matched if listing.by_matched is None else np.sort(listing.by_matched[matched])


def _useful_literal(listing: Listing, pattern: TopicsPattern) -> str | None:
    """The longest required substring that not every name of the namespace has anyway."""
    everywhere = f"{listing.namespace}/"
    for literal in pattern.required:
        rest = literal.removeprefix(everywhere)
        if len(rest.encode()) >= 3 and rest not in everywhere:
            return rest
    return None


def _search(
    listing: Listing, pattern: TopicsPattern, low: int, high: int, check: Callable[[], None] | None
) -> Rows:
    """Positions in the matched column, within ``[low, high)``, that match."""
    offsets = listing.matched_offsets
    literal = None if offsets[high] - offsets[low] <= _TINY else _useful_literal(listing, pattern)

    def search(block: tuple[int, int]) -> Rows:
        first, last = block
        if literal is None or _is_dense(listing, literal, first, last):
            keep = pattern.match_column(listing.matched.slice(first, last - first))
            return np.flatnonzero(keep.to_numpy(zero_copy_only=False)) + first
        candidates = _rows_with(listing, literal, first, last)
        if not len(candidates):
            return candidates
        keep = pattern.match_column(listing.matched.take(pa.array(candidates)))
        return candidates[keep.to_numpy(zero_copy_only=False)]

    blocks = _blocks(listing, low, high)
    if len(blocks) == 1:
        return search(blocks[0])

    def checked(block: tuple[int, int]) -> Rows:
        if check is not None:
            check()
        return search(block)

    found = list(_scanners.map(checked, blocks))
    return np.concatenate(found)


def _blocks(listing: Listing, low: int, high: int) -> list[tuple[int, int]]:
    offsets = listing.matched_offsets
    total = int(offsets[high] - offsets[low])
    count = max(1, -(-total // _BLOCK_BYTES))
    if count == 1 and total > _QUICK_SEARCH:
        count = 2
    marks = np.searchsorted(offsets, [int(offsets[low]) + total * part // count for part in range(1, count)])
    edges = [low, *(min(max(int(mark), low), high) for mark in marks), high]
    return [(first, last) for first, last in zip(edges, edges[1:], strict=False) if first < last] or [
        (low, low)
    ]


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
