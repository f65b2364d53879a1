"""Frames arrive whole and in order, and permits are always released."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from broker_core.errors import TooManyRequests
from broker_core.listing.fields_reader import FieldsReader
from broker_core.memory.permits import DIRECT_RESERVE, Permits
from broker_core.servers.connection.answer_writer import CROWDED, PUSHED, AnswerWriter, OutgoingAnswer
from broker_core.servers.connection.large_answers import LEAST_PIECE, PIECE, WINDOW, LargeAnswers
from broker_core.settings import LimitsSettings
from tests.support.clock import AGES, time_passes
from tests.support.eventually import eventually

FOREVER = float("inf")
KIB = 1024


class Wire(asyncio.Protocol):
    """A connection with an writer; the other end is a socket that is read when a test says so."""

    def __init__(self, permits: Permits, write_timeout: float, min_rate: int) -> None:
        self.permits = permits
        self.answers = LargeAnswers()
        self._write_timeout = write_timeout
        self._min_rate = min_rate
        self.stalled: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self.lost = asyncio.Event()
        self.rooms = 0
        self.transport: asyncio.Transport
        self.writer: AnswerWriter
        self.ours: socket.socket
        self.peer: socket.socket
        self.break_before_resuming = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.writer = AnswerWriter(
            transport,
            self.permits,
            self.answers,
            self._write_timeout,
            min_rate=self._min_rate,
            cut=self.abort,
            on_stalled=self.stalled.set_result,
            on_room=self.room,
        )

    def abort(self) -> None:
        self.transport.abort()

    def room(self) -> None:
        assert not self.writer.is_crowded
        self.rooms += 1

    def pause_writing(self) -> None:
        self.writer.paused()

    def resume_writing(self) -> None:
        if self.break_before_resuming:
            self.ours.shutdown(socket.SHUT_WR)
        self.writer.resumed()

    def connection_lost(self, _error: Exception | None) -> None:
        self.writer.closed()
        self.lost.set()

    @property
    def waits(self) -> bool:
        """Whether the transport holds bytes that the peer has not taken."""
        return self.transport.get_write_buffer_size() > 0

    async def read(self, size: int) -> bytes:
        """So many bytes at the other end, or all until the end of the connection if there are less."""
        loop, read = asyncio.get_running_loop(), bytearray()
        while len(read) < size:
            data = await loop.sock_recv(self.peer, min(64 * KIB, size - len(read)))
            if not data:
                break
            read += data
        return bytes(read)

    def assert_nothing_held(self) -> None:
        assert self.permits.direct.acquired == self.permits.reserve.acquired == 0
        assert self.permits.direct.queue_size == self.permits.reserve.queue_size == 0

    def fill(self) -> bytes:
        """Send frames until the transport holds some of it."""
        sent = bytearray()
        while not self.waits:
            frame = bytes([len(sent) % 251]) * (4 * KIB)
            self.writer.send(frame)
            sent += frame
        return bytes(sent)


@asynccontextmanager
async def wire(
    limits: LimitsSettings | None = None,
    write_timeout: float = 60.0,
    buffer: int = 8 * KIB,
    min_rate: int = 0,
    permits: Permits | None = None,
    reserve: int = DIRECT_RESERVE,
) -> AsyncIterator[Wire]:
    """A connection that buffers so many bytes in the kernel."""
    ours, peer = socket.socketpair()
    for each in (ours, peer):
        each.setblocking(False)
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
    alone = permits is None
    permits = permits or Permits(limits, direct_reserve=reserve)
    _, made = await asyncio.get_running_loop().create_connection(
        lambda: Wire(permits, write_timeout, min_rate), sock=ours
    )
    made.ours, made.peer = ours, peer
    try:
        yield made
    finally:
        made.transport.abort()
        await made.lost.wait()
        peer.close()
        if alone:
            made.assert_nothing_held()


def body_of(size: int, seed: int) -> memoryview:
    return memoryview(random.Random(seed).randbytes(size))


def start(work: Awaitable[Any]) -> asyncio.Task[Any]:
    async def run() -> Any:
        return await work

    return asyncio.create_task(run())


async def test_frames_go_out_in_order_and_at_once() -> None:
    async with wire() as w:
        w.writer.send(b"one")
        assert w.writer.send_answer_now(b"<" + b"two" + b">")
        await w.writer.send_answer(OutgoingAnswer(b"[", b"three", b"]", FOREVER))
        assert await w.read(13) == b"one<two>[three]"[:13]
        assert w.writer.is_idle
        w.assert_nothing_held()


async def test_a_small_answer_holds_its_permits_until_its_bytes_have_left() -> None:
    async with wire() as w:
        before = w.fill()
        assert w.writer.send_answer_now(b"<" + b"x" * 1000 + b">")
        assert w.permits.reserve.acquired == 1002
        assert not w.writer.is_idle
        assert await w.read(len(before) + 1002) == before + b"<" + b"x" * 1000 + b">"
        await eventually(lambda: w.writer.is_idle)
        assert w.permits.reserve.acquired == 0


def writes_of(w: Wire, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What is given to the transport from now on, each time that something is."""
    written: list[bytes] = []
    write = w.transport.write

    def noted(data: bytes) -> None:
        written.append(bytes(data))
        write(data)

    monkeypatch.setattr(w.transport, "write", noted)
    return written


