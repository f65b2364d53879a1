"""Telling a malformed pattern from one that only RE2 refuses, and another engine (Java's, say) may know."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from broker_core.patterns.tokens import Kind, Token, tokens

__all__ = ["Malformed", "malformation", "malformed_part"]

_UNREPEATABLE = (Kind.OPEN, Kind.ALTERNATIVE, Kind.FLAGS)


class Malformed(NamedTuple):
    """What is wrong with a pattern, and the characters of it, ``[start, end)``, that are."""

    why: str
    start: int
    end: int


_ANY_BYTE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\C")  # an escape, not a backslash and a letter


def malformation(text: str) -> str | None:
    r"""Why a pattern is no regular expression in any dialect, or ``None`` where some engine may accept it.

    Broken are parentheses and brackets that do not balance, a trailing backslash, a repetition of nothing or of a
    repetition (``a**``), and ``\C``. Everything else is some dialect's: lookaround, possessive ``a++``, comments,
    ``\p{Alpha}``, nested classes. Where dialects read a text differently, it is broken only if it is in each reading.
    """
    found = malformed_part(text)
    return None if found is None else found.why


def malformed_part(text: str) -> Malformed | None:
    """What :func:`malformation` says, and of which part of the pattern."""
    plain = _malformed(text, nested_classes=False)
    return plain if plain is None or _malformed(text, nested_classes=True) is not None else None


def _malformed(text: str, *, nested_classes: bool) -> Malformed | None:
    opened: list[Token] = []
    repeatable = repeated = False
    for token in tokens(text, nested_classes=nested_classes):
        kind = token.kind
        if kind is Kind.BROKEN:
            return Malformed(token.text, token.start, token.end)
        if kind is Kind.ANY_BYTE or (kind is Kind.CLASS and _ANY_BYTE.search(token.text)):
            return Malformed("\\C is not allowed: it matches bytes, not characters", token.start, token.end)
        if kind in (Kind.FLAGS, Kind.OPEN) and _ignores_blanks(token.text):
            return None  # comments from here on: nothing can be said of what looks like syntax in them
        if kind is Kind.COMMENT:
            continue
        if kind is Kind.REPEAT:
            # Some dialects read a count with nothing to repeat as plain text, and some let counts follow each other.
            counted = token.text.startswith("{")
            if repeated and not counted:
                return Malformed(f"a stacked repetition operator {token.text!r}", token.start, token.end)
            if not repeatable and not repeated and not counted:
                return Malformed(f"nothing to repeat before {token.text!r}", token.start, token.end)
            repeatable, repeated = False, True
            continue
        if kind is Kind.OPEN:
            opened.append(token)
        elif kind is Kind.CLOSE:
            if not opened:
                return Malformed("an unmatched ')'", token.start, token.end)
            opened.pop()
        # "(?" alone begins what only some dialect knows, as (?+1): what follows is no repetition then.
        repeatable = kind not in _UNREPEATABLE or token.text == "(?"
        repeated = False
    return Malformed("a missing ')'", opened[-1].start, opened[-1].end) if opened else None


def _ignores_blanks(opening: str) -> bool:
    """Whether ``(?x)``, ``(?ix-s:`` or the like switches comments on."""
    if not opening.startswith("(?") or not opening.endswith((")", ":")):
        return False
    return "x" in opening[2:-1].partition("-")[0]
