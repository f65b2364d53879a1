"""Numbers with their nouns, for texts."""

from __future__ import annotations

__all__ = ["counted"]


def counted(count: float, one: str, many: str | None = None, *, spec: str = "") -> str:
    """A number and its noun: ``1 topic``, ``2 topics``; ``spec`` is how the number is formatted.

    ``many`` is the plural of a word that takes more than an ``s``.
    """
    return f"{count:{spec}} {one if count == 1 else many or f'{one}s'}"
