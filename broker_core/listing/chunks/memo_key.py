"""Keys of the results that listings and chunks remember. The key of a pattern's rows is its text, which clients choose.

So every other key has a :class:`Remembered` in it, which no text is equal to.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from enum import Enum, auto
from typing import TypeAlias

__all__ = ["MemoKey", "Remembered", "properties_key"]


class Remembered(Enum):
    """Kinds of remembered results, besides the rows of patterns."""

    PROPERTIES = auto()
    HASH = auto()
    CHECKED = auto()
    PLACES = auto()
    SPLICED = auto()
    FILTERED = auto()


#: The text of a pattern, or the kind of a result and what it belongs to.
MemoKey: TypeAlias = "str | tuple[Remembered, Hashable]"


def properties_key(pairs: Mapping[str, str]) -> tuple[Remembered, Hashable]:
    """The key of the rows that have the given properties."""
    return Remembered.PROPERTIES, frozenset(pairs.items())
