"""A node of a Kafka cluster that answers what a test tells it, over a real socket, made of the wire codec only."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, NamedTuple, Self

from broker_core.wire.kafka import (
    API_VERSIONS,
    APIS,
    METADATA,
    Api,
    Fields,
    Reader,
    read_header,
    response_frame,
)
from tests.support.eventually import close_listening

__all__ = ["Asked", "Handler", "ScriptedKafka", "in_a_thread", "metadata_of"]


class Asked(NamedTuple):
    """A request as the node got it."""

    api: Api
    version: int
    value: Fields


#: Gives the answer to a request: its value, the bytes of a whole frame, or ``None`` to close the connection.
Handler = Callable[[Asked], "Fields | bytes | Awaitable[Fields | bytes | None] | None"]


class ScriptedKafka:
    """``async with ScriptedKafka({LIST_TOPICS: handler}) as node``: ApiVersions and Metadata of no topics are answered
    here unless they have a handler; an API without one closes the connection.

    It advertises the APIs of ``versions`` (by default all that have a handler, with all versions of the codec).
    """

    def __init__(
        self,
        handlers: Mapping[Api, Handler] | None = None,
        *,
        versions: Mapping[Api, tuple[int, int]] | None = None,
        node_id: int = 1,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.handlers: dict[Api, Handler] = {
            API_VERSIONS: lambda _: {"api_keys": self.api_keys},
            METADATA: lambda _: metadata_of(self),
            **(handlers or {}),
        }
        self.versions = versions
        self.node_id = node_id
        self.tls = tls
        self.asked: list[Asked] = []
        self.connections = 0
        self.port = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def api_keys(self) -> list[Fields]:
        versions = self.versions or {api: api.versions for api in self.handlers}
        return [
            {"api_key": api.key, "min_version": first, "max_version": last}
            for api, (first, last) in versions.items()
        ]

    def of(self, api: Api) -> list[Fields]:
        """The requests of one API."""
        return [asked.value for asked in self.asked if asked.api is api]

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        await close_listening(self._server)
        self.drop()
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        await self._server.wait_closed()

    def drop(self) -> None:
        """Break all connections."""
        for writer in self._writers:
            writer.transport.abort()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.add(writer)
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                frame = Reader(await reader.readexactly(size))
                header = read_header(frame)
                api = APIS[header.api_key]
                if api.is_flexible(header.api_version):
                    frame.skip_tags()
                asked = Asked(api, header.api_version, api.read_request(frame, header.api_version))
                self.asked.append(asked)
                answer = self.handlers[api](asked) if api in self.handlers else None
                if answer is not None and not isinstance(answer, dict | bytes):
                    answer = await answer
                if answer is None:
                    return
                if isinstance(answer, dict):
                    pieces = response_frame(api, header.api_version, header.correlation_id, answer)
                    answer = b"".join(pieces)
                writer.write(answer)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            self._serving.discard(task)
            self._writers.discard(writer)
            writer.close()


@contextmanager
def in_a_thread(node: ScriptedKafka) -> Iterator[ScriptedKafka]:
    """The node on an event loop of its own, for tests of what blocks."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="scripted-kafka")
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(node.start(), loop).result(30)
        try:
            yield node
        finally:
            asyncio.run_coroutine_threadsafe(node.stop(), loop).result(30)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()


def metadata_of(
    *nodes: ScriptedKafka, controller: int | None = None, topics: list[dict[str, Any]] | None = None
) -> Fields:
    """An answer of Metadata with these nodes, the first of which is the controller."""
    return {
        "brokers": [{"node_id": node.node_id, "host": "127.0.0.1", "port": node.port} for node in nodes],
        "cluster_id": "scripted",
        "controller_id": nodes[0].node_id if controller is None else controller,
        "topics": topics or [],
    }
