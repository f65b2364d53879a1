"""Search of one chunk for the names that match a pattern: all within the pattern's ranges, or some rows."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Final, TypeAlias

import google_crc32c
import numpy as np
import pyarrow as pa

from broker_core.listing.chunks.chunk_rows import FEW_ROWS, ChunkRows
from broker_core.listing.fields.fields_codec import binary_column, decode_fields, joined_fields
from broker_core.listing.listing_hash import TextCrc
from broker_core.listing.search.substring_search import ClassRun, rows_with
from broker_core.names import NON_PERSISTENT, Array, NamespaceName, column_data
from broker_core.patterns import TopicsPattern, class_run

if TYPE_CHECKING:
    from broker_core.listing.chunks.chunk import Chunk
    from broker_core.listing.listing_data import ListingData, Pieces


__all__ = [
    "GIVEN_UP",
    "Candidates",
    "ChunkSearch",
    "Clues",
    "RowsSearch",
    "candidates",
    "first_block",
    "is_whole_range",
    "keep_matching",
    "ranges_in",
    "useful_clues",
    "useful_literals",
    "whole_ranges",
]


def is_whole_range(chunk: Chunk, pattern: TopicsPattern) -> bool:
    """Whether all names of the chunk in the pattern's one range match, so that none has to be read."""
    return pattern.match_all or pattern.literal is not None or (pattern.exact_range and not chunk.has_newline)


def ranges_in(chunk: Chunk, pattern: TopicsPattern) -> list[tuple[int, int]]:
    """Positions of the chunk's forms, ``[low, high)``, outside of which nothing matches."""
    if not pattern.ranges:
        return [(0, chunk.size)]
    found = [chunk.form_range(low, high) for low, high in pattern.ranges]
    return [(low, high) for low, high in found if low < high]


def whole_ranges(listing: ListingData, pattern: TopicsPattern) -> Pieces | None:
    """The rows that match a pattern whose ranges match as a whole, if looking up the ranges is all it takes.

    ``None`` if forms have to be made, or names to be matched.
    """
    if not (pattern.match_all or pattern.literal is not None or pattern.exact_range):
        return None
    numbers = candidates(listing, pattern)
    if numbers is None:
        return None
    found: list[tuple[int, ChunkRows]] = []
    for number in numbers:
        chunk = listing.chunks[number]
        if not chunk.is_searchable or not chunk.forms.is_identity or not is_whole_range(chunk, pattern):
            return None
        rows = chunk.rows_of_range(*pattern.ranges[0]) if pattern.ranges else ChunkRows(0, chunk.size)
        if len(rows):
            found.append((number, rows))
    return tuple(found)


def candidates(listing: ListingData, pattern: TopicsPattern, *, make: bool = False) -> Sequence[int] | None:
    """The numbers of the chunks that may have a name in the pattern's ranges, ascending.

    ``None`` if forms have to be made first; ``make`` makes them.
    """
    chunks = listing.chunks
    if not pattern.ranges or len(chunks) == 1:
        return range(len(chunks))
    if not make and not listing.forms_are_made:
        return None
    firsts, lasts = listing.form_edges
    found: set[int] = set()
    for low, high in pattern.ranges:
        # All forms of each chunk before `begin` are smaller, none of a chunk from `end` on is.
        begin, end = bisect_left(lasts, low), bisect_left(firsts, high)
        for number in range(begin, end):
            least, most = chunks[number].form_bounds
            if least < high and low <= most:
                found.add(number)
    return sorted(found)


_TINY: Final = 8 * 1024  # bytes matched at once: looking for a substring first would cost more
# Required substrings that are searched: the longest ones, until few names have one.
_SHORTEST: Final = 1  # bytes
_MOST_LITERALS: Final = 3
#: Stretches in a row with too many finds of a literal, after which it is not searched any more.
GIVEN_UP: Final = 4
_FIRST_BLOCK: Final = 128 * 1024  # bytes
_SMALLEST_BLOCK: Final = 256
_WORST: Final = 4 * 1024 * 1024  # bytes times instructions: 10 ms

#: A shorter substring is in more names than a run of byte classes.
_LONG: Final = 3

#: Texts that every match has, and in how many stretches in a row too many names had each.
Clues: TypeAlias = dict[bytes | ClassRun, int]


