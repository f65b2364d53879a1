from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import pytest

from broker_core.servers.arrival.client_hello import client_hello
from broker_core.servers.arrival.refused_arrival import RefusedArrival
from broker_core.servers.arrival.socket_waits import readable

Pair = tuple[socket.socket, socket.socket]
RECORD = b"\x16\x03\x01\x02\x00" + bytes(512)


async def settled(condition: Callable[[], bool] = lambda: False) -> None:
    """Let the loop do what is due."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_whole_record_is_left_unread(pair: Pair) -> None:
    server, client = pair
    client.send(RECORD + b"more")
    await asyncio.wait_for(client_hello(server), 60)
    assert server.recv(1024) == RECORD + b"more"


async def test_byte_by_byte(pair: Pair) -> None:
    server, client = pair
    waiting = asyncio.create_task(client_hello(server))
    for byte in RECORD[:20]:
        client.send(bytes([byte]))
        await settled()
    assert not waiting.done()
    client.send(RECORD[20:])
    await asyncio.wait_for(waiting, 60)
    assert server.recv(1024) == RECORD
    assert server.getsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT) == 1


async def test_bytes_that_do_not_make_a_record_wake_nobody(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, client = pair
    waits = []

    async def counted(sock: socket.socket) -> None:
        waits.append(sock)
        await readable(sock)

    monkeypatch.setattr("broker_core.servers.arrival.client_hello.readable", counted)
    client.send(RECORD[:6])
    waiting = asyncio.create_task(client_hello(server))
    await settled()
    before = len(waits)
    for byte in RECORD[6:100]:
        client.send(bytes([byte]))
        await settled()
    assert len(waits) == before
    client.send(RECORD[100:])
    await asyncio.wait_for(waiting, 60)


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\x00\x00\x10\x00\x00\x00\x0c",
        b"GET / HTTP/1.1\r\n",
        b"\x16\x02\x00",
        b"\x16\x03\x01\x40\x01" + bytes(10),
        b"\x16\x03\x01\x00\x00",
        b"\x80\x2e\x01\x03\x01",
    ],
    ids=["Pulsar", "HTTP", "SSL 2", "too long", "empty", "SSL 2 hello"],
)
async def test_what_is_not_tls_is_refused(pair: Pair, sent: bytes) -> None:
    server, client = pair
    client.send(sent)
    with pytest.raises(RefusedArrival) as refused:
        await asyncio.wait_for(client_hello(server), 60)
    assert refused.value.reason == "not_tls"


async def test_a_client_that_leaves_is_no_attempt(pair: Pair) -> None:
    server, client = pair
    waiting = asyncio.create_task(client_hello(server))
    await settled()
    client.close()
    with pytest.raises(RefusedArrival) as refused:
        await asyncio.wait_for(waiting, 60)
    assert refused.value.reason == "closed"
    assert not refused.value.is_attempt


async def test_a_client_that_ends_in_the_midst_of_a_record_is_looked_at_seldom(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, client = pair
    pauses: list[float] = []
    enough = asyncio.Event()

    async def noted(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 5:
            enough.set()
            await asyncio.Event().wait()

    client.send(RECORD[:50])
    client.shutdown(socket.SHUT_WR)
    with monkeypatch.context() as patched:
        patched.setattr(asyncio, "sleep", noted)
        waiting = asyncio.create_task(client_hello(server))
        await asyncio.wait_for(enough.wait(), 60)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert pauses == [0.02, 0.04, 0.08, 0.16, 0.32]
