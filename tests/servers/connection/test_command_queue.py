"""Commands run in order, a few milliseconds at a time, and not while answers wait for their reader."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from broker_core.concurrency.loop_turns import loop_turn
from broker_core.servers.connection.command_queue import CommandQueue
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.frames import FrameDecoder, FrameError
from tests.support.eventually import eventually

MAX_FRAME = 1 << 20


class Receiver(asyncio.Protocol):
    """A connection with a queue that notes what happens; ``peer`` is the other end."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.failures: list[Exception] = []
        self.crowded = False
        self.counted = 0
        self.open = False
        self.rounds: list[list[int]] = []
        self.on_handle: Callable[[int], None] = lambda _: None
        self.lost = asyncio.Event()
        self.transport: asyncio.Transport
        self.queue: CommandQueue
        self.peer: socket.socket

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.queue = CommandQueue(
            transport,
            FrameDecoder(MAX_FRAME),
            handle=self.handle,
            failed=self.fail,
            is_crowded=lambda: self.crowded,
            begin=self.begin,
            end=self.end,
            count=self.count,
        )

    def data_received(self, data: bytes) -> None:
        self.queue.feed(data)

    def connection_lost(self, _error: Exception | None) -> None:
        self.queue.close()
        self.lost.set()

    def handle(self, command: bytes) -> None:
        request_id = commands.request_id_of(commands.decode(command))
        assert request_id is not None
        self.ids.append(request_id)
        if self.open:
            self.rounds[-1].append(request_id)
        self.on_handle(request_id)

    def begin(self) -> None:
        assert not self.open
        self.open = True
        self.rounds.append([])

    def end(self) -> None:
        assert self.open
        self.open = False

    def fail(self, error: Exception) -> None:
        self.failures.append(error)
        self.transport.abort()

    def count(self, change: int) -> None:
        self.counted += change

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.peer, data)

    async def handled(self, count: int) -> None:
        await eventually(lambda: len(self.ids) >= count)


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    ours, peer = socket.socketpair()
    peer.setblocking(False)
    _, made = await asyncio.get_running_loop().create_connection(Receiver, sock=ours)
    made.peer = peer
    try:
        yield made
    finally:
        made.transport.abort()
        await made.lost.wait()
        peer.close()
        assert made.counted == 0
        assert made.queue.size == 0


def question(number: int, **fields: Any) -> bytes:
    return commands.get_topics(number, "public/default", **fields)


async def test_commands_are_handled_in_order_however_they_come() -> None:
    async with receiving() as r:
        stream = b"".join(question(number) for number in range(300))
        await r.send(question(1000))
        for start in range(0, len(stream), 777):
            await r.send(stream[start : start + 777])
        await r.handled(301)
        assert r.ids == [1000, *range(300)]
        assert r.queue.size == 0


async def test_commands_that_come_together_are_handled_together() -> None:
    async with receiving() as r:
        turn = loop_turn()
        pieces: list[int] = []
        r.on_handle = lambda _: pieces.append(turn.received)
        await r.send(question(0))
        await r.handled(1)
        assert r.rounds == []
        await r.send(question(1) + question(2) + question(3))
        await r.handled(4)
        assert r.rounds == [[1, 2, 3]]
        await r.send(question(4) + question(5))
        await r.handled(6)
        assert r.rounds == [[1, 2, 3], [4, 5]]
        assert not r.open
        alone, *first, fourth, fifth = pieces
        assert alone == 0
        assert len(set(first)) == 1
        assert fourth == fifth != first[0]
        assert turn.received == 0


async def test_what_is_handled_together_ends_with_an_error_too() -> None:
    async with receiving() as r:

        def fail(number: int) -> None:
            raise KeyError("bug")

        r.on_handle = fail
        await r.send(question(1) + question(2))
        await r.lost.wait()
        assert r.rounds == [[1]]
        assert not r.open
        assert loop_turn().received == 0


async def test_an_incomplete_frame_is_counted() -> None:
    async with receiving() as r:
        frame = question(7, topics_pattern="x" * 5000)
        await r.send(frame[:3000])
        await eventually(lambda: r.queue.size == 3000)
        assert r.counted == 3000
        await r.send(frame[3000:])
        await r.handled(1)
        assert r.queue.size == r.counted == 0


async def test_nothing_is_handled_nor_read_while_answers_wait() -> None:
    async with receiving() as r:
        r.crowded = True
        await r.send(question(1) + question(2))
        await eventually(lambda: r.queue.size > 0)
        assert not r.transport.is_reading()
        assert r.ids == []
        r.crowded = False
        r.queue.go_on()
        await r.handled(2)  # the turn of the loop may have time for one
        assert r.ids == [1, 2]
        await eventually(r.transport.is_reading)
        assert r.counted == 0


async def test_it_is_crowded_again_in_between() -> None:
    async with receiving() as r:

        def crowd(_: int) -> None:
            r.crowded = True

        r.on_handle = crowd
        await r.send(b"".join(question(number) for number in range(3)))
        for done in range(1, 4):
            await r.handled(done)
            assert len(r.ids) == done
            r.crowded = False
            r.queue.go_on()
        assert r.ids == [0, 1, 2]


async def test_a_single_command_waits_too() -> None:
    """One PING a packet, from a peer that reads no PONG, must not pile up either."""
    async with receiving() as r:
        r.crowded = True
        await r.send(question(1))
        await eventually(lambda: r.queue.size > 0)
        assert r.ids == []
        assert not r.transport.is_reading()


async def test_others_have_a_turn_between_the_commands_of_one_chunk() -> None:
    async with receiving() as r:
        turns: list[int] = []

        def work(_: int) -> None:
            asyncio.get_running_loop().call_soon(lambda: turns.append(len(r.ids)))
            until = time.perf_counter() + 0.003  # longer than one connection may keep the others waiting
            while time.perf_counter() < until:
                pass

        r.on_handle = work
        await r.send(b"".join(question(number) for number in range(5)))
        await r.handled(5)
        await eventually(lambda: len(turns) == 5)
        assert r.ids == [0, 1, 2, 3, 4]
        assert turns == [1, 2, 3, 4, 5]
        assert r.transport.is_reading()


@pytest.mark.parametrize("bad", [b"\xff" * 8, b"\0\0\0\x08\0\0\0\x04\xff\xff\xff\xff", b"\0\0\0\x04\0\0\0\0"])
async def test_a_bad_frame_ends_it(bad: bytes) -> None:
    async with receiving() as r:
        await r.send(question(1))
        await r.handled(1)
        await r.send(bad + question(2))
        await r.lost.wait()
        assert isinstance(r.failures[0], FrameError)
        assert r.ids == [1]


async def test_an_error_of_the_handler_ends_it() -> None:
    async with receiving() as r:

        def fail(number: int) -> None:
            if number == 2:
                raise KeyError("bug")

        r.on_handle = fail
        await r.send(question(1) + question(2) + question(3))
        await r.lost.wait()
        assert [type(error) for error in r.failures] == [KeyError]
        assert r.ids == [1, 2]


async def test_what_waits_is_dropped_with_the_connection() -> None:
    async with receiving() as r:
        r.crowded = True
        await r.send(question(1) + question(2) + b"\0\0")
        await eventually(lambda: r.queue.size > 0)
        r.transport.abort()
        await r.lost.wait()
        r.crowded = False
        r.queue.go_on()
        assert r.ids == []
