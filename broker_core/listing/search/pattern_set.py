"""Matching of many patterns over one chunk in one pass: each in the cheapest way, with the result of a single match.

A pattern is matched by the code for single patterns (:mod:`broker_core.listing.search.chunk_search` and
:meth:`broker_core.patterns.TopicsPattern.match_column`), so that online and batch cannot differ. This module only
chooses which names need not be read:

1. ``all``, a literal, and a range of which everything matches cost two binary searches.
2. A pattern whose ranges hold few of the names is searched within them.
3. The others are put together into one ``re2.Filter``, which finds for each name, by the substrings that patterns need,
   the patterns that can match at all; only these candidates are matched, a column of them for each pattern.
4. If a sample has many candidates (or the filter knows no substring), the pattern runs over the column.

The filter is checked by the sample: each real match of a sampled name must be among its candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

import numpy as np
import re2

from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.chunks.chunk_rows import ChunkRows
from broker_core.listing.search.chunk_search import (
    ChunkSearch,
    is_whole_range,
    keep_matching,
    ranges_in,
    useful_clues,
)
from broker_core.patterns import TopicsPattern

__all__ = ["Matches", "match_patterns", "matching_rows"]

Rows = np.ndarray[Any, Any]
#: ``(low, high)`` of a chunk, or ascending rows of it.
Matches = tuple[int, int] | Rows

#: A pattern whose ranges hold less than this part of a chunk's bytes is searched there and nowhere else.
_NARROW: Final = 0.05
#: So few names, or so few patterns, are not worth a filter.
_FEW_NAMES: Final = 512
_FEW_PATTERNS: Final = 4
_SAMPLE: Final = 300  # names
#: Of patterns for which one name in so many is a candidate, matching all names is cheaper than choosing.
_DENSE: Final = 3
#: Candidates are put in order after so many names, so that a chunk of any size takes the same memory.
_STRETCH: Final = 65_536
#: Bytes of one pattern's search that are matched together.
_BLOCK: Final = 4 * 1024 * 1024


def match_patterns(chunk: Chunk, patterns: Sequence[TopicsPattern]) -> Iterator[tuple[int, Matches]]:
    """``(index of the pattern, its matches)`` for each supported pattern, in any order.

    The chunk's rows are those of the hash order. Raises :exc:`~broker_core.errors.InvalidPattern` for a pattern that
    RE2 does not support.
    """
    wide: list[int] = []
    for index, pattern in enumerate(patterns):
        if pattern.match_all:
            yield index, (0, len(chunk))
        elif _is_narrow(chunk, pattern):
            yield index, matching_rows(chunk, pattern)
        else:
            wide.append(index)
    sparse: list[int] = []
    if len(wide) >= _FEW_PATTERNS and len(chunk) >= _FEW_NAMES:
        sparse = _sparse(chunk, patterns, wide)
    for index in sorted(set(wide).difference(sparse)):
        yield index, matching_rows(chunk, patterns[index])
    if sparse:
        candidates = _candidates(chunk, [patterns[index].anchored for index in sparse])
        for index, rows in zip(sparse, candidates, strict=True):
            yield index, _confirmed(chunk, patterns[index], rows)


def _is_narrow(chunk: Chunk, pattern: TopicsPattern) -> bool:
    """Whether matching this pattern reads few names."""
    if is_whole_range(chunk, pattern):
        return True
    if not pattern.ranges:
        return False
    offsets = chunk.forms.offsets
    size = sum(int(offsets[last] - offsets[first]) for first, last in ranges_in(chunk, pattern))
    return size <= _NARROW * int(offsets[-1] - offsets[0])


def matching_rows(chunk: Chunk, pattern: TopicsPattern) -> Matches:
    """The rows of a chunk that match one pattern, which RE2 supports."""
    if is_whole_range(chunk, pattern):
        found = ChunkRows(0, chunk.size) if not pattern.ranges else chunk.rows_of_range(*pattern.ranges[0])
    else:
        search = ChunkSearch(chunk, pattern, {})
        if not search.is_tiny:  # finding clues takes longer than matching a few names
            search = ChunkSearch(chunk, pattern, useful_clues(chunk.namespace, pattern))
        position = 0
        while position < search.size:
            stop = search.until(position, _BLOCK)
            keep_matching(search.run(position, stop), pattern)
            position = stop
        found = search.result()
    return (found.low, found.high) if found.rows is None else found.rows


def _sparse(chunk: Chunk, patterns: Sequence[TopicsPattern], wide: list[int]) -> list[int]:
    """Wide patterns for which the filter leaves few candidates, judged by a sample."""
    places = np.unique(np.linspace(0, len(chunk) - 1, _SAMPLE).astype(np.int64))
    sample = chunk.forms.at(places)
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
    """Filters over the anchored texts, each with the position of its first text.

    A filter's automaton of substrings has a fixed room of 8 MiB; if it does not suffice, two filters take a half each.
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
    """A stand-in for a filter that cannot be made: its one pattern may match any name."""

    def Match(self, _text: bytes, _potential: bool) -> list[int]:  # noqa: N802 - re2.Filter's name
        return [0]


def _candidates(chunk: Chunk, texts: list[str]) -> list[Rows]:
    """For each text the positions of the forms that it may match, ascending."""
    data = memoryview(chunk.forms.text)
    offsets = chunk.forms.offsets
    parts: list[list[Rows]] = [[] for _ in texts]
    for first, engine in _filters(tuple(texts)):
        match = engine.Match
        for start in range(0, len(chunk), _STRETCH):
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


def _confirmed(chunk: Chunk, pattern: TopicsPattern, positions: Rows) -> Rows:
    """Rows of the chunk, ascending, of the candidates that really match."""
    forms = chunk.forms
    if len(positions):
        keep = pattern.match_column(forms.at(positions))
        positions = positions[keep.to_numpy(zero_copy_only=False)]
    return positions if forms.is_identity else np.sort(forms.rows(positions))
