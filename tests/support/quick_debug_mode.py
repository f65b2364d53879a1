"""The debug mode of event loops with its checks alone: calls from other threads, blocking sockets.

What debug mode notes besides, the stack of each callback, task and coroutine, is three quarters of the time of a server
in a test.
"""

from __future__ import annotations

import asyncio

__all__ = ["note_no_stacks"]


def note_no_stacks() -> None:
    """For all loops of this process: the checks read ``_debug``, and what notes stacks asks ``get_debug()``."""
    asyncio.BaseEventLoop.get_debug = _nothing_is_noted  # type: ignore[method-assign]
    asyncio.BaseEventLoop._set_coroutine_origin_tracking = _origins_are_not_tracked  # type: ignore[attr-defined]


def _nothing_is_noted(self: asyncio.BaseEventLoop) -> bool:
    return False


def _origins_are_not_tracked(self: asyncio.BaseEventLoop, enabled: bool) -> None:
    pass
