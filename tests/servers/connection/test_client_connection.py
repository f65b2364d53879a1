"""A connection of a protocol other than Pulsar's: lines of text, with a handler of thirty lines."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core.access.clients import Client
from broker_core.memory.permit_budget import PermitBudget
from broker_core.memory.permits import Permits
from broker_core.metrics.metrics import Metrics
from broker_core.servers.admission import ConnectionLimits, ConnectionPlace
from broker_core.servers.connection.answer_writer import OutgoingAnswer
from broker_core.servers.connection.client_connection import ClientConnection, ConnectionContext
from broker_core.servers.connection.command_handler import Awaited, Closing, FrameSender
from broker_core.servers.connection.server_load import ServerLoad
from broker_core.settings import PulsarSettings
from tests.support.clock import time_passes
from tests.support.eventually import eventually


class LineSplitter:
    def __init__(self) -> None:
        self._rest = b""

    @property
    def buffered(self) -> int:
        return len(self._rest)

    def feed(self, data: bytes) -> list[bytes]:
        *whole, self._rest = (self._rest + data).split(b"\n")
        return whole


class Echo:
    """``wait`` waits, ``large`` is answered with a megabyte, ``bug`` fails; anything else comes back."""

    def __init__(self, word: bytes, gate: asyncio.Event) -> None:
        self._word = word
        self._gate = gate
        self.released = False

    def small_answer(self) -> bytes | None:
        return b"<" + self._word + b">\n" if self._word.startswith(b"small") else None

    async def answer(self) -> OutgoingAnswer:
        if self._word == b"bug":
            raise KeyError("bug")
        if self._word == b"bad":
            raise ValueError("bad")
        await self._gate.wait()
        body = b"x" * 1_000_000 if self._word == b"large" else self._word
        return OutgoingAnswer(b"<", body, b">\n", asyncio.get_running_loop().time() + 10)

    def refusal(self, error: Exception) -> bytes | None:
        return b"refused\n" if isinstance(error, ValueError) else None

    def no_place(self) -> bytes:
        return b"no place\n"

    def holds(self, budget: PermitBudget) -> bool:
        return self._word == b"large" and budget.name == "heap"

    def release(self) -> None:
        self.released = True


class LineHandler:
    client = "lines"
    watches = False

    def __init__(self, client: Client, sender: FrameSender) -> None:
        self.known = client
        self.sender = sender
        self.is_closed = False
        self.rooms = 0
        self.reply: bytes | Closing | None = b"reply\n"
        self.reply_gate = asyncio.Event()
        self.has_received = False
        self.draining = False
        self.gate = asyncio.Event()
        self.gate.set()
        self.jobs: list[Echo] = []
        self.quiet: list[bool] = []
        self.next_tick: bytes | Closing | None = None

    def splitter(self) -> LineSplitter:
        return LineSplitter()

    def handle(self, command: bytes) -> bytes | Echo | Awaited | Closing | None:
        if command == b"bad frame":
            raise UnicodeError("no line")
        if command == b"broken":
            raise KeyError("broken")
        if command == b"hello" or self.draining:
            return b"hello\n" if not self.draining else None
        if command == b"bye":
            return Closing("authentication", "not let in", last=b"no\n")
        if command.startswith(b"wait"):
            return Awaited(partial(self._reply, command), holds=not command.startswith(b"wait aside"))
        job = Echo(command, self.gate)
        self.jobs.append(job)
        return job

    async def _reply(self, command: bytes) -> bytes | Closing | None:
        await self.reply_gate.wait()
        if command.endswith(b"text"):
            return b"text\n"
        if self.reply == b"bug":
            raise KeyError("bug")
        return self.reply

    def closed(self) -> None:
        self.is_closed = True

    def tick(self, *, quiet: bool) -> bytes | Closing | None:
        self.quiet.append(quiet)
        return self.next_tick

    def has_room(self) -> None:
        self.rooms += 1

    def is_bad_frame(self, error: Exception) -> bool:
        return isinstance(error, UnicodeError)


class Peer:
    """The other end, and what the server's end has noted."""

    def __init__(self, context: ConnectionContext) -> None:
        self.context = context
        self.metrics = context.metrics
        self.load = context.load
        self.places = ConnectionLimits(1)
        self.handlers: list[LineHandler] = []
        self.made: ClientConnection
        self.sock: socket.socket
        self._received = b""

    def handler(self, client: Client, sender: FrameSender) -> LineHandler:
        self.handlers.append(LineHandler(client, sender))
        return self.handlers[-1]

    def connection(self) -> ClientConnection:
        place = self.places.take("")
        assert isinstance(place, ConnectionPlace)
        self.made = ClientConnection(self.context, self.handler, place)
        return self.made

    @property
    def closed(self) -> bool:
        return not self.load.connections

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.sock, data)

    async def line(self) -> bytes:
        while b"\n" not in self._received:
            more = await asyncio.get_running_loop().sock_recv(self.sock, 65536)
            if not more:
                return self._received + b"(closed)"
            self._received += more
        line, _, self._received = self._received.partition(b"\n")
        return line + b"\n"

    def closings(self, reason: str) -> float | None:
        return self.metrics.registry.get_sample_value(
            "broker_core_connections_closed_total", {"reason": reason}
        )


