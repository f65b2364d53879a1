"""Latency of one connection, and throughput of sixteen connections."""

from __future__ import annotations

import selectors
import socket
import statistics
import struct
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.benchmarks.wire_client import PING, RawClient, command_type, connect_frame, pong_frame

__all__ = ["Latency", "latency", "percentile", "throughput"]

_SIZE = struct.Struct(">I")


def percentile(values: Sequence[float], share: float) -> float:
    """The value that ``share`` (0 to 1) of all are not above; the largest one if there are few."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds from the first byte sent to the last byte received; ``size`` is the frame in bytes."""

    p50: float
    p99: float
    count: int
    size: int


def latency(
    client: RawClient, frame: Callable[[int], bytes], *, turns: range, budget: float, at_least: int
) -> Latency:
    """Ask ``frame(turn)`` one after the other, until ``budget`` seconds have passed (but ``at_least`` times)."""
    frames = [frame(turn) for turn in turns]
    seconds: list[float] = []
    size = 0
    clock = time.perf_counter
    end = clock() + budget
    for each in frames:
        begun = clock()
        answer = client.ask(each)
        done = clock()
        seconds.append(done - begun)
        size = len(answer)
        if done > end and len(seconds) >= at_least:
            break
    return Latency(statistics.median(seconds), percentile(seconds, 0.99), len(seconds), size)


def throughput(
    address: tuple[str, int],
    frame: Callable[[int], bytes],
    *,
    connections: int = 16,
    budget: float,
    at_least: int,
) -> float:
    """Answers in a second, with ``connections`` that ask again as soon as they have their answer.

    One thread and one selector: the client must leave the cores to the server. Small answers only.
    """
    selector = selectors.DefaultSelector()
    buffer = bytearray(1 << 16)
    view = memoryview(buffer)
    sockets = []
    # Made before the clock runs; no two of the first ones are the same question.
    frames = [frame(turn) for turn in range(4096)]
    try:
        for _ in range(connections):
            each = socket.create_connection(address, 60)
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sockets.append(each)
            each.sendall(connect_frame())
            _receive(each, view)
            selector.register(each, selectors.EVENT_READ)
        turn = 0
        for each in sockets:
            each.sendall(frames[turn])
            turn += 1
        answers = 0
        begun = time.perf_counter()
        while True:
            for key, _ in selector.select():
                ready = key.fileobj
                assert isinstance(ready, socket.socket)
                _receive(ready, view)
                answers += 1
                ready.sendall(frames[turn % 4096])
                turn += 1
            passed = time.perf_counter() - begun
            if passed >= budget and answers >= at_least:
                return answers / passed
    finally:
        for each in sockets:
            each.close()
        selector.close()


def _receive(connection: socket.socket, view: memoryview) -> None:
    """Read until an answer has come whole, and nothing is left behind it; a PING of the server gets its PONG."""
    have, begin, answered = 0, 0, False
    while not answered or begin < have:
        count = connection.recv_into(view[have:])
        if count == 0:
            raise ConnectionError("the server closed the connection")
        have += count
        while have - begin >= 4 and have - begin >= (size := 4 + _SIZE.unpack_from(view, begin)[0]):
            if command_type(view[begin : begin + size]) == PING:
                connection.sendall(pong_frame())
            else:
                answered = True
            begin += size
