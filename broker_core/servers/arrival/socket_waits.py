"""Waiting until a socket that does not block can be read or written, and looking at what has come."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from broker_core.servers.arrival.refused_arrival import RefusedArrival

__all__ = ["peeked", "readable", "writable"]


async def readable(sock: socket.socket) -> None:
    """Return once something can be read from the socket, or its peer is gone."""
    loop = asyncio.get_running_loop()
    await _ready(sock, loop.add_reader, loop.remove_reader)


async def peeked(sock: socket.socket, size: int, before: str) -> bytes:
    """The bytes that have come, ``size`` at the most and one at least, which stay to be read.

    Raises :exc:`RefusedArrival` if the peer closes ``before`` something.
    """
    while True:
        try:
            seen = sock.recv(size, socket.MSG_PEEK)
        except (BlockingIOError, InterruptedError):
            await readable(sock)
            continue
        if not seen:
            raise RefusedArrival("closed", f"closed before {before}")
        return seen


async def writable(sock: socket.socket) -> None:
    """Return once something can be written to the socket, or its peer is gone."""
    loop = asyncio.get_running_loop()
    await _ready(sock, loop.add_writer, loop.remove_writer)


async def _ready(
    sock: socket.socket, add: Callable[..., object], remove: Callable[[socket.socket], object]
) -> None:
    ready = asyncio.get_running_loop().create_future()
    add(sock, _set, ready)
    try:
        await ready
    finally:
        remove(sock)


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
