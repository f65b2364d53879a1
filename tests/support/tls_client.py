"""A client of Pulsar's protocol over TLS under a test's full control."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from typing import Self, TypeVar

from broker_core.servers.arrival.socket_waits import readable, writable
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.raw_client import RawClient

__all__ = ["TlsClient", "shake"]

_Result = TypeVar("_Result")
_RECORD = 16 * 1024


class TlsClient(RawClient):
    """One connection over TLS; what is not asked for stays in the kernel, but for one record."""

    _socket: ssl.SSLSocket

    @classmethod
    async def open_tls(
        cls,
        address: tuple[str, int],
        context: ssl.SSLContext,
        *,
        client_version: str = "Pulsar-Java-v4.2.4",
        handshake: bool = True,
        receive_buffer: int | None = None,
        before: bytes = b"",
        session: ssl.SSLSession | None = None,
    ) -> Self:
        """Connect, send ``before`` in plain text, and shake hands; with ``handshake``, those of Pulsar too."""
        plain = socket.socket()
        plain.setblocking(False)
        if receive_buffer is not None:
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            loop = asyncio.get_running_loop()
            await loop.sock_connect(plain, address)
            await loop.sock_sendall(plain, before)
        except BaseException:
            plain.close()
            raise
        client = cls(await shake(plain, context, session=session))
        try:
            if handshake:
                await client.send(commands.connect(client_version))
                assert (await client.receive()).type == BaseCommand.CONNECTED
        except BaseException:
            client.close()
            raise
        return client

    @property
    def tls(self) -> ssl.SSLSocket:
        return self._socket

    async def send(self, data: bytes) -> None:
        await _when_possible(self._socket, lambda: self._socket.send(data))

    async def _chunk(self) -> bytes:
        return await _when_possible(self._socket, lambda: self._socket.recv(_RECORD))


async def shake(
    sock: socket.socket, context: ssl.SSLContext, *, session: ssl.SSLSession | None = None
) -> ssl.SSLSocket:
    """Shake hands as a client; the socket, which does not block, is closed if that fails."""
    secured = context.wrap_socket(
        sock, do_handshake_on_connect=False, server_hostname="localhost", session=session
    )
    try:
        await _when_possible(secured, secured.do_handshake)
    except BaseException:
        secured.close()
        raise
    return secured


async def _when_possible(sock: ssl.SSLSocket, action: Callable[[], _Result]) -> _Result:
    while True:
        try:
            return action()
        except ssl.SSLWantReadError:
            await readable(sock)
        except ssl.SSLWantWriteError:
            await writable(sock)