async def test_small_answers_are_gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    async with wire() as w:
        written = writes_of(w, monkeypatch)
        before = w.permits.reserve.granted_at_once
        w.writer.gather()
        assert w.writer.send_answer_now(b"one")
        assert w.writer.send_answer_now(b"two")
        assert written == []
        w.writer.write_gathered()
        assert written == [b"onetwo"]
        assert w.permits.reserve.granted_at_once == before + 2
        assert w.writer.send_answer_now(b"three")
        w.writer.write_gathered()
        assert written == [b"onetwo", b"three"]
        assert await w.read(11) == b"onetwothree"
        assert w.writer.is_idle
        w.assert_nothing_held()


async def test_other_frames_wait_for_no_gathering(monkeypatch: pytest.MonkeyPatch) -> None:
    async with wire() as w:
        written = writes_of(w, monkeypatch)
        w.writer.gather()
        assert w.writer.send_answer_now(b"answer")
        w.writer.send(b"pong")
        assert written == [b"answer", b"pong"]
        assert w.writer.send_answer_now(b"last")
        w.writer.write_gathered()
        assert await w.read(14) == b"answerponglast"


async def test_no_more_is_gathered_than_a_small_answer_has(monkeypatch: pytest.MonkeyPatch) -> None:
    async with wire(buffer=1024 * KIB) as w:
        written = writes_of(w, monkeypatch)
        answers = [bytes([number]) * (20 * KIB) for number in range(7)]
        w.writer.gather()
        assert all(w.writer.send_answer_now(answer) for answer in answers)
        w.writer.write_gathered()
        assert [len(each) for each in written] == [60 * KIB, 60 * KIB, 20 * KIB]
        assert await w.read(140 * KIB) == b"".join(answers)


async def test_gathered_answers_that_wait_hold_permits(monkeypatch: pytest.MonkeyPatch) -> None:
    async with wire() as w:
        answers = [bytes([number]) * (20 * KIB) for number in range(8)]
        before = w.permits.reserve.granted_at_once
        w.writer.gather()
        assert all(w.writer.send_answer_now(answer) for answer in answers)
        w.writer.write_gathered()
        assert w.waits
        assert w.permits.reserve.acquired == 160 * KIB
        assert w.permits.reserve.granted_at_once == before + 8
        assert await w.read(160 * KIB) == b"".join(answers)
        await eventually(lambda: w.writer.is_idle)
        w.assert_nothing_held()


