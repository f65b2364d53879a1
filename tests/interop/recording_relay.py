"""A relay before a Kafka server that has when each request and each answer of a connection went by."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self

from broker_core.wire.kafka import APIS, FrameSplitter, Reader, read_header, read_response

__all__ = ["Exchange", "RecordingRelay"]

_LARGEST: Final = 1 << 20


@dataclass
class Exchange:
    """A request of an API at a version; ``answered`` is 0 until then, ``throttle`` that of the answer, in seconds."""

    api: int
    version: int
    asked: float
    answered: float = 0.0
    throttle: float = 0.0


@dataclass(eq=False)
class _Connection:
    client: socket.socket
    server: socket.socket
    exchanges: list[Exchange] = field(default_factory=list)
    pending: dict[int, Exchange] = field(default_factory=dict)

    def asked(self, message: bytes) -> None:
        header = read_header(Reader(message))
        exchange = Exchange(header.api_key, header.api_version, time.monotonic())
        self.pending[header.correlation_id] = exchange
        self.exchanges.append(exchange)

    def answered(self, message: bytes) -> None:
        exchange = self.pending.pop(int.from_bytes(message[:4], "big"))
        _, fields = read_response(APIS[exchange.api], exchange.version, message)
        exchange.throttle = fields.get("throttle_time_ms", 0) / 1000
        exchange.answered = time.monotonic()


class RecordingRelay:
    """Listens on a free port of the loopback; ``server`` is the address behind it. A context manager."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self._listening.getsockname())
        self.server = ("127.0.0.1", 0)
        self._connections: list[_Connection] = []
        self._threads: list[threading.Thread] = []

    def taken(self) -> list[list[Exchange]]:
        """What each connection asked since this was asked last."""
        taken = [connection.exchanges for connection in self._connections]
        for connection in self._connections:
            connection.exchanges = []
        return taken

    def __enter__(self) -> Self:
        self._run(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ends = [each for connection in self._connections for each in (connection.client, connection.server)]
        for end in (self._listening, *ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
        for thread in self._threads:
            thread.join(10)

    def _run(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            connection = _Connection(client, socket.create_connection(self.server))
            self._connections.append(connection)
            self._run(_pass, connection.client, connection.server, connection.asked)
            self._run(_pass, connection.server, connection.client, connection.answered)


def _pass(source: socket.socket, target: socket.socket, seen: Callable[[bytes], None]) -> None:
    frames = FrameSplitter(_LARGEST, least=4)
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            for message in frames.feed(data):
                seen(message)
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
