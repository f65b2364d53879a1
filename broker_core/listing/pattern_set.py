"""Many patterns over one listing in one pass, each by the cheapest way, and exactly as one alone is matched.

A pattern is decided by the code that decides one alone (:func:`broker_core.listing.pattern_scan.matching_rows` and
:meth:`broker_core.patterns.TopicsPattern.match_column`), so that online and batch cannot differ. What is added here is
the choice of what need not be looked at:

1. ``all``, a literal, and a range of which everything matches cost two binary searches.
2. A pattern whose ranges hold few of the names is searched within them.
3. The others are put together into one ``re2.Filter``, which says of each name, by the substrings that patterns need,
   which patterns can match at all; only these candidates are matched, a column of them for each pattern.
4. Where a sample says that candidates are many (or the filter knows no substring), the pattern runs over the column.

The filter is never believed where it can be checked: what the sampled names really match must be among its candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import re2

from broker_core.listing.listing_data import ListingData
from broker_core.listing.pattern_scan import matching_rows
from broker_core.patterns import TopicsPattern

__all__ = ["Matches", "match_patterns"]

Rows = np.ndarray[Any, Any]
#: ``(low, high)`` of a listing, or ascending positions in it.
Matches = tuple[int, int] | Rows

#: A pattern whose ranges hold less than this part of a listing's bytes is searched there and nowhere else.
_NARROW: Final = 0.05
#: So few names, or so few patterns, are not worth a filter.
_FEW_NAMES: Final = 512
_FEW_PATTERNS: Final = 4
_SAMPLE: Final = 300  # names
#: Of patterns for which one name in so many is a candidate, matching all names is cheaper than choosing.
_DENSE: Final = 3
#: What the filter found is put in order after so many names, so that a listing of any size takes the same memory.
_STRETCH: Final = 65_536


def match_patterns(listing: ListingData, patterns: Sequence[TopicsPattern]) -> Iterator[tuple[int, Matches]]:
    """``(index of the pattern, its matches)`` for each supported pattern, in any order.

    The listing's rows are those of the hash order. Raises :exc:`~broker_core.errors.InvalidPattern` for a pattern that
    RE2 does not support.
    """
    wide: list[int] = []
    for index, pattern in enumerate(patterns):
        if pattern.match_all:
            yield index, (0, len(listing))
        elif _is_narrow(listing, pattern):
            yield index, matching_rows(listing, pattern, None)
        else:
            wide.append(index)
    sparse: list[int] = []
    if len(wide) >= _FEW_PATTERNS and len(listing) >= _FEW_NAMES:
        sparse = _sparse(listing, patterns, wide)
    for index in sorted(set(wide).difference(sparse)):
        yield index, matching_rows(listing, patterns[index], None)
    if sparse:
        candidates = _candidates(listing, [patterns[index].anchored for index in sparse])
        for index, rows in zip(sparse, candidates, strict=True):
            yield index, _confirmed(listing, patterns[index], rows)


def _is_narrow(listing: ListingData, pattern: TopicsPattern) -> bool:
    """Whether matching this pattern looks at few names."""
    if pattern.literal is not None or (pattern.exact_range and not listing.has_newline):
        return True
    if not pattern.ranges:
        return False
    offsets = listing.matched_offsets
    size = sum(
        int(offsets[last] - offsets[first])
        for first, last in (listing.matched_range(low, high) for low, high in pattern.ranges)
    )
    return size <= _NARROW * int(offsets[-1] - offsets[0])


def _sparse(listing: ListingData, patterns: Sequence[TopicsPattern], wide: list[int]) -> list[int]:
    """Those of the wide patterns for which the filter leaves few candidates, judged by a sample."""
    places = np.unique(np.linspace(0, len(listing) - 1, _SAMPLE).astype(np.int64))
    sample = listing.matched.take(pa.array(places))
    texts = [patterns[index].anchored for index in wide]
    found = np.zeros((len(wide), len(sample)), bool)
    for position, name in enumerate(sample.to_pylist()):
        encoded = name.encode()
        for first, engine in _filters(tuple(texts)):
            for pattern in engine.Match(encoded, True) or ():
                found[first + pattern, position] = True
    chosen: list[int] = []
    for index, candidate in zip(wide, found, strict=True):
        if int(candidate.sum()) * _DENSE > len(sample):
            continue
        matching = patterns[index].match_column(sample).to_numpy(zero_copy_only=False)
        if not (matching & ~candidate).any():
            chosen.append(index)
    return chosen if len(chosen) >= _FEW_PATTERNS else []


@lru_cache(maxsize=4)
def _filters(texts: tuple[str, ...]) -> tuple[tuple[int, Any], ...]:
    """Filters over the anchored texts, each with the position of its first one.

    A filter's automaton of substrings has a fixed room of 8 MiB; where it does not suffice, two take a half each.
    """
    engine = re2.Filter()
    options = re2.Options()
    options.log_errors = False
    for text in texts:
        engine.Add(text, options)
    try:
        engine.Compile()
    except re2.error:
        if len(texts) == 1:
            return ((0, _Everything()),)
        half = len(texts) // 2
        later = ((first + half, part) for first, part in _filters(texts[half:]))
        return (*_filters(texts[:half]), *later)
    return ((0, engine),)


class _Everything:
    """Stands in for a filter that cannot be made: its one pattern may match any name."""

    def Match(self, _text: bytes, _potential: bool) -> list[int]:  # noqa: N802 - re2.Filter's name
        return [0]


def _candidates(listing: ListingData, texts: list[str]) -> list[Rows]:
    """For each text the positions in ``matched`` that it may match, ascending."""
    data = memoryview(listing.matched.buffers()[2] or b"")
    offsets = listing.matched_offsets
    parts: list[list[Rows]] = [[] for _ in texts]
    for first, engine in _filters(tuple(texts)):
        match = engine.Match
        for start in range(0, len(listing), _STRETCH):
            bounds = offsets[start : start + _STRETCH + 1].tolist()
            which: list[int] = []
            counts: list[int] = []
            for low, high in pairwise(bounds):
                found = match(data[low:high], True)
                if found:
                    which += found
                    counts.append(len(found))
                else:
                    counts.append(0)
            if not which:
                continue
            rows = np.repeat(np.arange(start, start + len(counts)), counts)
            ids = np.array(which)
            order = np.argsort(ids, kind="stable")
            ids, rows = ids[order], rows[order]
            edges = np.flatnonzero(np.diff(ids, prepend=-1))
            for begin, end in pairwise([*edges.tolist(), len(ids)]):
                parts[first + int(ids[begin])].append(rows[begin:end])
    return [np.concatenate(part) if part else np.empty(0, np.int64) for part in parts]


def _confirmed(listing: ListingData, pattern: TopicsPattern, positions: Rows) -> Rows:
    """Rows of the listing, ascending, of those candidates that really match."""
    if len(positions):
        keep = pattern.match_column(listing.matched.take(pa.array(positions)))
        positions = positions[keep.to_numpy(zero_copy_only=False)]
    return positions if listing.by_matched is None else np.sort(listing.by_matched[positions])