async def test_nothing_is_gathered_without_room_for_it() -> None:
    async with wire(LimitsSettings(direct_permits=60 * KIB)) as w:
        assert w.permits.reserve.maximum == 30 * KIB
        held = await w.permits.reserve.acquire(8 * KIB)
        w.writer.gather()
        assert w.writer.send_answer_now(b"a" * (20 * KIB))
        assert not w.writer.send_answer_now(b"b" * (20 * KIB))
        w.writer.write_gathered()
        assert await w.read(20 * KIB) == b"a" * (20 * KIB)
        held.release()


async def test_gathered_answers_are_dropped_with_the_connection() -> None:
    async with wire() as w:
        w.writer.gather()
        assert w.writer.send_answer_now(b"one")
        w.transport.abort()
        w.writer.write_gathered()
        await w.lost.wait()


async def test_a_small_answer_is_no_large_one_and_without_permits_it_is_not_sent_now() -> None:
    async with wire() as w:
        assert not w.writer.send_answer_now(b"<" + b"x" * (64 * KIB) + b">")
        held = await w.permits.reserve.acquire(w.permits.reserve.maximum)
        assert not w.writer.send_answer_now(b"<" + b"x" + b">")
        waiting = start(w.writer.send_answer(OutgoingAnswer(b"<", b"x", b">", FOREVER)))
        await eventually(lambda: w.permits.reserve.queue_size == 1)
        held.release()
        await waiting
        assert await w.read(3) == b"<x>"


async def test_an_answer_that_can_be_sent_at_once_waits_for_no_turn_of_the_loop() -> None:
    async with wire() as w:
        turns: list[None] = []
        asyncio.get_running_loop().call_soon(turns.append, None)
        await w.writer.send_answer(OutgoingAnswer(b"<", b"bytes", b">", FOREVER))
        reader = FieldsReader(iter((memoryview(b"fi"), memoryview(b"elds"))), 6)
        await w.writer.send_answer(OutgoingAnswer(b"<", reader, b">", FOREVER))
        assert turns == []
        assert await w.read(15) == b"<bytes><fields>"


async def test_nobody_passes_an_answer_that_waits_for_permits() -> None:
    async with wire(LimitsSettings(direct_permits=60 * KIB)) as w:
        held = await w.permits.reserve.acquire(20 * KIB)
        first = start(w.writer.send_answer(OutgoingAnswer(b"", b"1" * (20 * KIB), b"", FOREVER)))
        await eventually(lambda: w.permits.reserve.queue_size == 1)
        second = start(w.writer.send_answer(OutgoingAnswer(b"", b"2" * (5 * KIB), b"", FOREVER)))
        await asyncio.sleep(0)
        held.release()
        await asyncio.gather(first, second)
        assert await w.read(25 * KIB) == b"1" * (20 * KIB) + b"2" * (5 * KIB)


async def test_a_peer_that_does_not_read_gets_only_so_much_that_it_did_not_ask_for() -> None:
    async with wire() as w:
        pushed = 0
        while w.writer.push(bytes([pushed % 251]) * KIB):
            pushed += 1
        assert w.writer.has_unread()
        assert w.permits.reserve.acquired <= PUSHED + KIB
        assert await w.read(pushed * KIB) == b"".join(bytes([each % 251]) * KIB for each in range(pushed))
        await eventually(lambda: w.rooms > 0 and not w.writer.has_unread())
        w.assert_nothing_held()


async def test_what_others_left_unread_does_not_make_a_peer_slow() -> None:
    async with wire() as w:
        held = await w.permits.reserve.acquire(w.permits.reserve.maximum)
        assert not w.writer.push(b"x")
        assert not w.writer.has_unread()
        held.release()
        assert w.writer.push(b"x")
        assert await w.read(1) == b"x"


async def test_a_large_answer_that_is_being_written_does_not_make_a_peer_slow() -> None:
    async with wire() as w:
        body = body_of(200 * KIB, 1)
        sending = start(w.writer.send_answer(OutgoingAnswer(b"", body, b"", FOREVER)))
        await eventually(lambda: w.waits)
        assert not w.writer.push(b"x" * (PUSHED + 1))
        assert not w.writer.has_unread()
        assert await w.read(200 * KIB) == bytes(body)
        await sending
        await eventually(lambda: w.rooms > 0)
        assert w.writer.push(b"x" * (PUSHED + 1))
        assert await w.read(PUSHED + 1) == b"x" * (PUSHED + 1)


