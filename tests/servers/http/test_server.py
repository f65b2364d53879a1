"""The HTTP server: listening, connections, and limits of requests."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from broker_core.metrics.metrics import Metrics
from broker_core.servers.arrival import ServerCertificate, TlsEntrance, TlsMetrics
from broker_core.service import FailurePace
from tests.support.api_serving import api_served
from tests.support.certificates import Authority
from tests.support.http_serving import Served


async def test_no_answer_tells_what_serves_it(served: Served, session: aiohttp.ClientSession) -> None:
    for path in ("/metrics", "/-/live", "/-/ready", "/absent"):
        async with session.get(served.url + path) as answer:
            assert "Server" not in answer.headers
            assert answer.headers["Cache-Control"] == "no-store"
    for wrong in (
        b"no request\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n" + b"\0" * 100,
        b"GET /" + b"a" * 70_000 + b"\r\n\r\n",
    ):
        said = (await served.raw(wrong)).lower()
        assert said.startswith(b"http/1.")
        assert b"server:" not in said
        assert b"aiohttp/" not in said


async def test_requests_are_bounded(served: Served) -> None:
    long_line = b"GET /" + b"a" * 66_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"
    long_header = b"GET /-/live HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 17_000 + b"\r\n\r\n"
    many_headers = b"GET /-/live HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 200 + b"\r\n"
    for request in (long_line, long_header, many_headers):
        assert (await served.raw(request)).split(b" ")[1] == b"400"


async def test_an_error_repeats_little_of_what_was_asked(served: Served) -> None:
    for method in (b"GET", b"POST"):
        said = await served.raw(
            method + b" /" + b"a" * 60_000 + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
        )
        assert b"404" in said[:20]
        assert len(said) < 1000


async def test_closing_frees_the_port_and_may_be_repeated(served: Served) -> None:
    host, port = served.address
    await served.server.close()
    await served.server.close()
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind((host, port))


async def test_a_connection_that_is_open_does_not_delay_the_stop(served: Served) -> None:
    reader, writer = await asyncio.open_connection(*served.address)
    writer.write(b"GET /-/live HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b'{"status":"live"}' in await reader.readuntil(b"}")
    async with asyncio.timeout(60):  # an idle connection is left open for longer
        await served.server.close()
        await reader.read()
    writer.close()
    await writer.wait_closed()


# -- many connections -------------------------------------------------------------------------------------------


@pytest.fixture
async def small() -> AsyncIterator[Served]:
    served = Served(connections=4)
    await served.start()
    yield served
    await served.server.close()


@pytest.mark.parametrize("begun", [b"", b"GET /-/live HT", b"GET /-/live HTTP/1.1\r\nHost: x\r\nX-A: "])
async def test_connections_that_just_stay_are_closed_for_those_that_ask(small: Served, begun: bytes) -> None:
    idle = []
    for _ in range(50):
        reader, writer = await asyncio.open_connection(*small.address)
        writer.write(begun)
        idle.append((reader, writer))
    async with aiohttp.ClientSession() as session:
        for _ in range(3):
            async with session.get(f"{small.url}/-/live") as answer:
                assert answer.status == 200
    assert small.server.connections <= 4

    async def closed(reader: asyncio.StreamReader) -> bool:
        try:
            return await reader.read() == b""
        except ConnectionError:
            return True

    # All but three of those before the one that asked.
    assert all([await closed(reader) for reader, _ in idle[:47]])
    for _, writer in idle:
        writer.close()


async def test_the_connection_that_was_used_last_stays(small: Served) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session:
        url = f"{small.url}/-/live"
        async with session.get(url) as answer:
            await answer.read()
        (used,) = small.server._clients
        idle = []
        for _ in range(10):
            idle.append(await asyncio.open_connection(*small.address))
            async with session.get(url) as answer:
                await answer.read()
        assert used in list(small.server._clients)
        for _, writer in idle:
            writer.close()


async def test_a_connection_that_is_closed_leaves_its_room(small: Served) -> None:
    for _ in range(12):
        _, writer = await asyncio.open_connection(*small.address)
        writer.close()
        await writer.wait_closed()
    url = f"{small.url}/-/ready"
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        assert answer.status == 200
    assert small.server.connections <= 4


# -- addresses ------------------------------------------------------------------------------------------------------


ME = b"GET /v1/me HTTP/1.1\r\nHost: localhost\r\n\r\n"
WATCH = (
    b"GET /v1/namespaces/public/default/topics HTTP/1.1\r\n"
    b"Host: localhost\r\nAccept: text/event-stream\r\n\r\n"
)


async def test_a_proxy_gives_the_address_of_a_client_which_its_places_are_counted_by(tmp_path: Path) -> None:
    http = {"haproxy_from": ["127.0.0.0/8"]}
    async with api_served(tmp_path, http=http, limits={"connections_per_address": 1}) as served:
        address = served.broker.http_address
        assert address is not None

        async def ask(source: str, request: bytes, until: bytes) -> tuple[bytes, asyncio.StreamReader]:
            reader, writer = await asyncio.open_connection(*address)
            writers.append(writer)
            writer.write(b"PROXY TCP4 %s 192.0.2.1 4711 80\r\n" % source.encode() + request)
            try:
                return await reader.readuntil(until), reader
            except (asyncio.IncompleteReadError, ConnectionResetError):
                return b"", reader

        writers: list[asyncio.StreamWriter] = []
        said, idle = await ask("192.0.2.7", ME, b"}}\n")
        assert b'"address":"192.0.2.7:4711"' in said
        said, _ = await ask("192.0.2.8", WATCH, b"\n\n")
        assert b"text/event-stream" in said
        assert b'"address":"192.0.2.7:4711"' in (await ask("192.0.2.7", ME, b"}}\n"))[0]
        assert await idle.read() == b"", "the idle connection of the address goes first"
        assert (await ask("192.0.2.8", ME, b"}}\n"))[0] == b"", "the only one is being answered"
        assert served.sample("connections_refused_total", reason="address") == 1
        assert served.sample("connections_closed_total", reason="places") == 1
        assert (await ask("nobody", ME, b"}}\n"))[0] == b""
        assert served.sample("haproxy_preambles_total", outcome="client") == 4
        assert served.sample("haproxy_preambles_total", outcome="refused") == 1
        for writer in writers:
            writer.close()


# -- TLS ------------------------------------------------------------------------------------------------------------


Secure = tuple[Served, tuple[str, int], ssl.SSLContext]


@pytest.fixture
async def secure(tmp_path: Path) -> AsyncIterator[Secure]:
    authority = Authority(tmp_path)
    issued = authority.issue("server")
    certificate = ServerCertificate("http.tls", issued.certificate, issued.key)
    entrance = TlsEntrance("http", certificate, TlsMetrics(Metrics(), ("http",)), FailurePace())
    served = Served(connections=4, tls=entrance)
    await served.start()
    address = await served.server.start_tls("127.0.0.1", 0)
    yield served, address, ssl.create_default_context(cafile=authority.ca)
    await served.server.close()


async def test_the_same_pages_over_tls(secure: Secure) -> None:
    _, address, context = secure
    async with aiohttp.ClientSession() as session:
        for _ in range(2):
            url = "https://{}:{}/-/live".format(*address)
            async with session.get(url, ssl=context) as answer:
                assert await answer.json() == {"status": "live"}


async def test_silent_handshakes_are_closed_for_those_that_ask(
    secure: Secure,
) -> None:
    served, address, context = secure
    silent = [await asyncio.open_connection(*address) for _ in range(20)]
    async with aiohttp.ClientSession() as session:
        url = "https://{}:{}/-/live".format(*address)
        async with session.get(url, ssl=context) as answer:
            assert answer.status == 200
        async with session.get(f"{served.url}/-/live") as answer:
            assert answer.status == 200
    assert served.server.connections <= 4
    for _, writer in silent:
        writer.transport.abort()
