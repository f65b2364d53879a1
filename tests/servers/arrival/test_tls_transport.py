from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from broker_core.servers.arrival import ServerCertificate, TlsTransport
from broker_core.servers.arrival.socket_waits import readable, writable
from tests.support.certificates import Authority
from tests.support.eventually import eventually
from tests.support.tls_client import shake

LARGE = bytes(range(256)) * 16 * 1024  # 4 MiB
SMALL = 16 * 1024


class Noting(asyncio.Protocol):
    """A protocol that notes all its calls."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.events: list[str] = []
        self.error: Exception | None = None
        self.on_data: Callable[[bytes], None] = lambda _: None
        self.keeps_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.events.append("made")

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.on_data(data)

    def eof_received(self) -> bool:
        self.events.append("eof")
        return self.keeps_open

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")

    def connection_lost(self, error: Exception | None) -> None:
        self.events.append("lost")
        self.error = error


class Ends:
    """A transport, its protocol, and the socket of its client, which only reads on request."""

    def __init__(self, transport: TlsTransport, protocol: Noting, client: ssl.SSLSocket) -> None:
        self.transport = transport
        self.protocol = protocol
        self.client = client

    async def send(self, data: bytes) -> None:
        """The client sends."""
        while True:
            try:
                self.client.send(data)
            except ssl.SSLWantWriteError:
                await writable(self.client)
            else:
                return

    async def receive(self, size: int) -> bytes:
        """The client reads so many bytes, or to the end."""
        received = bytearray()
        while len(received) < size:
            try:
                data = self.client.recv(SMALL)
            except ssl.SSLWantReadError:
                await readable(self.client)
                continue
            if not data:
                break
            received += data
        return bytes(received)

    async def lost(self) -> None:
        await eventually(lambda: self.protocol.events[-1] == "lost")
        assert self.protocol.events.count("lost") == 1


@pytest.fixture(params=[ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=lambda version: version.name)
async def ends(
    request: Any, authority: Authority, pair: tuple[socket.socket, socket.socket]
) -> AsyncIterator[Ends]:
    server, client = pair
    issued = authority.issue("transport")
    certificate = ServerCertificate("pulsar.tls", issued.certificate, issued.key)
    context = ssl.create_default_context(cafile=authority.ca)
    context.maximum_version = request.param
    shaking = asyncio.create_task(shake(client, context))
    secured = certificate.context.wrap_socket(server, server_side=True, do_handshake_on_connect=False)
    while True:
        try:
            secured.do_handshake()
            break
        except ssl.SSLWantReadError:
            await readable(secured)
    protocol = Noting()
    ends = Ends(TlsTransport(secured, protocol, ("192.0.2.7", 7)), protocol, await shaking)
    yield ends
    ends.transport.abort()
    await ends.lost()
    ends.client.close()


async def test_bytes_both_ways(ends: Ends) -> None:
    assert ends.transport.get_extra_info("peername") == ("192.0.2.7", 7)
    assert ends.transport.get_protocol() is ends.protocol
    await ends.send(b"question")
    await eventually(lambda: ends.protocol.received == b"question")
    ends.transport.write(b"an")
    ends.transport.writelines([b"s", b"", memoryview(b"wer")])
    assert await ends.receive(6) == b"answer"
    assert ends.transport.get_write_buffer_size() == 0


async def test_what_the_client_does_not_read_waits_and_is_counted(ends: Ends) -> None:
    ends.transport.set_write_buffer_limits(high=0, low=0)
    ends.transport.write(LARGE)
    left = ends.transport.get_write_buffer_size()
    assert len(LARGE) - 2 * 1024 * 1024 < left <= len(LARGE)
    ends.transport.write(b"end")
    assert ends.transport.get_write_buffer_size() == left + 3
    assert ends.protocol.events == ["made", "pause"]
    assert await ends.receive(len(LARGE) + 3) == LARGE + b"end"
    await eventually(lambda: ends.protocol.events == ["made", "pause", "resume"])
    assert ends.transport.get_write_buffer_size() == 0


async def test_a_write_takes_a_bounded_part_of_a_turn(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    class Taking:
        """A socket that takes everything."""

        def __init__(self) -> None:
            self.taken: list[int] = []

        def send(self, data: memoryview) -> int:
            self.taken.append(len(data))
            return len(data)

    real, taking = ends.transport._sock, Taking()
    monkeypatch.setattr(ends.transport, "_sock", taking)
    monkeypatch.setattr(ends.transport, "_watch_for_writing", lambda: None)
    ends.transport.write(LARGE)
    assert taking.taken == [128 * 1024] * 2
    ends.transport._is_writer = False
    ends.transport._writable()
    assert taking.taken == [128 * 1024] * 4
    monkeypatch.setattr(ends.transport, "_sock", real)


async def test_limits_say_when_a_protocol_is_paused(ends: Ends) -> None:
    assert ends.transport.get_write_buffer_limits() == (16 * 1024, 64 * 1024)
    ends.transport.set_write_buffer_limits(low=2_000_000)
    assert ends.transport.get_write_buffer_limits() == (2_000_000, 8_000_000)
    ends.transport.write(LARGE)
    assert ends.protocol.events == ["made"]
    ends.transport.set_write_buffer_limits(high=1_000)
    assert ends.protocol.events == ["made", "pause"]


async def test_a_paused_reader_reads_later(ends: Ends) -> None:
    ends.transport.pause_reading()
    assert not ends.transport.is_reading()
    await ends.send(b"question")
    ends.transport.write(b"a")
    await ends.receive(1)
    assert not ends.protocol.received
    ends.transport.resume_reading()
    ends.transport.resume_reading()
    await eventually(lambda: ends.protocol.received == b"question")


async def test_a_protocol_may_pause_between_records(ends: Ends) -> None:
    ends.protocol.on_data = lambda _: ends.transport.pause_reading()
    await ends.send(b"one")
    await ends.send(b"two")
    await eventually(lambda: ends.protocol.received == b"one")
    ends.transport.resume_reading()
    await eventually(lambda: ends.protocol.received == b"onetwo")


async def test_close_sends_what_waits_and_says_goodbye(ends: Ends) -> None:
    ends.transport.write(LARGE)
    ends.transport.close()
    ends.transport.close()
    ends.transport.write(b"too late")
    assert ends.transport.is_closing()
    assert await ends.receive(len(LARGE) + 1) == LARGE
    assert ends.client._sslobj.read(1) == b""  # type: ignore[attr-defined]  # a goodbye, not a cut
    await ends.lost()
    assert ends.protocol.error is None


async def test_abort_drops_what_waits(ends: Ends) -> None:
    ends.transport.write(LARGE)
    ends.transport.abort()
    assert ends.transport.get_write_buffer_size() == 0
    await ends.lost()
    ends.transport.abort()
    ends.transport.close()
    ends.transport.write(b"too late")
    assert len(await ends.receive(len(LARGE))) < len(LARGE)


async def test_the_end_of_what_is_written(ends: Ends) -> None:
    assert ends.transport.can_write_eof()
    ends.transport.write(LARGE)
    ends.transport.write_eof()
    with pytest.raises(RuntimeError):
        ends.transport.write(b"more")
    assert await ends.receive(len(LARGE) + 1) == LARGE
    assert not ends.transport.is_closing()  # the client has its time to close
    ends.client.close()
    await ends.lost()
    assert not ends.protocol.received


async def test_a_client_that_says_goodbye(ends: Ends) -> None:
    with pytest.raises(ssl.SSLWantReadError):
        ends.client.unwrap()
    await ends.lost()
    assert ends.protocol.events == ["made", "eof", "lost"]


async def test_a_protocol_may_go_on_behind_the_end_of_its_client(ends: Ends) -> None:
    ends.protocol.keeps_open = True
    with pytest.raises(ssl.SSLWantReadError):
        ends.client.unwrap()
    await eventually(lambda: "eof" in ends.protocol.events)
    ends.transport.write(b"answer")
    assert await ends.receive(6) == b"answer"


async def test_bytes_that_are_not_of_this_connection_end_it(ends: Ends) -> None:
    socket.socket.send(ends.client, b"\x17\x03\x03\x00\x20" + bytes(32))
    await ends.lost()
    assert isinstance(ends.protocol.error, ssl.SSLError)


async def test_a_reset_ends_it(ends: Ends) -> None:
    ends.transport.write(LARGE)
    ends.client.close()  # with much unread
    await ends.lost()
    assert isinstance(ends.protocol.error, OSError)


async def test_a_protocol_that_fails_ends_it(ends: Ends) -> None:
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))

    def fail(_: bytes) -> None:
        raise KeyError("bug")

    ends.protocol.on_data = fail
    await ends.send(b"question")
    await ends.lost()
    assert isinstance(ends.protocol.error, KeyError)
    assert [context["message"] for context in told] == ["a protocol failed"]
