"""Clients that ask at a steady rate, all in one thread: the latency of each answer by the kind of the question."""

from __future__ import annotations

import selectors
import socket
import struct
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from tests.benchmarks.growth.trees import BenchmarkFailed
from tests.benchmarks.wire_client import PING, command_type, connect_frame, pong_frame, read_answer

__all__ = ["Asked", "ask_paced"]

_SIZE: Final = struct.Struct(">I")
_ROOM: Final = 1 << 16
_GIVE_UP: Final = 60.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: its kind, its frame, and the bytes of the right answer."""

    kind: str
    frame: bytes
    size: int


@dataclass(slots=True)
class _Client:
    connection: socket.socket
    due: float
    have: bytearray = field(default_factory=bytearray)
    asked: Asked | None = None
    sent: float = 0.0


def ask_paced(
    address: tuple[str, int], questions: Iterator[Asked], *, clients: int, every: float, seconds: float
) -> dict[str, list[float]]:
    """Let each client ask the next question ``every`` so many seconds, or as soon as it has its answer.

    The seconds from the question to its answer, by kind. Raises :exc:`BenchmarkFailed` for an answer of another size.
    """
    begun = time.perf_counter()
    end = begun + seconds
    with selectors.DefaultSelector() as selector:
        asking = [_connect(address, begun + every * number / clients) for number in range(clients)]
        try:
            for client in asking:
                selector.register(client.connection, selectors.EVENT_READ, client)
            return _run(asking, questions, selector, every, end)
        finally:
            for client in asking:
                client.connection.close()


def _connect(address: tuple[str, int], due: float) -> _Client:
    connection = socket.create_connection(address, _GIVE_UP)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(connect_frame())
    connection.recv(_ROOM)  # CONNECTED comes whole: it is the first thing on this connection, and small
    return _Client(connection, due)


def _run(
    asking: list[_Client],
    questions: Iterator[Asked],
    selector: selectors.BaseSelector,
    every: float,
    end: float,
) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    waiting = 0
    while True:
        now = time.perf_counter()
        if now < end:
            for client in asking:
                if client.asked is None and client.due <= now:
                    client.asked = next(questions)
                    client.sent = time.perf_counter()
                    client.due = max(client.due + every, now)
                    client.connection.sendall(client.asked.frame)
                    waiting += 1
        elif not waiting:
            return found
        if now > end + _GIVE_UP:
            raise BenchmarkFailed(f"{waiting} answers did not come within {_GIVE_UP:.0f} s")
        idle = [client.due for client in asking if client.asked is None]
        until = min(idle, default=now + 1.0) if now < end else now + 1.0
        for key, _ in selector.select(max(until - time.perf_counter(), 0)):
            client = key.data
            if _answered(client):
                assert client.asked is not None
                found.setdefault(client.asked.kind, []).append(time.perf_counter() - client.sent)
                client.asked = None
                waiting -= 1


def _answered(client: _Client) -> bool:
    """Whether the answer has come whole; a PING of the server gets its PONG."""
    data = client.connection.recv(_ROOM)
    if not data:
        raise ConnectionError("the server closed a connection")
    have = client.have
    have += data
    answered = False
    while len(have) >= 4 and len(have) >= (size := 4 + _SIZE.unpack_from(have)[0]):
        if command_type(memoryview(have)[:size].toreadonly()) == PING:
            client.connection.sendall(pong_frame())
        else:
            if client.asked is None or size != client.asked.size:
                raise BenchmarkFailed(f"{client.asked}: {read_answer(memoryview(bytes(have[:size])))}")
            answered = True
        del have[:size]
    return answered