@asynccontextmanager
async def connected(places: int = 0, **settings: Any) -> AsyncIterator[Peer]:
    permits, metrics = Permits(), Metrics()
    context = ConnectionContext(PulsarSettings(**settings), permits, metrics, ServerLoad(places))
    peer = Peer(context)
    ours, peer.sock = socket.socketpair()
    peer.sock.setblocking(False)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
    with capture_logs():
        await asyncio.get_running_loop().create_connection(peer.connection, sock=ours)
        try:
            yield peer
        finally:
            peer.made.abort()
            await eventually(lambda: peer.closed)
            await eventually(lambda: not peer.load.request_tasks)
            peer.sock.close()
    assert (peer.load.slots.taken, peer.load.buffered_bytes, permits.direct.acquired) == (0, 0, 0)
    assert all(job.released for job in peer.handlers[0].jobs)
    assert peer.handlers[0].is_closed
    permits.close()


async def test_each_command_is_answered_as_its_handler_says() -> None:
    async with connected() as peer:
        await peer.send(b"hello\nsma")
        assert await peer.line() == b"hello\n"
        await peer.send(b"ll\n")
        assert await peer.line() == b"<small>\n"
        await peer.send(b"later\n")
        assert await peer.line() == b"<later>\n"
        await peer.send(b"bad\n")
        assert await peer.line() == b"refused\n"
        assert peer.handlers[0].has_received


async def test_a_request_without_a_place_is_refused() -> None:
    async with connected(places=1) as peer:
        peer.handlers[0].gate.clear()
        await peer.send(b"first\nsecond\nsmall\n")
        assert await peer.line() == b"no place\n"
        assert await peer.line() == b"<small>\n", "what is known takes no place"
        peer.handlers[0].gate.set()
        assert await peer.line() == b"<first>\n"


async def test_a_connection_has_a_thousand_requests_at_the_most() -> None:
    async with connected() as peer:
        peer.handlers[0].gate.clear()
        await peer.send(b"later\n" * 1001)
        assert await peer.line() == b"no place\n"
        assert peer.load.slots.taken == len(peer.load.request_tasks) == 1000
        peer.handlers[0].gate.set()
        assert [await peer.line() for _ in range(1000)] == [b"<later>\n"] * 1000


@pytest.mark.parametrize(
    ("sent", "reason"),
    [(b"bad frame\n", "bad_frame"), (b"broken\n", "internal"), (b"bug\n", "internal")],
)
async def test_what_closes_a_connection(sent: bytes, reason: str) -> None:
    async with connected() as peer:
        await peer.send(sent)
        assert await peer.line() == b"(closed)"
        assert peer.closings(reason) == 1


