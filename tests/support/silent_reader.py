"""An HTTP client that asks and reads nothing, whose kernel takes little."""

from __future__ import annotations

import asyncio
import socket

from tests.support.api_serving import ApiServed

__all__ = ["silent_reader"]


async def silent_reader(served: ApiServed, path: str) -> socket.socket:
    """The socket of one that has asked for ``path``."""
    assert served.broker.http_address is not None
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(sock, served.broker.http_address)
    await loop.sock_sendall(sock, f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    return sock
