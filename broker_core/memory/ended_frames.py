"""Letting go of what cancelled work had in its hands, and reading exceptions without asking them.

The traceback of an exception keeps the frames that it came through, and these keep listings. A cancelled task keeps its
exception, and ``asyncio.timeout`` in one of the frames knows the task: only the cyclic collector would free them, which
a quiet server does not run for hours.
"""

from __future__ import annotations

import asyncio
from typing import Any

__all__ = ["let_go_of_cancelled", "own_field"]


def let_go_of_cancelled(task: asyncio.Task[Any]) -> None:
    """Free what a task had that was cancelled: it hands its exception out, and keeps it no longer."""
    try:
        task.exception()
    except asyncio.CancelledError:
        pass


def own_field(error: BaseException, name: str) -> Any:
    """A field that every exception has, whatever its class (a plugin's, say) makes of the name."""
    return vars(BaseException)[name].__get__(error)
