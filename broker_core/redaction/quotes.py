"""Foreign text quoted in errors: escaped, and cut if it is long."""

from __future__ import annotations

from typing import Final

__all__ = ["cut_short", "quoted"]

_LONGEST: Final = 200  # characters


def cut_short(text: str) -> str:
    """The first 200 characters of a text, and an ellipsis if there are more."""
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def quoted(text: str) -> str:
    """A text in quotes, escaped and cut: it may be hostile and long."""
    return repr(cut_short(text))
