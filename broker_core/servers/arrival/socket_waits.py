"""Waiting until a socket that does not block can be read or written."""

from __future__ import annotations

import asyncio
import socket

__all__ = ["readable", "writable"]


async def readable(sock: socket.socket) -> None:
    """Return once something can be read from the socket, or its peer is gone."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(sock, _set, ready)
    try:
        await ready
    finally:
        loop.remove_reader(sock)


async def writable(sock: socket.socket) -> None:
    """Return once something can be written to the socket, or its peer is gone."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_writer(sock, _set, ready)
    try:
        await ready
    finally:
        loop.remove_writer(sock)


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)
