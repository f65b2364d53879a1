"""Malformed patterns, as distinct from ones that only RE2 refuses, and another engine (Java's, say) may accept."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from broker_core.patterns.pattern_text import PatternToken, TokenKind, tokens

__all__ = ["Malformed", "malformation", "malformed_part"]

_UNREPEATABLE = (TokenKind.OPEN, TokenKind.ALTERNATIVE, TokenKind.FLAGS)


class Malformed(NamedTuple):
    """The fault of a pattern, and the characters ``[start, end)`` that have it."""

    why: str
    start: int
    end: int


_ANY_BYTE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\C")  # an escape, not a backslash and a letter


def malformation(text: str) -> str | None:
    r"""Why a pattern is not a regular expression in any dialect, or ``None`` if some engine may accept it.

    Broken are parentheses and brackets that do not balance, a trailing backslash, a repetition of nothing or of a
    repetition (``a**``), and ``\C``. Everything else belongs to some dialect: lookaround, possessive ``a++``, comments,
    ``\p{Alpha}``, nested classes. If dialects read a text differently, it is broken only if every reading is.
    """
    found = malformed_part(text)
    return None if found is None else found.why


def malformed_part(text: str) -> Malformed | None:
    """The fault that :func:`malformation` finds, with the part of the pattern that has it."""
    plain = _malformed(text, nested_classes=False)
    return plain if plain is None or _malformed(text, nested_classes=True) is not None else None


def _malformed(text: str, *, nested_classes: bool) -> Malformed | None:
    opened: list[PatternToken] = []
    repeatable = repeated = False
    for token in tokens(text, nested_classes=nested_classes):
        kind = token.kind
        if kind is TokenKind.BROKEN:
            return Malformed(token.text, token.start, token.end)
        if kind is TokenKind.ANY_BYTE or (kind is TokenKind.CLASS and _ANY_BYTE.search(token.text)):
            return Malformed("\\C is not allowed: it matches bytes, not characters", token.start, token.end)
        if kind in (TokenKind.FLAGS, TokenKind.OPEN) and _ignores_blanks(token.text):
            return None  # comments from here on, in which apparent syntax means nothing
        if kind is TokenKind.COMMENT:
            continue
        if kind is TokenKind.REPEAT:
            # Some dialects read a count with nothing to repeat as plain text, and some let counts follow each other.
            counted = token.text.startswith("{")
            if repeated and not counted:
                return Malformed(f"a stacked repetition operator {token.text!r}", token.start, token.end)
            if not repeatable and not repeated and not counted:
                return Malformed(f"nothing to repeat before {token.text!r}", token.start, token.end)
            repeatable, repeated = False, True
            continue
        if kind is TokenKind.OPEN:
            opened.append(token)
        elif kind is TokenKind.CLOSE:
            if not opened:
                return Malformed("an unmatched ')'", token.start, token.end)
            opened.pop()
        # "(?" alone begins a group of some dialect, as (?+1): the next character is then not a repetition.
        repeatable = kind not in _UNREPEATABLE or token.text == "(?"
        repeated = False
    return Malformed("a missing ')'", opened[-1].start, opened[-1].end) if opened else None


def _ignores_blanks(opening: str) -> bool:
    """Whether ``(?x)``, ``(?ix-s:`` or the like switches comments on."""
    if not opening.startswith("(?") or not opening.endswith((")", ":")):
        return False
    return "x" in opening[2:-1].partition("-")[0]
