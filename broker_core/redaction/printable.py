"""Other people's text as it may be shown: nothing in it that a terminal would obey, or that would break a line."""

from __future__ import annotations

__all__ = ["printable"]


def printable(text: str) -> str:
    """Text without control characters, which are shown as Python writes them: ``\\x1b``, ``\\n``, ``\\u2028``.

    Those are C0 and C1, DEL, separators of lines, and the marks that turn the direction of text.
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
