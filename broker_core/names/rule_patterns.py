"""The patterns of authorization rules and quotas: a text in which ``*`` stands for any text, and in patterns of topics
``?`` for one character.

A set of prefixes says which one a name has, and which ones a range of names may have.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

__all__ = ["NamespacePatterns", "Prefixes", "RulePattern", "covers_topics", "topic_expression"]


class RulePattern:
    """One pattern. Matching takes linear time for any name; every other character stands for itself."""

    __slots__ = ("_begin", "_end", "_least", "_middle", "_whole")

    def __init__(self, pattern: str) -> None:
        begin, *rest = pattern.split("*")
        self._whole = pattern if not rest else None
        self._begin = begin
        self._middle = tuple(filter(None, rest[:-1]))
        self._end = rest[-1] if rest else ""
        self._least = len(self._begin) + len(self._end)

    def matches(self, text: str) -> bool:
        if self._whole is not None:
            return text == self._whole
        if len(text) < self._least or not text.startswith(self._begin) or not text.endswith(self._end):
            return False
        at, end = len(self._begin), len(text) - len(self._end)
        for part in self._middle:
            found = text.find(part, at, end)
            if found < 0:
                return False
            at = found + len(part)
        return True

    def covers(self, other: str) -> bool:
        """Whether this pattern matches everything that another one matches; ``False`` if that is not clear."""
        return self.matches(other)  # a `*` of the other is a text that only a `*` of this one matches

    def overlap(self, other: RulePattern) -> str | None:
        """A pattern of texts that two patterns with ``*`` both match, as specific as possible.

        ``None`` if there is no such text, or one of them has no ``*``.
        """
        begin = max(self._begin, other._begin, key=len)
        end = max(self._end, other._end, key=len)
        if self._whole is not None or other._whole is not None:
            return None
        if not (begin.startswith(self._begin) and begin.startswith(other._begin)):
            return None
        if not (end.endswith(self._end) and end.endswith(other._end)):
            return None
        return "*".join((begin, *self._middle, *other._middle, end))


class NamespacePatterns:
    """Patterns of ``TENANT/NAMESPACE``, each part by itself; ``*`` alone also matches what belongs to no namespace."""

    __slots__ = ("_pairs",)

    def __init__(self, patterns: Iterable[str]) -> None:
        patterns = tuple(patterns)
        self._pairs = (
            None
            if "*" in patterns
            else tuple(
                (RulePattern(tenant), RulePattern(name))
                for tenant, _, name in (pattern.partition("/") for pattern in patterns)
            )
        )

    def matches(self, namespace: str) -> bool:
        if self._pairs is None:
            return True
        tenant, _, name = namespace.partition("/")
        return any(of_tenant.matches(tenant) and of_name.matches(name) for of_tenant, of_name in self._pairs)


class Prefixes:
    """A set of prefixes, as UTF-8; immutable.

    A prefix that another one covers is left out: so a name can have at most one prefix, the greatest one that is not
    greater than the name.
    """

    __slots__ = ("_sorted",)

    def __init__(self, prefixes: Iterable[str]) -> None:
        kept: list[bytes] = []
        for prefix in sorted(prefix.encode() for prefix in prefixes):
            if not kept or not prefix.startswith(kept[-1]):
                kept.append(prefix)
        self._sorted = kept

    def __bool__(self) -> bool:
        return bool(self._sorted)

    def cover(self, name: bytes) -> bool:
        """Whether a name has one of the prefixes."""
        place = bisect_right(self._sorted, name) - 1
        return place >= 0 and name.startswith(self._sorted[place])

    def between(self, first: bytes, last: bytes) -> Sequence[bytes]:
        """The prefixes that a name from ``first`` to ``last`` may have, in order."""
        start = bisect_right(self._sorted, first)
        if self.cover(first):
            start -= 1
        return self._sorted[start : bisect_right(self._sorted, last)]


def topic_expression(pattern: str, one_character: str = ".") -> str:
    """The regular expression, of RE2 and of :mod:`re`, for the whole names that a pattern of topics matches."""
    wild = {"*": ".*", "?": one_character}
    return "".join(wild.get(each) or re.escape(each) for each in pattern)


def covers_topics(wide: Iterable[str], pattern: str) -> bool:
    """Whether one of some patterns of topics matches all that another one does; ``False`` if this is not clear."""
    # A `*` of the other may stand for no character at all, which a `?` does not match.
    return any(re.fullmatch(topic_expression(one, "[^*]"), pattern, re.DOTALL) for one in wide)
