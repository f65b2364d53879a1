"""Pairs of connected sockets, and certificates."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator

import pytest

from tests.support.certificates import Authority

#: Bytes that the kernel takes for a client that does not read; twice as many, and some of the other side's.
_SMALL = 32 * 1024


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
async def pair() -> AsyncIterator[tuple[socket.socket, socket.socket]]:
    """Two ends of a TCP connection that do not block: the server's, the client's, which soon takes no more."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SMALL)
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL)
        client.setblocking(False)
        await asyncio.get_running_loop().sock_connect(client, listening.getsockname())
        server, _ = listening.accept()
    server.setblocking(False)
    yield server, client
    server.close()
    client.close()
