"""The problems that a plugin reports (``broker_core_problems``), as texts that are safe to show."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from broker_core.plugins.raised_exceptions import bounded

__all__ = ["MOST", "as_problems"]

#: Problems of one plugin that are shown; a further line gives the number of others.
MOST: Final = 100


def as_problems(problems: object) -> tuple[str, ...]:
    """The problems as texts, each of bounded length; a string is one problem, and one without text is none.

    Raises :exc:`TypeError` for anything but a collection of strings.
    """
    if isinstance(problems, str):
        problems = [problems]
    if not isinstance(problems, Collection) or isinstance(problems, bytes | bytearray | memoryview | Mapping):
        raise TypeError(f"problems are a list of strings, [] if all is well, not {type(problems).__name__}")
    texts = list(problems)
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"problems are strings, not {type(text).__name__}: write str(problem)")
    found = [bounded(text) for text in texts if text.strip()]
    more = [f"and {len(found) - MOST} more"] if len(found) > MOST else []
    return (*found[:MOST], *more)