async def test_a_peer_that_does_not_read_gets_only_so_many_answers() -> None:
    """What one peer leaves unread must not take the reserve from all others."""
    async with wire() as w:
        answers = [bytes([number]) * (32 * KIB) for number in range(100)]
        tasks = [start(w.writer.send_answer(OutgoingAnswer(b"", answer, b"", FOREVER))) for answer in answers]
        await eventually(lambda: w.writer.is_crowded)
        assert not w.writer.send_answer_now(b"x")
        assert CROWDED < w.permits.reserve.acquired <= CROWDED + 2 * 32 * KIB
        assert await w.read(100 * 32 * KIB) == b"".join(answers)
        await asyncio.gather(*tasks)
        await eventually(lambda: w.writer.is_idle)
        assert w.rooms > 0
        w.assert_nothing_held()


async def test_whoever_waits_for_a_peer_that_does_not_read_is_told_in_time() -> None:
    async with wire() as w:
        w.fill()
        w.writer.send(b"x" * (CROWDED + 1))
        loop = asyncio.get_running_loop()
        for answer in (b"small", b"large" * WINDOW):
            with pytest.raises(TooManyRequests, match="could not be sent in time"):
                await w.writer.send_answer(OutgoingAnswer(b"", answer, b"", loop.time() + 0.01))
        w.assert_nothing_held()


async def test_a_large_answer_goes_out_in_pieces_and_others_wait() -> None:
    async with wire() as w:
        body = body_of(3 * WINDOW + 12_345, 1)
        large = start(w.writer.send_answer(OutgoingAnswer(b"head", body, b"tail", FOREVER)))
        await eventually(lambda: w.waits)
        assert LEAST_PIECE <= w.permits.direct.acquired <= PIECE
        assert w.transport.get_write_buffer_size() <= w.permits.direct.acquired
        w.writer.send(b"pong")
        assert w.writer.send_answer_now(b"<" + b"small" + b">")
        expected = b"head" + bytes(body) + b"tail" + b"pong" + b"<small>"
        assert await w.read(len(expected)) == expected
        await large
        await eventually(lambda: w.writer.is_idle)


async def test_large_answers_of_one_connection_go_one_after_the_other_with_permits_for_one_piece() -> None:
    async with wire() as w:
        bodies = [body_of(WINDOW + 1000 * seed, seed) for seed in range(4)]
        tasks = [
            start(w.writer.send_answer(OutgoingAnswer(b"h%d" % n, body, b"t", FOREVER)))
            for n, body in enumerate(bodies)
        ]
        await eventually(lambda: w.waits)
        expected = b"".join(b"h%d" % n + bytes(body) + b"t" for n, body in enumerate(bodies))
        read = b""
        while len(read) < len(expected):
            assert w.permits.direct.acquired <= PIECE
            read += await w.read(min(100_000, len(expected) - len(read)))
        assert read == expected
        await asyncio.gather(*tasks)


async def test_a_small_answer_does_not_wait_for_permits_behind_a_large_one() -> None:
    async with wire() as w:
        held = await w.permits.direct.acquire(w.permits.direct.maximum)
        large = start(w.writer.send_answer(OutgoingAnswer(b"", b"L" * WINDOW, b"", FOREVER)))
        await eventually(lambda: w.permits.direct.queue_size == 1)
        await w.writer.send_answer(OutgoingAnswer(b"<", b"small", b">", FOREVER))
        assert await w.read(7) == b"<small>"
        held.release()
        assert await w.read(WINDOW) == b"L" * WINDOW
        await large


async def test_no_permits_in_time_is_too_many_requests_and_nothing_is_sent() -> None:
    async with wire(LimitsSettings(permit_timeout=0.01)) as w:
        held = await w.permits.direct.acquire(w.permits.direct.maximum)
        with pytest.raises(TooManyRequests, match="Cannot acquire permits for direct memory") as raised:
            await w.writer.send_answer(OutgoingAnswer(b"", b"L" * WINDOW, b"", FOREVER))
        assert raised.value.reason == "direct_timeout"
        held.release()
        w.writer.send(b"next")
        assert await w.read(4) == b"next"


