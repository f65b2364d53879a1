"""The HTTP server: listening, connections, and limits of requests."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from broker_core.metrics.metrics import Metrics
from broker_core.servers.arrival import ServerCertificate, TlsEntrance, TlsMetrics
from broker_core.servers.http import Endpoints, HttpListenError, HttpServer, Readiness
from broker_core.service import FailurePace
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


async def test_a_port_in_use_is_named(served: Served) -> None:
    host, port = served.server.address
    with pytest.raises(
        HttpListenError, match=f"http.listen: cannot listen on {host} port {port}: address already in use"
    ):
        await HttpServer(Endpoints(CollectorRegistry(), lambda: Readiness.READY)).start(host, port)


async def test_a_host_that_is_not_ours_is_named() -> None:
    with pytest.raises(HttpListenError, match=r"cannot listen on 203\.0\.113\.1 port 0: "):
        await HttpServer(Endpoints(CollectorRegistry(), lambda: Readiness.READY)).start("203.0.113.1", 0)


async def test_stopping_frees_the_port_and_may_be_repeated(served: Served) -> None:
    host, port = served.server.address
    await served.server.stop()
    await served.server.stop()
    with pytest.raises(RuntimeError, match="not listening"):
        _ = served.server.address
    with socket.socket() as again:
        again.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        again.bind((host, port))


async def test_a_connection_that_is_open_does_not_delay_the_stop(served: Served) -> None:
    reader, writer = await asyncio.open_connection(*served.server.address)
    writer.write(b"GET /-/live HTTP/1.1\r\nHost: x\r\n\r\n")
    assert b'{"status":"live"}' in await reader.readuntil(b"}")
    async with asyncio.timeout(60):  # an idle connection is left open for longer
        await served.server.stop()
        await reader.read()
    writer.close()
    await writer.wait_closed()


# -- many connections -------------------------------------------------------------------------------------------


@pytest.fixture
async def small() -> AsyncIterator[HttpServer]:
    server = HttpServer(Endpoints(CollectorRegistry(), lambda: Readiness.READY), connections=4)
    await server.start("127.0.0.1", 0)
    yield server
    await server.stop()


@pytest.mark.parametrize("begun", [b"", b"GET /-/live HT", b"GET /-/live HTTP/1.1\r\nHost: x\r\nX-A: "])
async def test_connections_that_just_stay_are_closed_for_those_that_ask(
    small: HttpServer, begun: bytes
) -> None:
    idle = []
    for _ in range(50):
        reader, writer = await asyncio.open_connection(*small.address)
        writer.write(begun)
        idle.append((reader, writer))
    async with aiohttp.ClientSession() as session:
        for _ in range(3):
            async with session.get("http://{}:{}/-/live".format(*small.address)) as answer:
                assert answer.status == 200
    assert len(small._open) <= 4

    async def closed(reader: asyncio.StreamReader) -> bool:
        try:
            return await reader.read() == b""
        except ConnectionError:
            return True

    # All but three of those before the one that asked.
    assert all([await closed(reader) for reader, _ in idle[:47]])
    for _, writer in idle:
        writer.close()


async def test_the_connection_that_was_used_last_stays(small: HttpServer) -> None:
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as session:
        url = "http://{}:{}/-/live".format(*small.address)
        async with session.get(url) as answer:
            await answer.read()
        (used,) = small._open
        idle = []
        for _ in range(10):
            idle.append(await asyncio.open_connection(*small.address))
            async with session.get(url) as answer:
                await answer.read()
        assert used in small._open
        assert used.transport is not None
        for _, writer in idle:
            writer.close()


async def test_a_connection_that_is_closed_leaves_its_room(small: HttpServer) -> None:
    for _ in range(12):
        _, writer = await asyncio.open_connection(*small.address)
        writer.close()
        await writer.wait_closed()
    url = "http://{}:{}/-/ready".format(*small.address)
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        assert answer.status == 200
    assert len(small._open) <= 4


# -- TLS ------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def secure(tmp_path: Path) -> AsyncIterator[tuple[HttpServer, ssl.SSLContext]]:
    authority = Authority(tmp_path)
    issued = authority.issue("server")
    certificate = ServerCertificate("http.tls", issued.certificate, issued.key)
    entrance = TlsEntrance("http", certificate, TlsMetrics(Metrics(), ("http",)), FailurePace())
    server = HttpServer(Endpoints(CollectorRegistry(), lambda: Readiness.READY), connections=4, tls=entrance)
    await server.start("127.0.0.1", 0)
    await server.start_tls("127.0.0.1", 0)
    yield server, ssl.create_default_context(cafile=authority.ca)
    await server.stop()


async def test_the_same_pages_over_tls(secure: tuple[HttpServer, ssl.SSLContext]) -> None:
    server, context = secure
    assert server.tls_address is not None
    async with aiohttp.ClientSession() as session:
        for _ in range(2):
            url = "https://{}:{}/-/live".format(*server.tls_address)
            async with session.get(url, ssl=context) as answer:
                assert await answer.json() == {"status": "live"}


async def test_silent_handshakes_are_closed_for_those_that_ask(
    secure: tuple[HttpServer, ssl.SSLContext],
) -> None:
    server, context = secure
    assert server.tls_address is not None
    silent = [await asyncio.open_connection(*server.tls_address) for _ in range(20)]
    async with aiohttp.ClientSession() as session:
        url = "https://{}:{}/-/live".format(*server.tls_address)
        async with session.get(url, ssl=context) as answer:
            assert answer.status == 200
        async with session.get("http://{}:{}/-/live".format(*server.address)) as answer:
            assert answer.status == 200
    assert len(server._shaking_hands) <= 2
    for _, writer in silent:
        writer.transport.abort()
