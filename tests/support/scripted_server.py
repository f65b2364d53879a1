"""A lookup service that sends what a test tells it, over a real socket, made of the wire codec only."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.frames import FrameDecoder
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand, FeatureFlags
from tests.support.eventually import close_listening

__all__ = ["Peer", "Script", "ScriptedServer", "answer_nothing"]


class Peer:
    """One client, as the server sees it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.received: list[BaseCommand] = []
        self.task: asyncio.Task[Any] | None = None

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    def abort(self) -> None:
        """Break the connection at once."""
        self.writer.transport.abort()


Script = Callable[[Peer, BaseCommand], Awaitable[None]]


async def answer_nothing(_peer: Peer, _command: BaseCommand) -> None:
    """The script of a server that reads and keeps silent."""


class ScriptedServer:
    """``async with ScriptedServer(script) as server``: CONNECT and PING are answered here, the rest by ``script``.

    ``script`` runs for one command after the other, per connection; with ``handshake=False`` it gets CONNECT too.
    """

    def __init__(
        self,
        script: Script = answer_nothing,
        *,
        handshake: bool = True,
        keep_alive: bool = True,
        topic_watchers: bool = False,
        reconcile: bool = False,
        max_message_size: int = 5_242_880,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.script = script
        self.handshake = handshake
        self.keep_alive = keep_alive
        self.topic_watchers = topic_watchers
        self.reconcile = reconcile
        self.max_message_size = max_message_size
        self.tls = tls
        self.peers: list[Peer] = []
        self.port = 0
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        return f"pulsar{'+ssl' if self.tls is not None else ''}://127.0.0.1:{self.port}"

    @property
    def received(self) -> list[BaseCommand]:
        """What all clients sent, handshakes and keep-alive included."""
        return [command for peer in self.peers for command in peer.received]

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server is not None:
            await close_listening(self._server)
            self._server = None
        for peer in self.peers:
            peer.abort()
        for peer in self.peers:
            if peer.task is not None:
                peer.task.cancel()  # its script may wait for something that a failed test never does
                await asyncio.wait([peer.task])

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        peer.task = asyncio.current_task()
        self.peers.append(peer)
        decoder = FrameDecoder(1 << 30)
        try:
            while data := await reader.read(1 << 16):
                for raw in decoder.feed(data):
                    await self._command(peer, commands.decode(raw))
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _command(self, peer: Peer, command: BaseCommand) -> None:
        peer.received.append(command)
        if command.type == BaseCommand.CONNECT and self.handshake:
            peer.send(
                commands.connected(
                    "Scripted1",
                    protocol_version=min(21, command.connect.protocol_version),
                    max_message_size=self.max_message_size,
                    feature_flags=FeatureFlags(
                        supports_topic_watchers=self.topic_watchers,
                        supports_topic_watcher_reconcile=self.reconcile,
                    ),
                )
            )
        elif command.type == BaseCommand.PING and self.keep_alive:
            peer.send(commands.pong())
        elif command.type != BaseCommand.PONG:
            await self.script(peer, command)
