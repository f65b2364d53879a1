"""Clients above the connection limit: refused in the answer to CONNECT, counted, and closed soon."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from broker_core.errors import ServerError
from broker_core.servers.pulsar import PulsarOptions
from broker_core.servers.pulsar.server import MESSAGES, RefusedConnection, RefusedConnections
from broker_core.settings import LimitsSettings
from broker_core.wire.pulsar import commands
from broker_core.wire.pulsar.frames import FrameDecoder
from broker_core.wire.pulsar.messages.pulsar_api_pb2 import BaseCommand
from tests.support.eventually import eventually
from tests.support.pulsar_serving import Serving, serving
from tests.support.raw_client import RawClient


async def refused(client: RawClient, reason: str) -> None:
    (answer,) = await client.closed()
    client.close()
    assert answer.type == BaseCommand.ERROR
    assert answer.error.request_id == commands.CONNECTION_REQUEST_ID
    assert answer.error.error == ServerError.NotAllowedError
    assert answer.error.message == MESSAGES[reason]


async def connecting(s: Serving) -> RawClient:
    client = await s.client(handshake=False)
    await client.send(commands.connect("Pulsar-Java-v4.2.4"))
    return client


def open_descriptors() -> list[int]:
    return [int(entry.name) for entry in Path("/proc/self/fd").iterdir()]


def under_refusal(s: Serving) -> int:
    """How many connections of a server are under refusal."""
    refusals = s.server._arrivals._refusals
    assert isinstance(refusals, RefusedConnections)
    return len(refusals)


async def test_who_is_over_the_bound_is_told_and_the_others_are_served() -> None:
    async with serving(options=PulsarOptions(connections=3)) as s:
        inside = [await s.client() for _ in range(3)]
        for _ in range(5):
            await refused(await connecting(s), "connections")
        assert s.sample("connections_refused_total", reason="connections") == 5
        assert s.server.connections == 3
        for client in inside:
            await client.ping()
            assert (await client.ask("t/n")).changed
        inside.pop().close()
        await eventually(lambda: s.server.connections == 2)
        await (await s.client()).ping()


async def test_one_address_has_its_own_bound() -> None:
    async with serving(options=PulsarOptions(limits=LimitsSettings(connections_per_address=2))) as s:
        for _ in range(2):
            await s.client()
        await refused(await connecting(s), "address")
        assert s.sample("connections_refused_total", reason="address") == 1
        sock = socket.socket()
        sock.bind(("127.0.0.2", 0))  # loopback has many
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, s.address)
        other = RawClient(sock)
        await other.send(commands.connect("x"))
        assert (await other.receive()).type == BaseCommand.CONNECTED
        other.close()
        await eventually(lambda: s.server.connections == 2)


async def test_descriptors_that_are_kept_back_are_not_for_clients() -> None:
    opened = open_descriptors()  # with gaps, which clients get first
    ceiling = max(opened) + 40
    async with serving(options=PulsarOptions(file_ceiling=ceiling)) as s:
        inside = 0
        while not s.sample("connections_refused_total", reason="files"):
            client = await connecting(s)
            if (await client.receive()).type == BaseCommand.CONNECTED:
                inside += 1
        assert 5 < inside < ceiling - len(opened)
        assert s.server.connections == inside


async def test_who_says_nothing_is_told_and_closed_soon() -> None:
    async with serving(options=PulsarOptions(connections=0, refusals=2)) as s:
        silent = [await s.client(handshake=False) for _ in range(2)]
        await eventually(lambda: under_refusal(s) == 2)
        # No more of them are waited for: one more is told at once.
        await refused(await s.client(handshake=False), "connections")
        await asyncio.gather(*(refused(client, "connections") for client in silent))
        await eventually(lambda: not under_refusal(s))
        await refused(await connecting(s), "connections")


async def test_thousands_are_refused_while_others_are_answered() -> None:
    async with serving(options=PulsarOptions(connections=1)) as s, await s.client() as inside:
        for _ in range(20):
            crowd = [await s.client(handshake=False) for _ in range(50)]
            await inside.ping()
            for client in crowd:
                client.vanish()
        await eventually(lambda: s.sample("connections_refused_total", reason="connections") == 1000)
        await inside.ping()


async def test_the_refused_end_with_the_server() -> None:
    async with serving(options=PulsarOptions(connections=0)) as s:
        silent = [await s.client(handshake=False) for _ in range(5)]
        await eventually(lambda: under_refusal(s) == 5)
        await s.server.stop(0)
        assert not under_refusal(s)
        for client in silent:
            await client.closed()


async def test_what_they_send_is_bounded() -> None:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    ended: list[RefusedConnection] = []
    loop = asyncio.get_running_loop()
    await loop.connect_accepted_socket(lambda: RefusedConnection("connections", ended.append), ours)
    try:
        await asyncio.wait_for(loop.sock_sendall(theirs, b"x" * (16 << 20)), 60)
    except ConnectionError:
        pass
    await eventually(lambda: ended)
    theirs.close()


@pytest.mark.parametrize("reason", sorted(MESSAGES))
def test_a_socket_is_refused_at_once(reason: str) -> None:
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.send(commands.connect("x"))
    RefusedConnections(0).at_once(ours, reason)
    assert ours.fileno() == -1
    (frame,) = FrameDecoder(1 << 20).feed(theirs.recv(4096))
    assert commands.decode(frame).error.message == MESSAGES[reason]
    assert theirs.recv(1) == b""
    theirs.close()
    gone, left = socket.socketpair()
    left.close()
    gone.setblocking(False)
    RefusedConnections(0).at_once(gone, reason)
