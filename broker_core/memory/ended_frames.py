"""Freeing the frames of cancelled tasks, and reading an exception's fields without running its code.

The traceback of an exception keeps frames alive, and frames keep listings alive. A cancelled task keeps its exception,
and ``asyncio.timeout`` in one of the frames keeps the task: a reference cycle. The cyclic garbage collector would free
it, but on a quiet server it does not run for hours.
"""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["let_go_of_cancelled", "own_field"]


def let_go_of_cancelled(task: asyncio.Task[Any]) -> None:
    """Take the exception out of a cancelled task, so that the task no longer keeps the frames alive."""
    try:
        task.exception()
    except asyncio.CancelledError:
        pass


def own_field(error: BaseException, name: str) -> Any:
    """A field of :exc:`BaseException`, even if the exception's own class (a plugin's, say) overrides the name."""
    return vars(BaseException)[name].__get__(error)
