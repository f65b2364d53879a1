"""A client of Pulsar's protocol under a test's full control: it only reads on request."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from broker_core.errors import ServerError
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.frames import FrameDecoder
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand

__all__ = ["Closed", "RawClient", "Refused"]

_CHUNK = 1 << 18


class Closed(Exception):
    """The server closed the connection."""


class Refused(Exception):
    """The server answered with an error."""

    def __init__(self, code: ServerError, message: str) -> None:
        super().__init__(f"{code.name}: {message}")
        self.code = code
        self.message = message


class RawClient:
    """One connection; ``async with await RawClient.open(address)``. What is not asked for stays in the kernel."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._loop = asyncio.get_running_loop()
        self._decoder = FrameDecoder(1 << 31)
        self._received: deque[bytes] = deque()
        self._request_id = 0

    @classmethod
    async def open(
        cls,
        address: tuple[str, int],
        *,
        client_version: str = "Pulsar-Java-v4.2.4",
        handshake: bool = True,
        receive_buffer: int | None = None,
    ) -> RawClient:
        """Connect; ``receive_buffer`` in bytes is how much the kernel takes for a client that does not read."""
        sock = socket.socket()
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if receive_buffer is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        try:
            await asyncio.get_running_loop().sock_connect(sock, address)
            client = cls(sock)
            if handshake:
                await client.send(commands.connect(client_version))
                assert (await client.receive()).type == BaseCommand.CONNECTED
        except BaseException:
            sock.close()
            raise
        return client

    @property
    def address(self) -> tuple[str, int]:
        """Its own end."""
        host, port = self._socket.getsockname()
        return host, port

    async def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        await self._loop.sock_sendall(self._socket, data)

    async def receive_raw(self) -> bytes:
        """The next command as it came; :exc:`Closed` when there is none any more."""
        while not self._received:
            try:
                data = await self._chunk()
            except ConnectionError:
                data = b""
            if not data:
                raise Closed
            self._received.extend(self._decoder.feed(data))
        return self._received.popleft()

    async def _chunk(self) -> bytes:
        """What the kernel has, some of it, or nothing at the end."""
        return await self._loop.sock_recv(self._socket, _CHUNK)

    async def receive(self) -> BaseCommand:
        """The next command."""
        return commands.decode(await self.receive_raw())

    async def closed(self) -> list[BaseCommand]:
        """Read until the server closes; what came before."""
        before: list[BaseCommand] = []
        try:
            while True:
                before.append(await self.receive())
        except Closed:
            return before

    def question(
        self,
        namespace: str = "public/default",
        mode: int = 0,
        *,
        pattern: str | None = None,
        topics_hash: str | None = None,
        properties: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes]:
        """A request id that was not used yet, and the frame of a listing's question with it."""
        self._request_id += 1
        frame = commands.get_topics(
            self._request_id,
            namespace,
            mode,
            topics_pattern=pattern,
            topics_hash=topics_hash,
            properties=properties,
        )
        return self._request_id, frame

    async def ask(self, namespace: str = "public/default", mode: int = 0, **question: Any) -> Any:
        """Ask for a listing; the body of the answer, or :exc:`Refused`."""
        request_id, frame = self.question(namespace, mode, **question)
        await self.send(frame)
        return self.answer(await self._after_pings(), request_id)

    @staticmethod
    def answer(command: BaseCommand, request_id: int) -> Any:
        """The body of an answer to a listing, or :exc:`Refused`."""
        if command.type == BaseCommand.ERROR:
            assert command.error.request_id == request_id
            raise Refused(ServerError(command.error.error), command.error.message)
        assert command.type == BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE, command
        assert command.getTopicsOfNamespaceResponse.request_id == request_id
        return command.getTopicsOfNamespaceResponse

    async def ping(self) -> None:
        """See that the connection lives."""
        await self.send(commands.ping())
        assert (await self._after_pings()).type == BaseCommand.PONG

    async def _after_pings(self) -> BaseCommand:
        """The next command, after the PINGs of a server for which the machine is slow."""
        while (command := await self.receive()).type == BaseCommand.PING:
            await self.send(commands.pong())
        return command

    def finish(self) -> None:
        """Send nothing more: the server closes when it has read all."""
        self._socket.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Go away as a program does that ends."""
        self._socket.close()

    def vanish(self) -> None:
        """Go away as a machine does that crashes and comes back: with a reset."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
