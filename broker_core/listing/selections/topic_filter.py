"""Filters of topics by patterns of their local names, as in rules: for one name, and for a listing's columns.

The rows of a chunk that a filter leaves are remembered by the chunk, in memory that is counted: so a changed listing
costs the chunks that changed.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import pyarrow.compute as pc
import re2

from broker_core.listing.chunks.chunk import Chunk
from broker_core.listing.chunks.chunk_rows import ChunkRows, Remembered
from broker_core.listing.listing import Selection, data_of, part_of, selection_of
from broker_core.listing.listing_hash import TextCrc
from broker_core.listing.listing_part import ListingPart
from broker_core.names import Array, Prefixes, topic_expression

__all__ = ["TopicFilter", "TopicPatterns", "filtered"]

_WILD: Final = re.compile(r"[*?]")
#: So many patterns without a literal beginning are searched together.
_TOGETHER: Final = 32


class TopicPatterns:
    """A set of patterns; immutable. ``texts`` are the patterns, each once, sorted."""

    __slots__ = ("_compiled", "_literals", "_others", "_prefixes", "everything", "texts")

    def __init__(self, patterns: Iterable[str]) -> None:
        self.texts = tuple(sorted({re.sub(r"\*+", "*", text) for text in patterns}))
        #: Whether every name matches.
        self.everything = "*" in self.texts
        literals, prefixes, others = [], [], defaultdict[str, list[str]](list)
        for text in self.texts:
            beginning = _WILD.split(text, maxsplit=1)[0]
            if beginning == text:
                literals.append(text)
            elif text == f"{beginning}*":
                prefixes.append(beginning)
            else:
                others[beginning].append(topic_expression(text))
        self._literals = [text.encode() for text in literals]
        self._prefixes = Prefixes(prefixes)
        #: Expressions for whole names, by the bytes before the first ``*`` or ``?``.
        self._others = [
            (beginning.encode(), "|".join(some))
            for beginning, regexes in others.items()
            for some in (regexes[low : low + _TOGETHER] for low in range(0, len(regexes), _TOGETHER))
        ]
        self._compiled: list[Any] | None = None

    def __bool__(self) -> bool:
        return bool(self.texts)

    def matches(self, name: str) -> bool:
        """Whether a local name matches one of the patterns."""
        text = name.encode()
        if self.everything or _is_in(self._literals, text) or self._prefixes.cover(text):
            return True
        if self._compiled is None:
            self._compiled = [re2.compile(f"(?s)(?:{regex})") for _, regex in self._others]
        return any(
            text.startswith(beginning) and compiled.fullmatch(name) is not None
            for (beginning, _), compiled in zip(self._others, self._compiled, strict=True)
        )

    def mark(self, chunk: Chunk, marks: Array, *, value: bool) -> None:
        """Put ``value`` at the positions of the chunk's forms whose names match."""
        if self.everything:
            marks[:] = value
            return
        head = f"{chunk.namespace}/".encode()
        least, most = (bound[len(head) :] for bound in chunk.form_bounds)
        forms = chunk.forms
        high = 0
        for prefix in self._prefixes.between(least, most):  # in order, and none begins with another
            low, high = forms.range(head + prefix, _after(head + prefix), high)
            marks[low:high] = value
        literals = self._literals
        for name in literals[bisect_left(literals, least) : bisect_right(literals, most)]:
            low, high = forms.range(head + name, head + name + b"\0")
            marks[low:high] = value
        for beginning, regex in self._others:
            low, high = chunk.form_range(head + beginning, _after(head + beginning))
            if low < high:
                whole = rf"(?s)\A{re2.escape(head.decode())}(?:{regex})\z"
                found = pc.match_substring_regex(forms.between(low, high), whole)
                marks[low:high][found.to_numpy(zero_copy_only=False)] = value


