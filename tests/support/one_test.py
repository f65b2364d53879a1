"""Rows of a table that are tried in one test: hundreds of quick ones cost more as tests than what they try."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest
from _pytest._io.saferepr import saferepr

__all__ = ["in_one_test"]


def in_one_test(names: str, rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """``pytest.mark.parametrize`` without a test for each row; the failure of a row has the row as its note.

    All rows are tried. Fixtures are made once, so this is for tests that leave them as they were.
    """
    words = [name.strip() for name in names.split(",")]
    given = [dict(zip(words, row if len(words) > 1 else (row,), strict=True)) for row in rows]
    assert given

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def tried(**fixtures: Any) -> None:
            failures = []
            for row in given:
                try:
                    test(**fixtures, **row)
                except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - it is raised below
                    error.add_note(f"with {saferepr(row, maxsize=1000)}")
                    failures.append(error)
            if len(failures) == 1:
                raise failures[0]
            if failures:
                raise BaseExceptionGroup(f"{len(failures)} of {len(given)} rows", failures)

        signature = inspect.signature(test)
        rest = [each for name, each in signature.parameters.items() if name not in words]
        tried.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]
        return tried

    return decorate
