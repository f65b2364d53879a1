"""What is asked of the database for a question: which rows can be in the answer, and whether RE2 has to finish it.

The core has compiled the pattern and says what every match looks like. That is about ``tenant/namespace/topic``, while
the column ``matched`` holds the last part alone (without partition suffix), so bounds and substrings are taken apart
at the namespace here. A plan may let too many rows through, never too few: what is not certain becomes no condition,
and RE2 decides in the end. PostgreSQL's own regular expressions are never used: they are another dialect, and they
backtrack.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from broker_core.names import DOMAINS, Mode, NamespaceName
from broker_core.patterns import TopicsPattern

__all__ = ["KINDS", "Bounds", "RowFilter", "local_bounds", "make_row_filter"]

#: How rows are found: by properties or substrings, by ranges of names, or all of a namespace.
KINDS: Final = ("search", "range", "namespace")

#: Half-open bounds of ``matched`` by its UTF-8 bytes; ``None`` is no upper bound.
Bounds = tuple[str, str | None]

_NO_PROPERTIES: Final[Mapping[str, str]] = MappingProxyType({})
#: Substrings that are looked for in the index; each costs a look at its list of rows.
_MOST_SUBSTRINGS: Final = 4
#: A trigram index knows three characters and more.
_TRIGRAM: Final = 3
#: So many trigrams of letters and digits find few rows without those of what is around them.
_ENOUGH_TRIGRAMS: Final = 3
_WORD: Final = re.compile(r"[^\W_]+")
_LAST: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class RowFilter:
    """Rows of one namespace that can be in the answer.

    ``bounds`` are disjoint ranges of ``matched``, empty for no bound; ``likes`` are LIKE patterns that all hold of it.
    ``finish`` says that RE2 still has to look at each name. ``impossible``: no name at all can match.
    """

    namespace: str
    domains: tuple[str, ...]
    bounds: tuple[Bounds, ...] = ()
    like_patterns: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=lambda: _NO_PROPERTIES)
    needs_re2: bool = False
    matches_nothing: bool = False

    @property
    def kind(self) -> str:
        """How rows are found, one of :data:`KINDS`: by properties or substrings, by ranges, or all of a namespace."""
        if self.properties or self.like_patterns:
            return "search"
        return "range" if self.bounds else "namespace"


def make_row_filter(
    namespace: NamespaceName,
    mode: Mode,
    pattern: TopicsPattern | None = None,
    properties: Mapping[str, str] | None = None,
    *,
    trigrams: bool = False,
) -> RowFilter:
    """The plan for a question. ``pattern`` is ``None`` also where RE2 does not support it: all names are listed then.

    ``properties`` are those that select; ``trigrams`` says that there is an index to look substrings up in.
    """
    domains = tuple(domain for domain in sorted(DOMAINS) if mode.lists(domain))
    name = str(namespace)
    pairs = MappingProxyType(dict(properties)) if properties else _NO_PROPERTIES
    # PostgreSQL's texts have no NUL, so that no topic has such a property.
    matches_nothing = any("\0" in text for pair in pairs.items() for text in pair)
    if pattern is None or pattern.match_all:
        return RowFilter(name, domains, properties=pairs, matches_nothing=matches_nothing)
    bounds = local_bounds(pattern, name)
    like_patterns = _like_patterns(pattern, name)
    if matches_nothing or bounds is None or like_patterns is None:
        return RowFilter(name, domains, properties=pairs, matches_nothing=True)
    exact = (pattern.literal is not None or pattern.exact_range) and "\0" not in pattern.text
    # How a match begins the bounds say already, where there are some.
    useful = (like for like in like_patterns if trigrams and not (bounds and like[0] != "%"))
    return RowFilter(
        name,
        domains,
        bounds,
        () if exact else tuple(filter(None, map(_indexable, useful)))[:_MOST_SUBSTRINGS],
        pairs,
        needs_re2=not exact,
    )


def local_bounds(pattern: TopicsPattern, namespace: str) -> tuple[Bounds, ...] | None:
    """The ranges of a pattern, of the part behind ``namespace/``: ``()`` where there is no bound, ``None`` where
    nothing of this namespace is in any of them.
    """
    if not pattern.ranges:
        return ()
    front = f"{namespace}/".encode()
    found: list[Bounds] = []
    for low, high in pattern.ranges:
        if low.startswith(front):
            first = low[len(front) :]
        elif low < front:
            first = b""
        else:
            continue
        if high.startswith(front):
            last: bytes | None = high[len(front) :]
        elif high > front:
            last = None
        else:
            continue
        bounds = _as_text(first, last)
        if bounds is not None:
            found.append(bounds)
    if not found:
        return None
    merged = _merged(found)
    return () if merged == (("", None),) else merged


def _as_text(low: bytes, high: bytes | None) -> Bounds | None:
    """Bounds as PostgreSQL can compare with: valid texts without NUL; wider where these bytes are none."""
    first = _valid_head(low.partition(b"\0")[0])
    if high is None:
        return first, None
    # A text has no NUL, so that it is below "x\0..." if it is "x" at most, and so below "x\1".
    head, nul, _ = high.partition(b"\0")
    text = _valid_head(head)
    if len(text.encode()) < len(head):
        last = _next_prefix(text)
    elif nul:
        last = text + "\1"
    else:
        last = text
    return None if last is not None and last <= first and last.encode() <= first.encode() else (first, last)


def _valid_head(text: bytes) -> str:
    """The longest part from the begin on that is valid UTF-8; it sorts before all that begin so."""
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        return text[: error.start].decode()


def _next_prefix(head: str) -> str | None:
    """The first text behind all that begin with ``head``; ``None`` where there is none."""
    while head:
        code = ord(head[-1]) + 1
        if code in _SURROGATES:
            code = _SURROGATES.stop
        if code <= _LAST:
            return head[:-1] + chr(code)
        head = head[:-1]
    return None


def _merged(bounds: list[Bounds]) -> tuple[Bounds, ...]:
    """Sorted and disjoint: made wider they may overlap."""
    merged: list[Bounds] = []
    for low, high in sorted(bounds, key=lambda each: each[0].encode()):
        if merged:
            end = merged[-1][1]
            if end is None:
                break
            if low.encode() <= end.encode():
                wider = None if high is None else max(end, high, key=str.encode)
                merged[-1] = (merged[-1][0], wider)
                continue
        merged.append((low, high))
    return tuple(merged)


def _like_patterns(pattern: TopicsPattern, namespace: str) -> list[str] | None:
    """The required substrings as LIKE patterns of the local name; ``None`` where one cannot be in this namespace.

    Where a substring may lie in the namespace's own name, it says nothing about the local one.
    """
    front = f"{namespace}/"
    found: list[str] = []
    for literal in pattern.required:
        head, slash, rest = literal.rpartition("/")
        if "\0" in literal:
            return None
        if literal in front:
            continue
        if not slash:
            found.append(f"%{_escaped(literal)}%")
        elif front.endswith(f"{head}/"):
            # What is behind the last slash is the begin of the local name, unless the namespace has it too.
            if rest:
                found.append(f"{_escaped(rest)}%")
        else:
            return None
    return found


def _escaped(literal: str) -> str:
    return literal.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _indexable(like: str) -> str | None:
    """What the index is asked for: the runs of letters and digits alone, where these have trigrams enough.

    ``None`` where none of them has one: then the index finds nothing.

    Where a run ends or begins at another character, its trigrams have spaces ("  x", " x0", "23 "). Those are in a good
    part of all names, and to find its place in such a long list takes longer than to compare the names that are found.
    """
    words = [word for word in _WORD.findall(like) if len(word) >= _TRIGRAM]
    if not words:
        return None
    if sum(len(word) - _TRIGRAM + 1 for word in words) < _ENOUGH_TRIGRAMS:
        return like
    return f"%{'%'.join(words)}%"