async def test_what_was_asked_before_a_bad_frame_is_answered() -> None:
    async with connected() as peer:
        await peer.send(b"small\nsmaller\nbad frame\n")
        assert await peer.line() == b"<small>\n"
        assert await peer.line() == b"<smaller>\n"
        assert await peer.line() == b"(closed)"


async def test_an_idle_connection_gives_its_place_up() -> None:
    async with connected() as peer:
        (place,) = peer.places._places
        handler = peer.handlers[0]
        assert place.idle() is not None
        handler.watches = True
        assert place.idle() is None
        handler.watches = False
        handler.gate.clear()
        await peer.send(b"first\n")
        await eventually(lambda: len(handler.jobs) == 1)
        assert place.idle() is None, "it waits for an answer"
        handler.gate.set()
        assert await peer.line() == b"<first>\n"
        await eventually(lambda: place.idle() is not None)
        place.end()
        assert await peer.line() == b"(closed)"
        assert peer.closings("places") == 1
        await eventually(lambda: peer.places.taken == 0)


async def test_the_keep_alive_is_the_handlers() -> None:
    async with connected(keep_alive=0.01) as peer:
        handler = peer.handlers[0]
        handler.next_tick = b"there?\n"
        assert await peer.line() == b"there?\n"
        assert handler.quiet[0] is True
        handler.next_tick = Closing("keep_alive", "peer was silent", {"waiting_for": "a line"})
        await eventually(lambda: peer.closings("keep_alive") == 1)


async def test_a_slow_reader_of_an_answer_is_known_and_can_be_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected() as peer:
        answers, permits = peer.context.answers, peer.context.permits
        answers.make_room(permits.heap)
        await peer.send(b"large\n")
        await eventually(lambda: permits.direct.acquired > 0)
        answers.make_room(permits.heap)
        assert not peer.closings("slow"), "it has just begun"
        time_passes(monkeypatch, 100)
        answers.make_room(permits.direct)
        assert not peer.closings("slow"), "its memory is of another budget"
        answers.make_room(permits.heap)
        assert peer.closings("slow") == 1


async def test_a_connection_that_is_drained_closes_when_its_last_answer_has_left() -> None:
    async with connected() as peer:
        peer.handlers[0].gate.clear()
        await peer.send(b"last\n")
        await eventually(lambda: peer.load.slots.taken == 1)
        peer.made.drain()
        await peer.send(b"hello\n")
        peer.handlers[0].gate.set()
        assert await peer.line() == b"<last>\n"
        assert await peer.line() == b"(closed)"
        assert peer.closings("internal") is None or peer.closings("internal") == 0


async def test_what_follows_a_command_waits_for_its_reply() -> None:
    async with connected() as peer:
        handler = peer.handlers[0]
        await peer.send(b"wait\nsmall\nhello\n")
        await eventually(lambda: peer.load.request_tasks)
        await peer.send(b"smaller\n")
        assert not handler.jobs
        handler.reply_gate.set()
        assert [await peer.line() for _ in range(4)] == [
            b"reply\n",
            b"<small>\n",
            b"hello\n",
            b"<smaller>\n",
        ]


async def test_other_commands_go_on_beside_an_awaited_reply() -> None:
    async with connected() as peer:
        handler = peer.handlers[0]
        await peer.send(b"wait aside\n")
        await eventually(lambda: peer.load.request_tasks)
        await peer.send(b"small\n")
        assert await peer.line() == b"<small>\n"
        handler.reply_gate.set()
        assert await peer.line() == b"reply\n"


async def test_a_reply_may_be_none_or_fail() -> None:
    async with connected() as peer:
        handler = peer.handlers[0]
        handler.reply_gate.set()
        handler.reply = None
        await peer.send(b"wait\nhello\n")
        assert await peer.line() == b"hello\n"
        handler.reply = b"bug"
        await peer.send(b"wait\n")
        assert await peer.line() == b"(closed)"
        assert peer.closings("internal") == 1


