"""Telling a malformed pattern from one that only RE2 refuses, and another engine (Java's, say) may know."""

from __future__ import annotations

import re
from typing import Final

from broker_core.patterns.tokens import Kind, tokens

__all__ = ["malformation"]

_UNREPEATABLE = (Kind.OPEN, Kind.ALTERNATIVE, Kind.FLAGS)


_ANY_BYTE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\C")  # an escape, not a backslash and a letter


def malformation(text: str) -> str | None:
    r"""Why a pattern is no regular expression in any dialect, or ``None`` where some engine may accept it.

    Broken are parentheses and brackets that do not balance, a trailing backslash, a repetition of nothing or of a
    repetition (``a**``), and ``\C``. Everything else is some dialect's: lookaround, possessive ``a++``, comments,
    ``\p{Alpha}``, nested classes. Where dialects read a text differently, it is broken only if it is in each reading.
    """
    plain = _malformation(text, nested_classes=False)
    return plain if plain is None or _malformation(text, nested_classes=True) is not None else None


def _malformation(text: str, *, nested_classes: bool) -> str | None:
    depth = 0
    repeatable = repeated = False
    for token in tokens(text, nested_classes=nested_classes):
        kind = token.kind
        if kind is Kind.BROKEN:
            return token.text
        if kind is Kind.ANY_BYTE or (kind is Kind.CLASS and _ANY_BYTE.search(token.text)):
            return "\\C is not allowed: it matches bytes, not characters"
        if kind in (Kind.FLAGS, Kind.OPEN) and _ignores_blanks(token.text):
            return None  # comments from here on: nothing can be said of what looks like syntax in them
        if kind is Kind.COMMENT:
            continue
        if kind is Kind.REPEAT:
            # Some dialects read a count with nothing to repeat as plain text, and some let counts follow each other.
            counted = token.text.startswith("{")
            if repeated and not counted:
                return f"a stacked repetition operator {token.text!r}"
            if not repeatable and not repeated and not counted:
                return f"nothing to repeat before {token.text!r}"
            repeatable, repeated = False, True
            continue
        if kind is Kind.OPEN:
            depth += 1
        elif kind is Kind.CLOSE:
            depth -= 1
            if depth < 0:
                return "an unmatched ')'"
        # "(?" alone begins what only some dialect knows, as (?+1): what follows is no repetition then.
        repeatable = kind not in _UNREPEATABLE or token.text == "(?"
        repeated = False
    return "a missing ')'" if depth else None


def _ignores_blanks(opening: str) -> bool:
    """Whether ``(?x)``, ``(?ix-s:`` or the like switches comments on."""
    if not opening.startswith("(?") or not opening.endswith((")", ":")):
        return False
    return "x" in opening[2:-1].partition("-")[0]
