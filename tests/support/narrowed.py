"""Values that a test needs to be there, or to be of a type, before it looks at them."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["of_type", "present"]

_T = TypeVar("_T")


def present(value: _T | None) -> _T:
    """A value that has to be there: ``None`` fails the test."""
    assert value is not None
    return value


def of_type(value: object, kind: type[_T]) -> _T:
    """A value that has to be of a type: another one fails the test, which shows it."""
    assert isinstance(value, kind), value
    return value
