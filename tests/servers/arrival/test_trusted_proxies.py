from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_network

import pytest

from broker_core.quantities import ListenAddress
from broker_core.servers.arrival import trusted_proxies
from broker_core.servers.arrival.refused_arrival import RefusedArrival
from broker_core.servers.arrival.trusted_proxies import TrustedProxies

Pair = tuple[socket.socket, socket.socket]
LINE = b"PROXY TCP4 192.0.2.7 192.0.2.11 56324 443\r\n"


@pytest.fixture
def sources() -> TrustedProxies:
    return TrustedProxies([ip_network("10.0.0.0/8"), ip_network("2001:db8::/32")])


@pytest.mark.parametrize(
    ("host", "is_proxy"),
    [
        ("10.1.2.3", True),
        ("::ffff:10.1.2.3", True),
        ("2001:db8::1", True),
        ("192.0.2.7", False),
        ("2001:db9::1", False),
        ("fe80::1%eth0", False),
        ("", False),
        ("/run/socket", False),
    ],
)
def test_the_proxies_are_those_of_the_networks(sources: TrustedProxies, host: str, is_proxy: bool) -> None:
    assert sources.has(host) is is_proxy
    assert not TrustedProxies([]).has(host)


async def test_no_byte_behind_a_preamble_is_read(sources: TrustedProxies, pair: Pair) -> None:
    server, client = pair
    client.send(LINE + b"what follows")
    assert await sources.client(server) == ListenAddress("192.0.2.7", 56324)
    assert server.recv(100) == b"what follows"


async def test_byte_by_byte(sources: TrustedProxies, pair: Pair) -> None:
    server, client = pair
    reading = asyncio.create_task(sources.client(server))
    for byte in LINE:
        client.send(bytes([byte]))
        for _ in range(5):
            await asyncio.sleep(0)
    assert await asyncio.wait_for(reading, 60) == ListenAddress("192.0.2.7", 56324)


async def test_a_client_without_a_preamble_is_refused(sources: TrustedProxies, pair: Pair) -> None:
    server, client = pair
    client.send(b"\x16\x03\x01")
    with pytest.raises(RefusedArrival, match="preamble of a proxy is required") as refused:
        await sources.client(server)
    assert refused.value.reason == "preamble"


async def test_a_silent_proxy_is_refused(
    sources: TrustedProxies, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trusted_proxies, "_DEADLINE", 0.0)
    pair[1].send(LINE[:7])
    with pytest.raises(RefusedArrival, match="in time"):
        await sources.client(pair[0])


async def test_a_proxy_that_leaves_is_refused(sources: TrustedProxies, pair: Pair) -> None:
    pair[1].send(LINE[:7])
    pair[1].close()
    with pytest.raises(RefusedArrival) as refused:
        await sources.client(pair[0])
    assert refused.value.reason == "closed"
