"""What callers give: of the right type, or a :exc:`TypeError` at once that says so."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

__all__ = ["all_of"]

T = TypeVar("T")


def all_of(kind: type[T], values: Iterable[T], what: str) -> list[T]:
    """The values; ``what`` they are, such as ``"new topics"``."""
    if isinstance(values, str):
        raise TypeError(f"{what} are an iterable of {kind.__name__}, and this is one str")
    given = list(values)
    for value in given:
        if not isinstance(value, kind):
            raise TypeError(f"{what} are {kind.__name__}, not {type(value).__name__}: {ascii(value)[:100]}")
    return given
