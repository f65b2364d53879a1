"""A TCP proxy whose connections a test makes half open: it goes on reading, and passes on nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from tests.support.eventually import close_listening

__all__ = ["TcpProxy"]


class TcpProxy:
    """``async with TcpProxy(target) as proxy``; ``target`` gives the address of each new connection."""

    def __init__(self, target: Callable[[], tuple[str, int]]) -> None:
        self._target = target
        #: Whether new connections are half open from their first byte.
        self.swallows_new = False
        #: Bytes that connections to a client still pass on; ``None``: all.
        self._left: list[list[int | None]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    @property
    def address(self) -> tuple[str, int]:
        """The address that it listens on."""
        assert self._server is not None
        host, port = self._server.sockets[0].getsockname()
        return host, port

    @property
    def url(self) -> str:
        """The service URL of what is behind it."""
        return "pulsar://{}:{}".format(*self.address)

    def swallow(self, after: int = 0) -> None:
        """Make the connections that are open half open, once ``after`` more bytes have come to their clients."""
        for left in self._left:
            left[0] = after

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        await close_listening(self._server)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        left: list[int | None] = [0 if self.swallows_new else None]
        self._left.append(left)
        with suppress(ConnectionError, asyncio.CancelledError):
            back, forth = await asyncio.open_connection(*self._target())
            try:
                ways = [asyncio.create_task(_pass_on(reader, forth, left, is_counted=False))]
                ways.append(asyncio.create_task(_pass_on(back, writer, left, is_counted=True)))
                try:
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for way in ways:
                        way.cancel()
                    await asyncio.gather(*ways, return_exceptions=True)
            finally:
                forth.transport.abort()
        writer.transport.abort()
        self._left.remove(left)
        self._tasks.discard(task)


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, left: list[int | None], *, is_counted: bool
) -> None:
    while data := await reader.read(1 << 16):
        if left[0] is not None:
            if not is_counted:
                continue
            data, left[0] = data[: left[0]], max(left[0] - len(data), 0)
        writer.write(data)
        await writer.drain()
