"""Letting go of what a failed or cancelled piece of work had in its hands.

The traceback of an exception keeps the frames that it came through, and these keep listings. Where something that the
frames refer to leads back to the exception (``asyncio.timeout`` knows its task, and a cancelled task its exception),
only the cyclic collector frees them, which a quiet server does not run for hours.
"""

from __future__ import annotations

import asyncio
import traceback
from typing import Any, Final

__all__ = ["let_go", "let_go_of_cancelled", "own_field"]

_LONGEST_CHAIN: Final = 16


def let_go(error: BaseException) -> None:
    """Empty the frames that an exception, its cause and its context came through, where they have ended."""
    following: BaseException | None = error
    for _ in range(_LONGEST_CHAIN):
        if following is None:
            return
        traceback.clear_frames(own_field(following, "__traceback__"))
        following = own_field(following, "__cause__") or own_field(following, "__context__")


def own_field(error: BaseException, name: str) -> Any:
    """A field that every exception has, whatever its class (a plugin's, say) makes of the name."""
    return vars(BaseException)[name].__get__(error)


def let_go_of_cancelled(task: asyncio.Task[Any]) -> None:
    """The same for a task that was cancelled."""
    try:
        task.exception()  # the task keeps it no longer
    except asyncio.CancelledError as cancelled:
        let_go(cancelled)
