"""Conditions on the rows of a listing: the rows that the database sends, and whether RE2 has to match their names.

The core's compiled pattern describes ``tenant/namespace/topic``. The column ``matched`` has only the last part, without
a partition suffix, so bounds and substrings are split at the namespace here. A filter may let too many rows pass, never
too few: a condition that is not certain is left out, and RE2 decides. PostgreSQL's regular expressions are not used:
they are another dialect, and they backtrack (docs/explanation/postgres.md).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from broker_core.names import DOMAINS, Mode, NamespaceName
from broker_core.patterns import TopicsPattern

__all__ = ["KINDS", "Bounds", "RowConditions", "local_bounds", "make_row_conditions"]

#: How rows are found: by properties or substrings, by ranges of names, or as a whole namespace.
KINDS: Final = ("search", "range", "namespace")

#: A half-open range of ``matched`` by its UTF-8 bytes; ``None``: no upper bound.
Bounds = tuple[str, str | None]

_NO_PROPERTIES: Final[Mapping[str, str]] = MappingProxyType({})
#: Substrings that are looked up in the index; each costs a scan of its list of rows.
_MOST_SUBSTRINGS: Final = 4
#: Characters of a trigram.
_TRIGRAM: Final = 3
#: With so many trigrams of letters and digits, the characters around them narrow the search no further.
_ENOUGH_TRIGRAMS: Final = 3
_WORD: Final = re.compile(r"[^\W_]+")
_LAST: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class RowConditions:
    """The rows of one namespace that can be in an answer.

    ``bounds`` are disjoint ranges of ``matched``; empty: no bounds. ``like_patterns`` are LIKE patterns that all have
    to match. ``needs_re2``: RE2 has to match each name. ``matches_nothing``: no name can match.
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
        """The way in which rows are found, one of :data:`KINDS`: by properties or substrings, by ranges, or as a whole
        namespace.
        """
        if self.properties or self.like_patterns:
            return "search"
        return "range" if self.bounds else "namespace"


def make_row_conditions(
    namespace: NamespaceName,
    mode: Mode,
    pattern: TopicsPattern | None = None,
    properties: Mapping[str, str] | None = None,
    *,
    trigrams: bool = False,
) -> RowConditions:
    """The filter for a question. ``pattern`` is also ``None`` if RE2 does not support it; then all names are listed.

    ``properties`` are the selecting ones. ``trigrams``: there is an index of substrings.
    """
    domains = tuple(domain for domain in sorted(DOMAINS) if mode.lists(domain))
    name = str(namespace)
    pairs = MappingProxyType(dict(properties)) if properties else _NO_PROPERTIES
    # PostgreSQL's texts have no NUL, so no topic has such a property.
    matches_nothing = any("\0" in text for pair in pairs.items() for text in pair)
    if pattern is None or pattern.match_all:
        return RowConditions(name, domains, properties=pairs, matches_nothing=matches_nothing)
    bounds = local_bounds(pattern, name)
    like_patterns = _like_patterns(pattern, name)
    if matches_nothing or bounds is None or like_patterns is None:
        return RowConditions(name, domains, properties=pairs, matches_nothing=True)
    exact = (pattern.literal is not None or pattern.exact_range) and "\0" not in pattern.text
    # A pattern of the beginning adds nothing to bounds.
    useful = (like for like in like_patterns if trigrams and not (bounds and like[0] != "%"))
    return RowConditions(
        name,
        domains,
        bounds,
        () if exact else tuple(filter(None, map(_indexable, useful)))[:_MOST_SUBSTRINGS],
        pairs,
        needs_re2=not exact,
    )


def local_bounds(pattern: TopicsPattern, namespace: str) -> tuple[Bounds, ...] | None:
    """The ranges of a pattern, cut to the text after ``namespace/``: ``()`` without bounds, ``None`` if none of the
    ranges is in this namespace.
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
    """A range whose bounds are valid texts without NUL, widened if the bytes are not."""
    first = _valid_head(low.partition(b"\0")[0])
    if high is None:
        return first, None
    # Texts have no NUL: a text below "x\0..." is "x" at most, and so below "x\1".
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
    """The longest valid UTF-8 prefix. It sorts before everything that begins with it."""
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        return text[: error.start].decode()


def _next_prefix(head: str) -> str | None:
    """The first text after all that begin with ``head``; ``None`` if there is none."""
    while head:
        code = ord(head[-1]) + 1
        if code in _SURROGATES:
            code = _SURROGATES.stop
        if code <= _LAST:
            return head[:-1] + chr(code)
        head = head[:-1]
    return None


def _merged(bounds: list[Bounds]) -> tuple[Bounds, ...]:
    """Sort and merge ranges, which may overlap after widening."""
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
    """The pattern's required substrings as LIKE patterns of the local name; ``None`` if one cannot be in the namespace.

    A substring of the namespace's own name says nothing about the local name.
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
            # The part after the last slash begins the local name.
            if rest:
                found.append(f"{_escaped(rest)}%")
        else:
            return None
    return found


def _escaped(literal: str) -> str:
    return literal.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _indexable(like: str) -> str | None:
    """A LIKE pattern of the words (letters and digits) of another one, if they have enough trigrams.

    ``None`` if no word has a trigram: the index is of no use then.

    At the edge of a word, trigrams contain spaces ("  x", " x0", "23 "). Many names have these, and searching such a
    long list takes longer than comparing the names that the other trigrams find.
    """
    words = [word for word in _WORD.findall(like) if len(word) >= _TRIGRAM]
    if not words:
        return None
    if sum(len(word) - _TRIGRAM + 1 for word in words) < _ENOUGH_TRIGRAMS:
        return like
    return f"%{'%'.join(words)}%"
