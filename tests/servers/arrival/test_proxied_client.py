from __future__ import annotations

import asyncio
import socket

import pytest

from broker_core.quantities import ListenAddress
from broker_core.servers.arrival import arrivals
from broker_core.servers.arrival.arrivals import client_of_proxy
from broker_core.servers.arrival.refused_arrival import RefusedArrival

Pair = tuple[socket.socket, socket.socket]
LINE = b"PROXY TCP4 192.0.2.7 192.0.2.11 56324 443\r\n"


async def test_no_byte_behind_a_preamble_is_read(pair: Pair) -> None:
    server, client = pair
    client.send(LINE + b"what follows")
    assert await client_of_proxy(server) == ListenAddress("192.0.2.7", 56324)
    assert server.recv(100) == b"what follows"


async def test_byte_by_byte(pair: Pair) -> None:
    server, client = pair
    reading = asyncio.create_task(client_of_proxy(server))
    for byte in LINE:
        client.send(bytes([byte]))
        for _ in range(5):
            await asyncio.sleep(0)
    assert await asyncio.wait_for(reading, 60) == ListenAddress("192.0.2.7", 56324)


async def test_a_client_without_a_preamble_is_refused(pair: Pair) -> None:
    server, client = pair
    client.send(b"\x16\x03\x01")
    with pytest.raises(RefusedArrival, match="preamble of a proxy is required") as refused:
        await client_of_proxy(server)
    assert refused.value.reason == "preamble"


async def test_a_silent_proxy_is_refused(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrivals, "_PREAMBLE_DEADLINE", 0.0)
    pair[1].send(LINE[:7])
    with pytest.raises(RefusedArrival, match="in time"):
        await client_of_proxy(pair[0])


async def test_a_proxy_that_leaves_is_refused(pair: Pair) -> None:
    pair[1].send(LINE[:7])
    pair[1].close()
    with pytest.raises(RefusedArrival) as refused:
        await client_of_proxy(pair[0])
    assert refused.value.reason == "closed"
