"""The patterns of authorization rules: a text in which ``*`` stands for any text."""

from __future__ import annotations

__all__ = ["RulePattern"]


class RulePattern:
    """One pattern. Matching takes linear time, whatever a client calls itself; every other character is itself."""

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
        """Whether all that another pattern matches is matched; ``False`` where this is not clear."""
        return self.matches(other)  # a `*` of the other is a text that only a `*` of this one matches
