from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge
from structlog.testing import capture_logs

from broker_core.metrics.frequent_questions import QuestionCounter
from broker_core.names import Mode
from broker_core.servers.http import HttpListenError, HttpServer, Readiness


class Served:
    """A server on a free port, and what it says."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.readiness = Readiness.READY
        self.questions = QuestionCounter()
        self.plugins: list[dict[str, Any]] = []
        self.server = HttpServer(
            self.registry,
            lambda: self.readiness,
            questions=self.questions.most_asked,
            plugins=lambda: self.plugins,
        )

    @property
    def url(self) -> str:
        host, port = self.server.address
        return f"http://{host}:{port}"

    async def raw(self, request: bytes) -> bytes:
        """Everything that is answered to these bytes, to the end of the connection."""
        reader, writer = await asyncio.open_connection(*self.server.address)
        writer.write(request)
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    served = Served()
    await served.server.start("127.0.0.1", 0)
    yield served
    await served.server.stop()


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def test_metrics_are_prometheus_text(served: Served, session: aiohttp.ClientSession) -> None:
    Counter("tries", "How often.", registry=served.registry).inc(3)
    async with session.get(served.url + "/metrics") as answer:
        assert answer.status == 200
        assert answer.content_type == "text/plain"
        assert "tries_total 3.0" in await answer.text()


async def test_metrics_are_openmetrics_for_whoever_asks_for_it(
    served: Served, session: aiohttp.ClientSession
) -> None:
    async with session.get(
        served.url + "/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}
    ) as answer:
        assert answer.content_type == "application/openmetrics-text"
        assert (await answer.text()).endswith("# EOF\n")


async def test_questions_are_shown_to_nobody_unless_they_are_given(session: aiohttp.ClientSession) -> None:
    server = HttpServer(CollectorRegistry(), lambda: Readiness.READY)
    await server.start("127.0.0.1", 0)
    host, port = server.address
    async with session.get(f"http://{host}:{port}/questions") as answer:
        assert answer.status == 403
        assert "questions = true in the table [http]" in (await answer.json())["error"]
    await server.stop()


async def test_questions_are_json_lines(served: Served, session: aiohttp.ClientSession) -> None:
    async with session.get(served.url + "/questions") as answer:
        assert (answer.status, await answer.text()) == (200, "")
    for number in range(5):
        for _ in range(number + 1):
            served.questions.record("t/n", Mode.ALL, f"{number}", {"region": "eu"}, 0.5)
    for query, expected in (("", 5), ("?limit=2", 2), ("?limit=0", 0), ("?limit=999999999", 5)):
        async with session.get(f"{served.url}/questions{query}") as answer:
            assert answer.content_type == "application/x-ndjson"
            lines = [json.loads(line) for line in (await answer.text()).splitlines()]
        assert [line["pattern"] for line in lines] == ["4", "3", "2", "1", "0"][:expected]
        assert [line["count"] for line in lines] == [5, 4, 3, 2, 1][:expected]


@pytest.mark.parametrize("limit", ["", "-1", "many", "1e3", "%D9%A3", "9999999999"])
async def test_a_wrong_limit_is_named(served: Served, session: aiohttp.ClientSession, limit: str) -> None:
    async with session.get(f"{served.url}/questions?limit={limit}") as answer:
        assert answer.status == 400
        assert "limit is a number" in (await answer.json())["error"]


async def test_plugins_are_one_object(served: Served, session: aiohttp.ClientSession) -> None:
    served.plugins = [{"name": "p", "state": "enabled"}]
    async with session.get(served.url + "/plugins") as answer:
        assert (answer.status, await answer.json()) == (200, {"plugins": served.plugins})


@pytest.mark.parametrize(
    ("readiness", "status"), [(Readiness.STARTING, 503), (Readiness.READY, 200), (Readiness.DRAINING, 503)]
)
async def test_ready_only_when_ready_and_alive_always(
    served: Served, session: aiohttp.ClientSession, readiness: Readiness, status: int
) -> None:
    served.readiness = readiness
    async with session.get(served.url + "/-/ready") as answer:
        assert (answer.status, await answer.json()) == (status, {"status": readiness.value})
    async with session.get(served.url + "/-/live") as answer:
        assert (answer.status, await answer.json()) == (200, {"status": "live"})


async def test_a_failure_is_logged_and_told_without_detail(
    served: Served, session: aiohttp.ClientSession
) -> None:
    def fail() -> float:
        raise RuntimeError("secret detail")

    Gauge("failing", "Fails.", registry=served.registry).set_function(fail)
    with capture_logs() as logs:
        async with session.get(served.url + "/metrics") as answer:
            assert answer.status == 500
            assert "secret" not in await answer.text()
    assert [(line["event"], line["path"]) for line in logs] == [("an HTTP request failed", "/metrics")]
    async with session.get(served.url + "/-/live") as answer:
        assert answer.status == 200


@pytest.mark.parametrize("path", ["/", "/metrics/", "/-/", "/%00", "/../etc/passwd", "/metrics/more"])
async def test_anything_else_is_a_404_in_json(
    served: Served, session: aiohttp.ClientSession, path: str
) -> None:
    async with session.get(served.url + path) as answer:
        assert answer.status == 404
        assert "nothing at" in (await answer.json())["error"]


async def test_only_get_and_head(served: Served, session: aiohttp.ClientSession) -> None:
    async with session.post(served.url + "/metrics", data=b"x") as answer:
        assert answer.status == 405
        assert answer.headers["Allow"] == "GET, HEAD"
        assert "does not take POST" in (await answer.json())["error"]
    async with session.head(served.url + "/-/live") as answer:
        assert answer.status == 200


async def test_no_answer_tells_what_serves_it(served: Served, session: aiohttp.ClientSession) -> None:
    for path in ("/metrics", "/-/live", "/-/ready", "/absent"):
        async with session.get(served.url + path) as answer:
            assert "Server" not in answer.headers
            assert answer.headers["Cache-Control"] == "no-store"
    for wrong in (
        b"no request\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n" + b"\0" * 100,
        b"GET /" + b"a" * 9000 + b"\r\n\r\n",
    ):
        said = (await served.raw(wrong)).lower()
        assert said.startswith(b"http/1.")
        assert b"server:" not in said
        assert b"aiohttp/" not in said


async def test_requests_are_bounded(served: Served) -> None:
    long_line = b"GET /" + b"a" * 5000 + b" HTTP/1.1\r\nHost: x\r\n\r\n"
    long_header = b"GET /-/live HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 5000 + b"\r\n\r\n"
    many_headers = b"GET /-/live HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 200 + b"\r\n"
    for request in (long_line, long_header, many_headers):
        assert (await served.raw(request)).split(b" ")[1] == b"400"


async def test_a_port_in_use_is_named(served: Served) -> None:
    host, port = served.server.address
    with pytest.raises(
        HttpListenError, match=f"http.listen: cannot listen on {host} port {port}: address already in use"
    ):
        await HttpServer(CollectorRegistry(), lambda: Readiness.READY).start(host, port)


async def test_a_host_that_is_not_ours_is_named() -> None:
    with pytest.raises(HttpListenError, match=r"cannot listen on 203\.0\.113\.1 port 0: "):
        await HttpServer(CollectorRegistry(), lambda: Readiness.READY).start("203.0.113.1", 0)


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
    assert b'{"status": "live"}' in await reader.readuntil(b"}")
    async with asyncio.timeout(60):  # an idle connection is left open for longer
        await served.server.stop()
        await reader.read()
    writer.close()
    await writer.wait_closed()


# -- many connections -------------------------------------------------------------------------------------------


@pytest.fixture
async def small() -> AsyncIterator[HttpServer]:
    server = HttpServer(CollectorRegistry(), lambda: Readiness.READY, connections=4)
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
