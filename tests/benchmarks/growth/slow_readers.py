"""Clients that read the whole listing slowly while it changes: what their old versions keep in memory."""

from __future__ import annotations

import socket
import struct
import time
from dataclasses import dataclass, field
from typing import Final

from tests.benchmarks.growth.asking import Asking
from tests.benchmarks.growth.process_usage import watched_growth
from tests.benchmarks.growth.under_change import changing
from tests.benchmarks.wire_client import PING, command_type, connect_frame, pong_frame

__all__ = ["measure_slow_readers"]

_READERS: Final = 16
_RATE: Final = 500_000  # bytes a second of each
_TICK: Final = 0.05
_PER_SECOND: Final = 10
_SIZE: Final = struct.Struct(">I")
_HEAD: Final = 10  # bytes until the type of the command
_RECEIVE_BUFFER: Final = 64 * 1024


@dataclass(slots=True)
class _Reader:
    """``left`` bytes of the answer are still to come; ``head`` are the first bytes of a frame."""

    connection: socket.socket
    question: bytes
    left: int = 0
    head: bytearray = field(default_factory=bytearray)

    def read(self, count: int) -> None:
        """At most so many bytes; behind an answer, the next question."""
        while count > 0:
            try:
                data = self.connection.recv(min(count, self.left or _HEAD - len(self.head)))
            except BlockingIOError:
                return
            if not data:
                raise ConnectionError("the server closed the connection of a slow reader")
            count -= len(data)
            if self.left:
                self.left -= len(data)
                if not self.left:
                    self.connection.sendall(self.question)
            else:
                self._begin(data)

    def _begin(self, data: bytes) -> None:
        self.head += data
        if len(self.head) < _HEAD:
            return
        if command_type(memoryview(bytes(self.head))) == PING:
            self.connection.sendall(pong_frame())
            del self.head[: 4 + _SIZE.unpack_from(self.head)[0]]
        else:
            self.left = 4 + _SIZE.unpack_from(self.head)[0] - len(self.head)
            self.head.clear()


def measure_slow_readers(asking: Asking, seconds: float) -> dict[str, float]:
    """Readers begin one after the other in the first half of the time, so that each has another version."""
    readers: list[_Reader] = []
    with watched_growth(asking.server.pid) as grown, changing(asking, _PER_SECOND):
        begun = now = time.perf_counter()
        try:
            while now < begun + seconds:
                due = min(_READERS, int((now - begun) / (seconds / 2) * _READERS) + 1)
                readers += [_connect(asking) for _ in range(due - len(readers))]
                for reader in readers:
                    reader.read(int(_RATE * _TICK))
                time.sleep(max(now + _TICK - time.perf_counter(), 0))
                now = time.perf_counter()
        finally:
            for reader in readers:
                reader.connection.close()
    return {"slow readers memory": max(grown.most, 0)}


def _connect(asking: Asking) -> _Reader:
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
    connection.settimeout(60)
    connection.connect(asking.server.address)
    connection.sendall(connect_frame())
    connection.recv(4_096)  # CONNECTED comes whole: it is the first thing on this connection, and small
    connection.setblocking(False)
    connection.sendall(asking.everything)
    return _Reader(connection, asking.everything)