class TopicFilter:
    """A filter by pairs of pattern sets; immutable.

    A name has to match the first and not the second set of each pair; ``None`` in the first place matches any name.
    Filters with equal patterns have equal keys.
    """

    __slots__ = ("_pairs", "key")

    def __init__(self, pairs: Sequence[tuple[TopicPatterns | None, TopicPatterns]]) -> None:
        self._pairs = tuple(pairs)
        digest = blake2b(digest_size=16)
        for allowed, denied in self._pairs:
            for patterns in (allowed, denied):
                digest.update(
                    repr(None if patterns is None else patterns.texts).encode("utf-8", "surrogatepass")
                )
        self.key = Remembered.FILTERED, digest.digest()

    def shows(self, name: str) -> bool:
        """Whether a local name (without partition) is left."""
        return all(
            (allowed is None or allowed.matches(name)) and not denied.matches(name)
            for allowed, denied in self._pairs
        )

    def rows_of(self, chunk: Chunk) -> ChunkRows:
        """The rows of a chunk that are left."""
        known: ChunkRows | _KeptRows | None = chunk.memo.get(self.key)
        if isinstance(known, ChunkRows):
            return known
        if known is None:
            marks = self._marks(chunk)
            rows = ChunkRows.of(np.flatnonzero(marks))
            if rows.rows is None:
                chunk.memo.put(self.key, rows)
                return rows
            known = _KeptRows(np.packbits(marks))
            chunk.memo.put(self.key, known, int(known.packed.nbytes))
            return _FilteredRows.kept(known, rows.rows)
        return _FilteredRows.kept(
            known, np.flatnonzero(np.unpackbits(known.packed, count=chunk.size)).astype(np.int32)
        )

    def _marks(self, chunk: Chunk) -> Array:
        """Whether each row is left, as a mask."""
        marks = np.ones(chunk.size, np.bool_)
        for number, (allowed, denied) in enumerate(self._pairs):
            some = marks if not number else np.ones(chunk.size, np.bool_)
            if allowed is not None:
                some[:] = False
                allowed.mark(chunk, some, value=True)
            denied.mark(chunk, some, value=False)
            marks &= some
        forms = chunk.forms
        if forms.is_identity:
            return marks
        by_row = np.empty_like(marks)
        by_row[forms.rows(np.arange(chunk.size))] = marks
        return by_row


class _KeptRows:
    """The result of a filter that a chunk remembers: a bit for each row, and the CRC of the names once it is known."""

    __slots__ = ("packed", "text")

    def __init__(self, packed: Array) -> None:
        self.packed = packed
        self.text: TextCrc | None = None


class _FilteredRows(ChunkRows):
    """Rows that store their CRC in the remembered result, so that the names are hashed once."""

    __slots__ = ("_kept",)
    _kept: _KeptRows

    @classmethod
    def kept(cls, kept: _KeptRows, rows: Array) -> _FilteredRows:
        made = cls(int(rows[0]), int(rows[-1]) + 1, rows)
        made.known_text, made._kept = kept.text, kept
        return made

    def text(self, chunk: Any) -> TextCrc:
        text = self._kept.text = super().text(chunk)
        return text


def filtered(selection: Selection, topics: TopicFilter) -> Selection:
    """The topics of a selection that a filter leaves."""
    listing = selection.listing
    data, part = data_of(listing), part_of(selection)
    pieces: list[tuple[int, ChunkRows]] = []
    for number, rows in part.pieces_in(data):
        chunk = data.chunks[number]
        left = topics.rows_of(chunk)
        if len(left) and len(rows) != chunk.size:
            is_left = np.zeros(chunk.size, np.bool_)
            is_left[left.array] = True
            left = rows.at(np.flatnonzero(is_left[rows.array]))
        if len(left):
            pieces.append((number, left))
    found = ListingPart.of_pieces(tuple(pieces), data, part.text)
    return selection if len(found) == len(part) else selection_of(listing, found)


def _is_in(values: Sequence[bytes], value: bytes) -> bool:
    place = bisect_left(values, value)
    return place < len(values) and values[place] == value


def _after(prefix: bytes) -> bytes:
    """The least bytes after all UTF-8 that begins with ``prefix``, which is not empty and has no byte 0xFF."""
    return prefix[:-1] + bytes([prefix[-1] + 1])
