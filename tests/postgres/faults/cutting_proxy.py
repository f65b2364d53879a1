"""A TCP proxy that cuts connections after a number of bytes from the server."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from tests.support.eventually import close_listening
from tests.support.narrowed import present

__all__ = ["CuttingProxy"]


class CuttingProxy:
    """A proxy on ``port`` of the loopback that passes everything on until a test cuts it."""

    def __init__(self, server_port: int) -> None:
        self.port = 0
        self.sent = 0  # bytes from the server that reached clients
        self.cuts = 0
        self._server_port = server_port
        self._left: list[int] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def cut_after(self, *sizes: int) -> None:
        """Cut the connection that carries the last of ``sizes[0]`` bytes, then again after ``sizes[1]`` more, and so
        on."""
        self._left = list(sizes)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await close_listening(self._server)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = present(asyncio.current_task())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        there, back = await asyncio.open_connection("127.0.0.1", self._server_port)
        up = asyncio.create_task(self._pass(reader, back, counted=False))
        try:
            await self._pass(there, writer, counted=True)
        finally:
            up.cancel()
            await asyncio.gather(up, return_exceptions=True)
            for each in (writer, back):
                each.transport.abort()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, counted: bool
    ) -> None:
        try:
            while data := await reader.read(65536):
                if counted:
                    cut = self._counted(data)
                    if cut is not None:
                        writer.write(data[:cut])
                        await writer.drain()
                        return
                writer.write(data)
                await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()
        except OSError:
            return

    def _counted(self, data: bytes) -> int | None:
        """The bytes of this chunk that pass before a cut; ``None`` without a cut."""
        self.sent += len(data)
        if not self._left:
            return None
        self._left[0] -= len(data)
        if self._left[0] > 0:
            return None
        self.cuts += 1
        return len(data) + self._left.pop(0)
