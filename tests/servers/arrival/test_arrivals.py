"""Connections of any protocol: their places, their proxies, their refusals, and the end."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_network
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core.access.peer import Peer
from broker_core.metrics.metrics import Metrics
from broker_core.servers.admission import ConnectionLimits, ConnectionPlace
from broker_core.servers.arrival.arrivals import Arrivals
from tests.support.eventually import eventually

HERE = (ip_network("127.0.0.0/8"),)


class Known(asyncio.Protocol):
    """A protocol that notes its peer."""

    def __init__(self, peer: Peer, place: ConnectionPlace) -> None:
        self._peer = peer
        self._place = place

    def connection_made(self, transport: Any) -> None:
        self._place.idle, self._place.end = (lambda: 60.0), transport.abort
        transport.write(f"{self._peer.transport} {self._peer.remote_address.partition(':')[0]}\n".encode())

    def connection_lost(self, _error: Exception | None) -> None:
        self._place.give_back()


class Told(asyncio.Protocol):
    """A protocol that says why there is no place."""

    def __init__(self, peer: Peer, telling: list[asyncio.Protocol]) -> None:
        self._peer = peer
        self._telling = telling

    def connection_made(self, transport: Any) -> None:
        transport.write(f"{self._peer.transport} {self._peer.remote_address}\n".encode())

    def connection_lost(self, _error: Exception | None) -> None:
        self._telling.clear()


class Words:
    """Tells one client at a time that there is no place."""

    def __init__(self) -> None:
        self.telling: list[asyncio.Protocol] = []

    def begin(self, reason: str) -> asyncio.Protocol | None:
        if self.telling:
            return None
        told = Told(Peer(reason, "no"), self.telling)
        self.telling.append(told)
        return told

    def forget(self, refusal: asyncio.Protocol) -> None:
        self.telling.remove(refusal)

    def at_once(self, sock: socket.socket, reason: str) -> None:
        with sock:
            sock.send(f"at once {reason}\n".encode())

    async def close(self) -> None:
        await eventually(lambda: not self.telling)


async def _arrivals(*, places: int | None = None, **more: Any) -> tuple[Arrivals, tuple[str, int], Metrics]:
    metrics = Metrics()
    arrivals = Arrivals("any", ConnectionLimits(places), metrics, **more)
    return arrivals, await arrivals.listen("127.0.0.1", 0, Known), metrics


def _sample(metrics: Metrics, name: str, **labels: str) -> float:
    return metrics.registry.get_sample_value(f"broker_core_{name}", labels) or 0.0


async def _said(address: tuple[str, int], sends: bytes = b"") -> tuple[bytes, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection(*address)
    writer.write(sends)
    try:
        return await reader.readline(), writer
    except ConnectionResetError:  # closed before all was read that it was sent
        return b"", writer


async def test_a_client_gets_its_protocol_and_gives_its_place_back() -> None:
    arrivals, address, _ = await _arrivals(places=1)
    for _ in range(3):
        said, writer = await _said(address)
        assert said == b"any 127.0.0.1\n"
        assert arrivals.places.taken == 1
        writer.close()
        await eventually(lambda: arrivals.places.taken == 0)
    await arrivals.close()
    assert arrivals.sockets == []


async def test_an_idle_connection_makes_room_for_another() -> None:
    arrivals, address, _ = await _arrivals(places=1)
    reader, first = await asyncio.open_connection(*address)
    assert await reader.readline() == b"any 127.0.0.1\n"
    said, second = await _said(address)
    assert said == b"any 127.0.0.1\n"
    assert await reader.read() == b""
    assert arrivals.places.taken == 1
    for writer in (first, second):
        writer.close()
    await arrivals.close()


async def test_without_a_place_the_connection_is_closed() -> None:
    arrivals, address, metrics = await _arrivals(places=0)
    with capture_logs():
        said, writer = await _said(address)
    assert said == b""
    assert _sample(metrics, "connections_refused_total", reason="connections") == 1
    writer.close()
    await arrivals.close()


async def test_a_descriptor_above_the_ceiling_gets_no_place() -> None:
    arrivals, address, metrics = await _arrivals(file_ceiling=3)
    with capture_logs():
        said, writer = await _said(address)
    assert said == b""
    assert _sample(metrics, "connections_refused_total", reason="files") == 1
    assert arrivals.places.taken == 0
    writer.close()
    await arrivals.close()


async def test_who_gets_no_place_is_told_so() -> None:
    words = Words()
    arrivals, address, _ = await _arrivals(places=0, refusals=words)
    with capture_logs():
        said, first = await _said(address)
        assert said == b"no connections\n"
        said, second = await _said(address)  # the first is still there
        assert said == b"at once connections\n"
    for writer in (first, second):
        writer.close()
    await eventually(lambda: not words.telling)
    await arrivals.close()


@pytest.mark.parametrize(
    ("preamble", "said", "outcome"),
    [
        (b"PROXY TCP4 192.0.2.7 192.0.2.11 56324 443\r\n", b"any 192.0.2.7\n", "client"),
        (b"PROXY UNKNOWN\r\n", b"any 127.0.0.1\n", "own"),
        (b"GET / HTTP/1.1\r\n", b"", "refused"),
    ],
)
async def test_proxies_tell_the_address_of_the_client(preamble: bytes, said: bytes, outcome: str) -> None:
    arrivals, address, metrics = await _arrivals(haproxy_from=HERE)
    with capture_logs():
        answer, writer = await _said(address, preamble)
    assert answer == said
    assert _sample(metrics, "haproxy_preambles_total", outcome=outcome) == 1
    writer.close()
    await arrivals.close()


async def test_the_end_waits_for_no_preamble() -> None:
    arrivals, address, _ = await _arrivals(haproxy_from=HERE)
    reader, writer = await asyncio.open_connection(*address)
    await eventually(lambda: arrivals.waiting == 1)
    await arrivals.close()
    assert arrivals.waiting == 0
    assert await reader.read() == b""
    writer.close()
