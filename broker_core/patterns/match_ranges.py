"""The ranges of text that contain every match of a pattern, found by RE2."""

from __future__ import annotations

from typing import Final

import re2

from broker_core.patterns.literals import PatternShape
from broker_core.patterns.re2_options import MAX_PROGRAM, anchored_text, engine_options

__all__ = ["match_ranges"]

# For a program that is known to be small: with more memory the range is found for more patterns.
_MEMORY_FOR_RANGE: Final = 2 * 1024 * 1024
_RANGE_LENGTH: Final = 512
_BEFORE_ALL: Final = b"\x01"  # sorts before every name, which has no NUL
_LAST_CHARACTER: Final = "\U0010ffff".encode()
_OPTIONS_FOR_RANGE: Final = engine_options(_MEMORY_FOR_RANGE)


def match_ranges(anchored: str, shape: PatternShape, size: int) -> tuple[tuple[bytes, bytes], ...]:
    """The bounds of the alternatives if there are some, else of the whole pattern."""
    if shape.alternatives and size * len(shape.alternatives) <= MAX_PROGRAM:
        try:
            return _merged([_range(anchored_text(part)) for part in shape.alternatives])
        except re2.error:
            pass  # a part that is not valid alone: the bounds of the whole pattern hold too
    return _merged([_range(anchored)])


def _range(anchored: str) -> tuple[bytes, bytes] | None:
    """The half-open bounds of an anchored pattern's matches, or ``None`` if RE2 gives none."""
    engine = re2.compile(anchored, _OPTIONS_FOR_RANGE)
    try:
        low, high = engine.possiblematchrange(_RANGE_LENGTH)
    except re2.error:
        return None
    if low <= _BEFORE_ALL and high >= _LAST_CHARACTER:
        return None
    return bytes(low), bytes(high) + b"\0"


def _merged(ranges: list[tuple[bytes, bytes] | None]) -> tuple[tuple[bytes, bytes], ...]:
    """Sorted, disjoint bounds; empty if one of the ranges is unbounded, and so is their union."""
    merged: list[tuple[bytes, bytes]] = []
    for bounds in sorted(bounds for bounds in ranges if bounds is not None):
        if merged and bounds[0] <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], bounds[1]))
        else:
            merged.append(bounds)
    return () if None in ranges else tuple(merged)
