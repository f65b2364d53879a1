"""Foreign text made printable: without control characters for a terminal, and without line breaks."""

from __future__ import annotations

__all__ = ["printable"]


def printable(text: str) -> str:
    """Text without control characters, which are shown as Python writes them: ``\\x1b``, ``\\n``, ``\\u2028``.

    These are C0 and C1, DEL, separators of lines, and marks that change the direction of text.
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