def first_block(pattern: TopicsPattern) -> int:
    """Bytes of the first slice: few enough even if the pattern turns out to be of the slowest kind."""
    return min(max(_WORST // pattern.program_size, _SMALLEST_BLOCK), _FIRST_BLOCK)


class ChunkSearch:
    """The search of a chunk within the ranges of a pattern. Positions count the chunk's forms within the ranges."""

    __slots__ = ("_bytes", "_clues", "_found", "_pattern", "_ranges", "chunk", "size")

    def __init__(self, chunk: Chunk, pattern: TopicsPattern, clues: Clues) -> None:
        """``clues`` are searched first; all chunks of a search share them."""
        self.chunk = chunk
        self._pattern = pattern
        self._ranges = ranges_in(chunk, pattern)
        #: How many positions there are to search.
        self.size = sum(high - low for low, high in self._ranges)
        self._found: list[tuple[int, Array, ChunkRows | None]] = []
        self._bytes = self._weight(0, self.size)
        self._clues: Clues = {} if self.is_tiny else clues

    @property
    def is_tiny(self) -> bool:
        """Whether the search is so small that clues are of no use."""
        return self._bytes <= _TINY

    def _parts(self, low: int, high: int) -> list[tuple[int, int]]:
        """The ranges of forms that the searched positions ``low`` to ``high`` stand for."""
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
        """Bytes of the forms at positions ``low`` to ``high``."""
        return self._bytes if high - low == self.size else self._weight(low, high)

    def _weight(self, low: int, high: int) -> int:
        offsets = self.chunk.forms.offsets
        return sum(offsets.item(end) - offsets.item(begin) for begin, end in self._parts(low, high))

    def until(self, low: int, size: int) -> int:
        """The position about ``size`` bytes after ``low``; at least ``low + 1``."""
        if not low and self._bytes <= size:
            return self.size
        begin, end = self._parts(low, self.size)[0]
        offsets = self.chunk.forms.offsets
        stop = int(np.searchsorted(offsets[begin : end + 1], offsets[begin] + size, "right")) - 1
        return low + min(max(stop, 1), end - begin)

    def run(self, low: int, high: int) -> list[Candidates]:
        """Search positions ``low`` to ``high``, in any thread. Gives candidates, to be matched together with others."""
        candidates: list[Candidates] = []
        for begin, end in self._parts(low, high):
            candidates += self._search(begin, end)
        return candidates

    def keep(self, positions: Array, rows: ChunkRows | None = None) -> None:
        """Keep candidates that match; ``rows`` are the same rows with their size and hash."""
        self._found.append((int(positions[0]), positions, rows))

    def result(self) -> ChunkRows:
        """The rows that match, after all was searched."""
        self._found.sort(key=itemgetter(0))
        if len(self._found) == 1 and (rows := self._found[0][2]) is not None:
            return rows
        found = [positions for _, positions, _ in self._found]
        positions = found[0] if len(found) == 1 else np.concatenate([np.zeros(0, np.int64), *found])
        forms = self.chunk.forms
        return ChunkRows.of(positions if forms.is_identity else np.sort(forms.rows(positions)))

    def _search(self, low: int, high: int) -> list[Candidates]:
        forms = self.chunk.forms
        for clue, dense in self._clues.items():
            if dense >= GIVEN_UP:
                continue
            if isinstance(clue, ClassRun):
                positions = clue.rows(forms.text, forms.offsets, low, high)
            else:
                positions = rows_with(forms.text, forms.offsets, low, high, clue)
            if positions is not None:
                self._clues[clue] = 0
                return [Candidates(self, positions)] if len(positions) else []
            self._clues[clue] = dense + 1
        keep = self._pattern.match_column(forms.between(low, high))
        if keep.true_count:
            self.keep(np.flatnonzero(keep.to_numpy(zero_copy_only=False)) + low)
        return []


@dataclass(frozen=True, slots=True)
class Candidates:
    """Positions of a chunk's forms that may match."""

    search: ChunkSearch
    positions: Array

    @property
    def are_few(self) -> bool:
        """Whether the names are matched by their fields, joined with those of other chunks."""
        return len(self.positions) <= FEW_ROWS and self.search.chunk.is_plain

    @property
    def domain(self) -> str:
        return self.search.chunk.domain

    @property
    def weight(self) -> int:
        """Bytes of their fields, about."""
        return len(self.positions) * self._average

    @property
    def _average(self) -> int:
        chunk = self.search.chunk
        return chunk.fields_size // chunk.size + 1

    def cut(self, size: int) -> tuple[Candidates, Candidates | None]:
        """The first candidates of about ``size`` bytes, at least one, and the others."""
        count = max(size // self._average, 1)
        if count >= len(self.positions):
            return self, None
        return Candidates(self.search, self.positions[:count]), Candidates(
            self.search, self.positions[count:]
        )


def keep_matching(candidates: Sequence[Candidates], pattern: TopicsPattern) -> None:
    """Match all candidates together, since each call costs, and keep in each search its matching ones."""
    many = [some for some in candidates if not some.are_few]
    if many:
        keep = pattern.match_column(
            pa.concat_arrays([some.search.chunk.forms.at(some.positions) for some in many])
        )
        matches = keep.to_numpy(zero_copy_only=False)
        for some, (begin, end) in zip(many, _bounds(many), strict=True):
            found = some.positions[matches[begin:end]]
            if len(found):
                some.search.keep(found)
    few = (some for some in candidates if some.are_few)
    for domain, group in groupby(few, attrgetter("domain")):
        _keep_few(list(group), pattern, len(domain) + 3)


def _keep_few(candidates: Sequence[Candidates], pattern: TopicsPattern, head: int) -> None:
    """Keep the matching rows of plain chunks, whose forms begin ``head`` bytes after their names do.

    Their fields, which are read for that, make up the answer, so their bytes and their CRC are kept too.
    """
    data, sizes = bytearray(), [0]
    for some in candidates:
        chunk = some.search.chunk
        joined, own_sizes = joined_fields(chunk.fields, chunk.field_offsets, some.positions)
        data += joined
        sizes += own_sizes
    fields = binary_column(pa.py_buffer(data), np.cumsum(sizes))
    keep = pattern.match_column(decode_fields(fields, skip=head))
    matches = None
    if keep.true_count < len(keep):
        matches = keep.to_numpy(zero_copy_only=False)
        fields = fields.filter(keep)
    body, offsets = _bytes_of(fields)
    text, edges = _bytes_of(decode_fields(fields, comma=True))
    last = 0
    for some, (begin, end) in zip(candidates, _bounds(candidates), strict=True):
        found = some.positions if matches is None else some.positions[matches[begin:end]]
        first, last = last, last + len(found)
        if len(found):
            names = bytes(text[edges[first] : edges[last]])
            rows = ChunkRows.of(found)
            own = bytes(body[offsets[first] : offsets[last]])
            rows.know(own, TextCrc(google_crc32c.value(names), len(names)))
            some.search.keep(found, rows)


def _bytes_of(column: pa.LargeBinaryArray | pa.LargeStringArray) -> tuple[memoryview, list[int]]:
    """The bytes of a column, and the offsets at which each value begins and the last ends."""
    data, offsets = column_data(column)
    return memoryview(data), offsets.tolist()


def _bounds(candidates: Sequence[Candidates]) -> list[tuple[int, int]]:
    """The range of each one's positions in the positions of all."""
    return list(pairwise(accumulate((len(some.positions) for some in candidates), initial=0)))


class RowsSearch:
    """The search of some rows of a chunk, which are matched one by one."""

    __slots__ = ("_average", "_chunk", "_direct", "_found", "_pattern", "_rows", "size")

    def __init__(self, chunk: Chunk, pattern: TopicsPattern, rows: ChunkRows, *, direct: bool) -> None:
        """``direct``: nothing is derived for the whole chunk."""
        self._chunk = chunk
        self._pattern = pattern
        self._rows = rows.array
        self._direct = direct
        self._average = chunk.fields_size // chunk.size + 1
        self.size = len(rows)
        self._found: list[tuple[int, Array]] = []

    def weight(self, low: int, high: int) -> int:
        """Bytes of rows ``low`` to ``high``, about."""
        return (high - low) * self._average

    def until(self, low: int, size: int) -> int:
        """The place about ``size`` bytes after ``low``; at least ``low + 1``."""
        return min(low + max(size // self._average, 1), self.size)

    def run(self, low: int, high: int) -> list[Candidates]:
        """Search rows ``low`` to ``high``, in any thread."""
        rows, chunk = self._rows[low:high], self._chunk
        if self._direct or not chunk.is_searchable:
            forms = chunk.some_forms(rows)
        else:
            forms = chunk.forms.at(chunk.forms.places(rows))
        keep = self._pattern.match_column(forms)
        self._found.append((low, rows[keep.to_numpy(zero_copy_only=False)]))
        return []

    def result(self) -> ChunkRows:
        """The rows that match, after all were searched."""
        found = [rows for _, rows in sorted(self._found, key=itemgetter(0))]
        return ChunkRows.of(np.concatenate(found) if found else np.zeros(0, np.int32))


def useful_literals(namespace: NamespaceName, pattern: TopicsPattern) -> dict[bytes, int]:
    """Required substrings that not every name of the namespace has anyway, longest first, for searches to share."""
    own = f"{namespace}/"
    everywhere = f"{NON_PERSISTENT}://{own}"  # has the other domain, too
    rests = (literal.removeprefix(own) for literal in pattern.required)
    useful = (rest.encode() for rest in rests if rest not in everywhere)
    return dict.fromkeys([rest for rest in useful if len(rest) >= _SHORTEST][:_MOST_LITERALS], 0)


def useful_clues(namespace: NamespaceName, pattern: TopicsPattern) -> Clues:
    """Required substrings, and a run of byte classes unless one of them is long, in the order of search."""
    literals = useful_literals(namespace, pattern)
    clues: Clues = {literal: 0 for literal in literals if len(literal) >= _LONG}
    run = () if pattern.plan == "literal" else class_run(pattern.text.removeprefix(f"{namespace}/"))
    if run:
        clues[ClassRun(run)] = 0
    return clues | literals
