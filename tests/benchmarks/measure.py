"""Latency of one connection, and the rate of many at once."""

from __future__ import annotations

import contextlib
import selectors
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import cycle

from tests.benchmarks.wire_client import ERROR, FrameClient, RawClient, command_type, read_answer

__all__ = ["Latency", "Rate", "asked_at_once", "latency", "percentile"]


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


@dataclass(frozen=True, slots=True)
class Rate:
    """Answers in a second, and how long one takes, in seconds."""

    per_second: float
    p50: float
    p99: float


def asked_at_once(
    address: tuple[str, int],
    frame: Callable[[int], bytes],
    *,
    clients: int = 16,
    budget: float,
    at_least: int,
) -> Rate:
    """So many clients, each of which asks again as soon as it has its answer. Raises :exc:`RuntimeError` for an error.

    One thread and one selector: the client must leave the cores to the server. Small answers only.
    """
    # Made before the clock runs; no two of the first ones are the same question.
    frames = cycle([frame(turn) for turn in range(4096)])
    seconds: list[float] = []
    with selectors.DefaultSelector() as selector, contextlib.ExitStack() as stack:
        asked: dict[FrameClient, float] = {}
        for _ in range(clients):
            client = stack.enter_context(contextlib.closing(FrameClient(address)))
            selector.register(client.socket, selectors.EVENT_READ, client)
            asked[client] = 0.0
        begun = time.perf_counter()
        for client in asked:
            asked[client] = time.perf_counter()
            client.socket.sendall(next(frames))
        while True:
            for key, _ in selector.select():
                client = key.data
                for answer in client.frames():
                    if command_type(memoryview(answer)) == ERROR:
                        raise RuntimeError(f"an error under load: {read_answer(memoryview(answer))}")
                    seconds.append(time.perf_counter() - asked[client])
                    asked[client] = time.perf_counter()
                    client.socket.sendall(next(frames))
            passed = time.perf_counter() - begun
            if passed >= budget and len(seconds) >= at_least:
                return Rate(len(seconds) / passed, percentile(seconds, 0.5), percentile(seconds, 0.99))
