"""Clients that ask at a steady rate, all in one thread: the latency of each answer by the kind of the question."""

from __future__ import annotations

import selectors
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.benchmarks.growth.trees import BenchmarkFailed
from tests.benchmarks.wire_client import (
    FrameClient,
    read_answer,
)

__all__ = ["Asked", "ask_paced"]

_GIVE_UP: Final = 60.0


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: its kind, its frame, and the bytes of the right answer."""

    kind: str
    frame: bytes
    size: int


@dataclass(slots=True)
class _Client:
    connection: FrameClient
    due: float
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
        asking = [
            _Client(FrameClient(address), begun + every * number / clients) for number in range(clients)
        ]
        try:
            for client in asking:
                selector.register(client.connection.socket, selectors.EVENT_READ, client)
            return _run(asking, questions, selector, every, end)
        finally:
            for client in asking:
                client.connection.close()


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
                    client.connection.socket.sendall(client.asked.frame)
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
    """Whether the answer has come whole."""
    frames = client.connection.frames()
    for frame in frames:
        if client.asked is None or len(frame) != client.asked.size:
            raise BenchmarkFailed(f"{client.asked}: {read_answer(memoryview(frame))}")
    return bool(frames)
