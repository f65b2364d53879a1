"""Searching one chunk for what matches a pattern: all of it within the pattern's ranges, or some rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from broker_core.listing.chunk_ranges import ranges_in
from broker_core.listing.chunk_rows import ChunkRows
from broker_core.listing.substring_search import rows_with
from broker_core.names import NON_PERSISTENT, NamespaceName
from broker_core.patterns import TopicsPattern

if TYPE_CHECKING:
    from broker_core.listing.chunk import Chunk

__all__ = ["Candidates", "ChunkSearch", "RowsSearch", "first_block", "keep_matching", "useful_literals"]

_TINY: Final = 8 * 1024  # bytes matched at once: looking for a substring first would cost more
# Required substrings that are searched: the longest ones, until one is found that few names have.
_SHORTEST: Final = 1  # bytes
_MOST_LITERALS: Final = 3
#: Stretches in a row with too many finds of a literal, after which it is not searched any more.
_GIVEN_UP: Final = 4
_FIRST_BLOCK: Final = 128 * 1024  # bytes
_SMALLEST_BLOCK: Final = 256
_WORST: Final = 4 * 1024 * 1024  # bytes times instructions: 10 ms

_Array = np.ndarray[Any, Any]


def first_block(pattern: TopicsPattern) -> int:
    """Bytes of the first slice: what takes no long time even if the pattern turns out to be of the slowest."""
    return min(max(_WORST // pattern.program_size, _SMALLEST_BLOCK), _FIRST_BLOCK)


class ChunkSearch:
    """The search of a chunk within the ranges of a pattern. Positions are those of the chunk's forms, in the ranges."""

    __slots__ = ("_chunk", "_found", "_literals", "_pattern", "_ranges", "size")

    def __init__(self, chunk: Chunk, pattern: TopicsPattern, literals: dict[bytes, int]) -> None:
        """``literals`` are substrings of every match, to be searched first, which all chunks of a search share: in how
        many stretches in a row too many names had each."""
        self._chunk = chunk
        self._pattern = pattern
        self._ranges = ranges_in(chunk, pattern)
        #: How many positions there are to search.
        self.size = sum(high - low for low, high in self._ranges)
        self._found: list[tuple[int, _Array]] = []
        self._literals = literals if self.weight(0, self.size) > _TINY else {}

    def _parts(self, low: int, high: int) -> list[tuple[int, int]]:
        """The positions among the forms of those from ``low`` to ``high`` that are searched."""
        if len(self._ranges) == 1:
            begin = self._ranges[0][0]
            return [(begin + low, begin + high)]
        parts: list[tuple[int, int]] = []
        start = 0
        for begin, end in self._ranges:
            size = end - begin
            first, last = max(low - start, 0), min(high - start, size)
            if first < last:
                parts.append((begin + first, begin + last))
            start += size
        return parts

    def weight(self, low: int, high: int) -> int:
        """Bytes of these positions."""
        offsets = self._chunk.forms.offsets
        return sum(offsets.item(end) - offsets.item(begin) for begin, end in self._parts(low, high))

    def until(self, low: int, size: int) -> int:
        """The position up to which there are about ``size`` bytes; one more than ``low`` at least."""
        begin, end = self._parts(low, self.size)[0]
        offsets = self._chunk.forms.offsets
        stop = int(np.searchsorted(offsets[begin : end + 1], offsets[begin] + size, "right")) - 1
        return low + min(max(stop, 1), end - begin)

    def run(self, low: int, high: int) -> list[Candidates]:
        """Search these positions, in any thread. Names that may match are given back, to be matched with others."""
        candidates: list[Candidates] = []
        for begin, end in self._parts(low, high):
            candidates += self._search(begin, end)
        return candidates

    def keep(self, positions: _Array) -> None:
        """These candidates match."""
        self._found.append((int(positions[0]), positions))

    def result(self) -> ChunkRows:
        """The rows that match, once all was searched."""
        found = [positions for _, positions in sorted(self._found, key=itemgetter(0))]
        positions = found[0] if len(found) == 1 else np.concatenate([np.zeros(0, np.int64), *found])
        forms = self._chunk.forms
        return ChunkRows.of(positions if forms.is_identity else np.sort(forms.rows(positions)))

    def _search(self, low: int, high: int) -> list[Candidates]:
        forms = self._chunk.forms
        for literal, dense in self._literals.items():
            if dense >= _GIVEN_UP:
                continue
            positions = rows_with(forms.text, forms.offsets, low, high, literal)
            if positions is not None:
                self._literals[literal] = 0
                return [Candidates(self, positions, forms.at(positions))] if len(positions) else []
            self._literals[literal] = dense + 1
        keep = self._pattern.match_column(forms.between(low, high))
        if keep.true_count:
            self.keep(np.flatnonzero(keep.to_numpy(zero_copy_only=False)) + low)
        return []


