"""Calls of the official client's asynchronous functions from an event loop.

`pulsar.asyncio` makes a future and a hop between threads of each call, and a message that comes to a cancelled
``receive`` is lost until it is delivered again. So these functions call its C++ core, ``_pulsar``.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from pulsar.asyncio import PulsarException

__all__ = ["call", "on_loop"]


def on_loop(loop: asyncio.AbstractEventLoop, function: Callable[..., None]) -> Callable[..., None]:
    """``function`` for a thread of the client: called in the loop; at once if the thread is the loop's."""
    thread = threading.get_ident()

    def called(*arguments: Any) -> None:
        if threading.get_ident() == thread:
            function(*arguments)
            return
        try:
            loop.call_soon_threadsafe(function, *arguments)
        except RuntimeError:  # the loop is closed, and nobody waits
            pass

    return called


async def call(function: Callable[..., None], *arguments: Any) -> Any:
    """The value that ``function(*arguments, callback)`` calls back with; raises ``pulsar.asyncio.PulsarException``.

    Cancelled, it goes on in the client, and its outcome is dropped.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()

    def done(result: Any, value: Any = None) -> None:
        if future.done():
            return
        if result.name == "Ok":
            future.set_result(value)
        else:
            future.set_exception(PulsarException(result))

    function(*arguments, on_loop(loop, done))
    return await future