async def test_a_long_command_that_waits_counts_as_memory() -> None:
    async with connected() as peer:
        await peer.send(b"wait" + b"x" * 100_000 + b"\n")
        await eventually(lambda: peer.load.buffered_bytes == 100_004)
        peer.handlers[0].reply_gate.set()
        assert await peer.line() == b"reply\n"
        peer.load.hold(64 * 1024 * 1024)
        await peer.send(b"wait" + b"x" * 100_000 + b"\n")
        assert await peer.line() == b"(closed)"
        assert peer.closings("buffers") == 1
        peer.load.hold(-64 * 1024 * 1024)


async def test_the_client_reads_the_last_frame_and_nothing_after_it_is_looked_at() -> None:
    async with connected() as peer:
        handler = peer.handlers[0]
        await peer.send(b"hello\nbye\nhello\nlater\n")
        assert await peer.line() == b"hello\n"
        await peer.send(b"small\n" * 100)
        assert await peer.line() == b"no\n"
        assert await peer.line() == b"(closed)"
        assert not handler.jobs
        assert not handler.is_closed, "the client has not read all yet"
        peer.sock.shutdown(socket.SHUT_WR)
        await eventually(lambda: peer.closed)
        assert peer.closings("authentication") == 1


async def test_a_reply_may_be_the_last_frame_and_requests_under_way_end_with_it() -> None:
    async with connected() as peer:
        handler = peer.handlers[0]
        handler.gate.clear()
        await peer.send(b"request\nwait aside\nwait text\nhello\n")
        await eventually(lambda: len(peer.load.request_tasks) == 3)
        handler.reply = Closing("authentication", None, last=b"no\n")
        handler.reply_gate.set()  # of the text too, which is sent no more
        assert await peer.line() == b"no\n"
        assert await peer.line() == b"(closed)"
        await eventually(lambda: not peer.load.request_tasks)


async def test_what_a_handler_does_without_a_command() -> None:
    async with connected() as peer:
        handler = peer.handlers[0]
        handler.sender.send(b"news\n")
        assert await peer.line() == b"news\n"
        handler.gate.clear()
        await peer.send(b"request\n")
        await eventually(lambda: peer.load.request_tasks)
        handler.sender.send(Closing("expired", "credentials have expired"))
        handler.sender.send(b"news\n")
        assert await peer.line() == b"(closed)"
        assert peer.closings("expired") == 1


async def test_one_that_never_closes_is_closed_after_the_last_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected(keep_alive=0.01) as peer:
        handler = peer.handlers[0]
        await peer.send(b"bye\n")
        assert await peer.line() == b"no\n"
        handler.next_tick = Closing("keep_alive", "peer was silent")
        time_passes(monkeypatch, 2.0)
        await eventually(lambda: peer.closed)
        assert (peer.closings("authentication"), peer.closings("keep_alive")) == (1, 0)


async def test_a_flood_after_the_last_frame_ends_it() -> None:
    async with connected() as peer:
        await peer.send(b"bye\n")
        assert await peer.line() == b"no\n"
        with contextlib.suppress(ConnectionError):
            while not peer.closed:
                await peer.send(b"x" * 10_000)
                await asyncio.sleep(0)


async def test_a_frame_that_is_not_ended_can_be_dropped() -> None:
    async with connected() as peer:
        connection = peer.made
        await peer.send(b"x" * 1000)
        await eventually(lambda: connection.unfinished == 1000)
        assert peer.load.buffered_bytes == 1000
        with capture_logs() as logs:
            connection.drop_unfinished()
        assert (peer.load.buffered_bytes, connection.unfinished) == (0, 0)
        assert peer.closings("buffers") == 1
        assert logs[0]["event"] == "peer holds a frame unfinished while others have no room"
        assert await peer.line() == b"(closed)"
