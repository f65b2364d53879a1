"""Foreign text made printable: without control characters and line breaks, or in quotes and cut for errors."""

from __future__ import annotations

from typing import Final

__all__ = ["cut_short", "printable", "quoted"]

_LONGEST: Final = 200  # characters


def printable(text: str) -> str:
    """Text without control characters, which are shown as Python writes them: ``\\x1b``, ``\\n``, ``\\u2028``.

    These are C0 and C1, DEL, separators of lines, and marks that change the direction of text.
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def cut_short(text: str) -> str:
    """The first 200 characters of a text, and an ellipsis if there are more."""
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def quoted(text: str) -> str:
    """A text in quotes, escaped and cut: it may be hostile and long."""
    return repr(cut_short(text))
