"""Checks of the types and bounds of callers' arguments: a :exc:`TypeError` or :exc:`ValueError` at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

__all__ = ["all_of", "at_least"]

T = TypeVar("T")


def all_of(kind: type[T], values: Iterable[T], what: str) -> list[T]:
    """The values; ``what`` names them for errors, such as ``"new topics"``."""
    if isinstance(values, str):
        raise TypeError(f"{what} are an iterable of {kind.__name__}, and this is one str")
    given = list(values)
    for value in given:
        if not isinstance(value, kind):
            raise TypeError(f"{what} are {kind.__name__}, not {type(value).__name__}: {ascii(value)[:100]}")
    return given


def at_least(least: int, value: int, name: str) -> int:
    """A whole number, which is ``least`` or more."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is a whole number, not {type(value).__name__}: {ascii(value)[:100]}")
    if value < least:
        raise ValueError(f"{name} is {least} at least, not {value}")
    return value
