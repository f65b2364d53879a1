"""Runs of byte classes that every match of a pattern has: ``[01][23]-[w-z]``.

For patterns that RE2 *accepts*. Any syntax that is not understood here ends a run: a wrong claim would lose topics.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Final

from broker_core.patterns.literals import top_level
from broker_core.patterns.tokens import PatternToken, TokenKind, tokens

__all__ = ["class_run"]

#: The longest run that is worth a search: each byte costs a pass over memory.
LONGEST: Final = 4
#: Bytes of a pattern's runs that are considered, so that a pattern of a thousand classes costs no more than others.
_MOST: Final = 64
#: Each byte of a class is assumed to have a chance of a tenth: names are digits and words, as a rule.
_BYTES: Final = 10
#: A run that begins at a byte of a name by chance more often than this is of no help.
_CHANCE: Final = 0.02
_CLASS: Final = re.compile(r"\[(?:[A-Za-z0-9_](?:-[A-Za-z0-9_])?)+\]", re.ASCII)
_ITEMS: Final = re.compile(r"(.)(?:-(.))?")
_EXACTLY: Final = re.compile(r"\{([1-9])\}", re.ASCII)
_DIGITS: Final = frozenset(b"0123456789")

_Bytes = frozenset[int]


@lru_cache(maxsize=1024)  # called for each chunk, and for each repeated search of a pattern
def class_run(text: str) -> tuple[_Bytes, ...]:
    """The run of byte classes in every match of a pattern; if there are several, the least likely one by chance.

    Empty if none is unlikely enough, or if the run is a literal text.
    """
    top = top_level(list(tokens(text)))
    if top is None or any(token.kind is TokenKind.ALTERNATIVE for token in top):
        return ()
    every = [
        run[begin : begin + LONGEST] for run in _runs(top) for begin in range(max(len(run) - LONGEST, 0) + 1)
    ]
    best = min((run for run in every if any(len(some) > 1 for some in run)), key=_chance, default=[])
    return tuple(best) if best and _chance(best) <= _CHANCE else ()


def _chance(run: Sequence[_Bytes]) -> float:
    return prod(min(len(some) / _BYTES, 1.0) for some in run)


def _runs(top: Sequence[PatternToken]) -> list[list[_Bytes]]:
    runs: list[list[_Bytes]] = [[]]
    left = _MOST
    for index, token in enumerate(top):
        if left <= 0:
            break
        if token.kind is TokenKind.REPEAT:
            continue
        following = top[index + 1] if index + 1 < len(top) else None
        times = 1
        if following is not None and following.kind is TokenKind.REPEAT:
            exactly = _EXACTLY.fullmatch(following.text)
            times = int(exactly[1]) if exactly else 0
        own = _bytes_of(token) if times else None
        if own is None:
            runs.append([])
        else:
            runs[-1] += (own * times)[:left]
            left -= len(own) * times
    return runs


def _bytes_of(token: PatternToken) -> list[_Bytes] | None:
    """The classes of a token's bytes; ``None`` if they are not certain."""
    if token.kind is TokenKind.LITERAL:
        return [frozenset((byte,)) for byte in token.text.encode()]
    if token.kind is TokenKind.ESCAPE and token.text == "d":
        return [_DIGITS]
    if token.kind is TokenKind.CLASS and _CLASS.fullmatch(token.text):
        found: set[int] = set()
        for first, last in _ITEMS.findall(token.text[1:-1]):
            found.update(range(ord(first), ord(last or first) + 1))
        return [frozenset(found)]
    return None