async def test_a_peer_that_reads_nothing_of_a_window_has_stalled() -> None:
    async with wire(write_timeout=0.02) as w:
        w.fill()
        assert await asyncio.wait_for(w.stalled, 60) == 0.02


async def test_a_peer_that_reads_a_large_answer_too_slowly_has_stalled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each piece leaves in good time, and all of them together do not."""
    async with wire(write_timeout=AGES, min_rate=WINDOW // 1000) as w:
        # For all of it an hour, and a thousand seconds for its size.
        large = start(w.writer.send_answer(OutgoingAnswer(b"", body_of(WINDOW, 6), b"", FOREVER)))
        await eventually(lambda: w.waits)
        for _ in range(3):
            assert not w.stalled.done()
            time_passes(monkeypatch, 1500)
            await w.read(64 * KIB)  # all that waits, and so the server writes on
            await eventually(lambda: w.waits)
        time_passes(monkeypatch, 150)
        assert 0 < await w.stalled < 150
        w.transport.abort()
        await large


async def test_what_the_server_takes_itself_is_not_the_peers_slowness(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with wire(write_timeout=60, min_rate=64 * KIB) as w:
        body = body_of(WINDOW, 7)
        held = await w.permits.direct.acquire(w.permits.direct.maximum)
        large = start(w.writer.send_answer(OutgoingAnswer(b"", body, b"", FOREVER)))
        await eventually(lambda: w.permits.direct.queue_size == 1)
        time_passes(monkeypatch, 20)
        held.release()
        assert await w.read(len(body)) == bytes(body)
        await large
        assert not w.stalled.done()


async def test_slow_readers_leave_room_for_others() -> None:
    """However many answers are written slowly, another one begins at once and goes on."""
    limits = LimitsSettings(direct_permits=4 * WINDOW)
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(wire(limits))
        slow = [await stack.enter_async_context(wire(permits=first.permits)) for _ in range(40)]
        body = body_of(WINDOW, 8)
        tasks = [start(each.writer.send_answer(OutgoingAnswer(b"", body, b"", FOREVER))) for each in slow]
        await eventually(lambda: all(each.waits for each in slow))
        assert first.permits.direct.queue_size == 0
        waiting = sum(each.transport.get_write_buffer_size() for each in slow)
        assert waiting <= first.permits.direct.acquired <= first.permits.direct.maximum
        quick = start(first.writer.send_answer(OutgoingAnswer(b"", body, b"", FOREVER)))
        assert await first.read(len(body)) == bytes(body)
        await quick
        for each in slow:
            each.transport.abort()
        await asyncio.gather(*tasks)


async def test_a_peer_that_reads_has_not_stalled() -> None:
    async with wire(write_timeout=60) as w:
        body = body_of(4 * WINDOW, 2)
        large = start(w.writer.send_answer(OutgoingAnswer(b"", body, b"", FOREVER)))
        assert await w.read(len(body)) == bytes(body)
        await large
        assert not w.stalled.done()
        assert w.writer.is_idle


@pytest.mark.parametrize("size", [1000, 4 * WINDOW])
async def test_when_the_connection_ends_everybody_goes_on_and_permits_return(size: int) -> None:
    async with wire() as w:
        w.fill()
        w.writer.send(b"x" * (CROWDED + 1))
        assert w.writer.is_crowded
        tasks = [
            start(w.writer.send_answer(OutgoingAnswer(b"", b"y" * size, b"", FOREVER))) for _ in range(5)
        ]
        await asyncio.sleep(0)
        w.transport.abort()
        await asyncio.wait_for(asyncio.gather(*tasks), 60)
        await w.lost.wait()
        w.assert_nothing_held()
        assert w.rooms == 0 or not w.writer.is_crowded


async def test_the_connection_ends_in_the_midst_of_a_window() -> None:
    async with wire() as w:
        large = start(w.writer.send_answer(OutgoingAnswer(b"h", body_of(8 * WINDOW, 3), b"t", FOREVER)))
        await eventually(lambda: w.waits)
        for _ in range(10):
            w.writer.send(b"pong")
        assert w.writer.send_answer_now(b"small")
        w.peer.close()
        await asyncio.wait_for(large, 60)
        await w.lost.wait()
        w.assert_nothing_held()


async def test_half_an_answer_ends_the_connection() -> None:
    """A task that is cancelled in the midst of a frame leaves nothing that the peer could understand."""
    async with wire() as w:
        large = start(w.writer.send_answer(OutgoingAnswer(b"h", body_of(8 * WINDOW, 4), b"t", FOREVER)))
        await eventually(lambda: w.waits)
        for _ in range(10):
            w.writer.send(b"pong")
        large.cancel()
        with pytest.raises(asyncio.CancelledError):
            await large
        await asyncio.wait_for(w.lost.wait(), 60)
        w.assert_nothing_held()


async def test_cancelled_while_waiting_for_the_turn_leaves_the_connection_alone() -> None:
    async with wire() as w:
        body = body_of(2 * WINDOW, 5)
        first = start(w.writer.send_answer(OutgoingAnswer(b"", body, b"", FOREVER)))
        second = start(w.writer.send_answer(OutgoingAnswer(b"", body, b"", FOREVER)))
        await eventually(lambda: w.waits)
        second.cancel()
        assert await w.read(len(body)) == bytes(body)
        await first
        w.writer.send(b"alive")
        assert await w.read(5) == b"alive"
        with pytest.raises(asyncio.CancelledError):
            await second


async def test_nothing_is_written_once_the_connection_is_over(caplog: pytest.LogCaptureFixture) -> None:
    async with wire() as w:
        w.transport.abort()
        for _ in range(20):
            w.writer.send(b"late")
            assert w.writer.send_answer_now(b"late")
        await w.writer.send_answer(OutgoingAnswer(b"", b"y" * WINDOW, b"", FOREVER))
        await w.lost.wait()
        w.assert_nothing_held()
    assert "socket.send() raised exception" not in caplog.text


async def test_a_failed_write_out_of_flow_control_ends_the_connection_once() -> None:
    """Within ``resume_writing`` a write that fails would end it twice, which asyncio does not survive."""
    failures: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    async with wire() as w:
        before = w.fill()
        w.writer.send(b"next")
        w.break_before_resuming = True
        await w.read(len(before))
        await asyncio.wait_for(w.lost.wait(), 60)
    assert not failures


@pytest.mark.parametrize("seed", range(5))
async def test_any_mix_of_frames_arrives_whole(seed: int) -> None:
    """Frames of all sizes from many tasks, a peer that reads as it likes: each frame arrives once, in one piece."""
    rng = random.Random(seed)
    async with wire(LimitsSettings(direct_permits=2 * WINDOW), reserve=100 * KIB, buffer=64 * KIB) as w:
        sizes = [rng.choice((10, 5000, 60_000, 200_000, WINDOW + 17)) for _ in range(60)]
        tasks = []
        for number, size in enumerate(sizes):
            head = number.to_bytes(4, "big") + size.to_bytes(4, "big")
            body = bytes([number]) * size
            if size == 10:
                w.writer.send(head + body + b"!")
            else:
                tasks.append(start(w.writer.send_answer(OutgoingAnswer(head, body, b"!", FOREVER))))
            if rng.random() < 0.2:
                await asyncio.sleep(0)
        left = set(range(len(sizes)))
        while left:
            head = await w.read(8)
            number, size = int.from_bytes(head[:4], "big"), int.from_bytes(head[4:], "big")
            assert size == sizes[number]
            left.remove(number)
            assert await w.read(size + 1) == bytes([number]) * size + b"!"
        await asyncio.gather(*tasks)
        await eventually(lambda: w.writer.is_idle)
        w.assert_nothing_held()
