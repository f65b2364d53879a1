"""Whether whoever waits for something still wants it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeAlias

__all__ = ["Cancelled", "is_over", "watch"]

#: Done or set means: whoever waits does not want it any more.
Cancelled: TypeAlias = "asyncio.Future[Any] | asyncio.Event"


def is_over(cancelled: Cancelled | None) -> bool:
    """Whether it was cancelled already."""
    if cancelled is None:
        return False
    return cancelled.is_set() if isinstance(cancelled, asyncio.Event) else cancelled.done()


def watch(cancelled: Cancelled | None, call: Callable[[], None]) -> Callable[[], object]:
    """Call once when ``cancelled`` is over; the returned function ends the watch."""
    if cancelled is None:
        return lambda: None
    if isinstance(cancelled, asyncio.Event):
        waiting = asyncio.create_task(cancelled.wait())  # the returned function keeps it
        waiting.add_done_callback(lambda done: None if done.cancelled() else call())
        return waiting.cancel

    def over(_: asyncio.Future[Any]) -> None:
        call()

    future = cancelled
    future.add_done_callback(over)
    return lambda: future.remove_done_callback(over)