@dataclass(frozen=True, slots=True)
class Candidates:
    """Positions of a chunk's forms that may match, and these forms."""

    search: ChunkSearch
    positions: _Array
    forms: pa.LargeStringArray


def keep_matching(candidates: Sequence[Candidates], pattern: TopicsPattern) -> None:
    """Tell the searches which of their candidates match: all are matched together, since each call costs."""
    if not candidates:
        return
    keep = pattern.match_column(pa.concat_arrays([some.forms for some in candidates]))
    matches = keep.to_numpy(zero_copy_only=False)
    begin = 0
    for some in candidates:
        end = begin + len(some.positions)
        found = some.positions[matches[begin:end]]
        if len(found):
            some.search.keep(found)
        begin = end


class RowsSearch:
    """The search of some rows of a chunk, which are matched one by one."""

    __slots__ = ("_average", "_chunk", "_direct", "_found", "_pattern", "_rows", "size")

    def __init__(self, chunk: Chunk, pattern: TopicsPattern, rows: ChunkRows, *, direct: bool) -> None:
        """``direct``: nothing is derived for all of the chunk."""
        self._chunk = chunk
        self._pattern = pattern
        self._rows = rows.array
        self._direct = direct
        self._average = chunk.fields_size // chunk.size + 1
        self.size = len(rows)
        self._found: list[tuple[int, _Array]] = []

    def weight(self, low: int, high: int) -> int:
        """Bytes of these rows, about."""
        return (high - low) * self._average

    def until(self, low: int, size: int) -> int:
        """The place up to which there are about ``size`` bytes; one more than ``low`` at least."""
        return min(low + max(size // self._average, 1), self.size)

    def run(self, low: int, high: int) -> list[Candidates]:
        """Search these rows; in any thread."""
        rows, chunk = self._rows[low:high], self._chunk
        if self._direct or not chunk.is_searchable:
            forms = chunk.some_forms(rows)
        else:
            forms = chunk.forms.at(chunk.forms.places(rows))
        keep = self._pattern.match_column(forms)
        self._found.append((low, rows[keep.to_numpy(zero_copy_only=False)]))
        return []

    def result(self) -> ChunkRows:
        """The rows that match, once all were searched."""
        found = [rows for _, rows in sorted(self._found, key=itemgetter(0))]
        return ChunkRows.of(np.concatenate(found) if found else np.zeros(0, np.int32))


def useful_literals(namespace: NamespaceName, pattern: TopicsPattern) -> dict[bytes, int]:
    """Required substrings that not every name of the namespace has anyway, longest first, as searches share them."""
    own = f"{namespace}/"
    everywhere = f"{NON_PERSISTENT}://{own}"  # has the other domain, too
    rests = (literal.removeprefix(own) for literal in pattern.required)
    useful = (rest.encode() for rest in rests if rest not in everywhere)
    return dict.fromkeys([rest for rest in useful if len(rest) >= _SHORTEST][:_MOST_LITERALS], 0)
