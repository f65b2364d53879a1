"""The connections of a lookup service over HTTP: addresses, the end, credentials, TLS."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from broker_core.client import (
    Basic,
    ClientTls,
    ConnectionLost,
    Credentials,
    CredentialsFailed,
    InvalidServiceUrl,
    LookupClient,
    OperationTimeout,
    Tls,
    TlsFailed,
    Token,
)
from tests.client.http.scripted_answers import NAMES, always, arrow, broker
from tests.support.certificates import Authority
from tests.support.clock import AGES, time_passes
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.scripted_http_server import ScriptedHttpServer
from tests.support.scripted_server import ScriptedServer

pytestmark = pytest.mark.usefixtures("no_pauses")


async def test_the_server_may_come_later_and_another_address_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{free_port()},127.0.0.1:{port}"
    async with LookupClient(url) as client:
        asked = asyncio.create_task(client.get_topics_under_namespace("t/n"))
        await eventually(lambda: "cannot connect" in str(client._service.problem))
        server = ScriptedHttpServer(broker)
        await server.start(port)
        try:
            assert await asked == NAMES
        finally:
            await server.stop()
        late = asyncio.create_task(client.get_topics_under_namespace("t/n", timeout=AGES))
        for _ in range(20):  # it is asked
            await asyncio.sleep(0)
        await eventually(lambda: "cannot connect" in str(client._service.problem))
        time_passes(monkeypatch, AGES + 1)
        with pytest.raises(OperationTimeout, match="cannot connect to 127"):
            await late
        # Another server, with another API, may come in its place.
        again = ScriptedHttpServer(always(lambda: arrow(NAMES[:1])))
        await again.start(port)
        try:
            assert await client.get_topics_under_namespace("t/n") == NAMES[:1]
        finally:
            await again.stop()


async def test_a_request_that_is_given_up_closes_its_connection() -> None:
    async def answer(_request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async with ScriptedHttpServer(answer) as server, LookupClient(server.url) as client:
        asked = [asyncio.create_task(client.get_topics_under_namespace("t/n")) for _ in range(2)]
        await eventually(lambda: server.requests)
        for task in asked:
            task.cancel()
        await eventually(lambda: server.cancelled)
        assert len(server.requests) == 1


async def test_what_is_asked_when_it_is_closed_fails() -> None:
    async def answer(_request: web.Request) -> web.StreamResponse:
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async with ScriptedHttpServer(answer) as server:
        client = LookupClient(server.url)
        asked = asyncio.create_task(client.get_topics_under_namespace("t/n"))
        await eventually(lambda: server.requests)
        await client.close()
        with pytest.raises(ConnectionLost):
            await asked
        with pytest.raises(ConnectionLost, match="is closed"):
            await client.lookup("persistent://t/n/x")


async def test_a_server_that_speaks_something_else() -> None:
    async with (
        ScriptedServer(handshake=False) as server,
        LookupClient(server.url.replace("pulsar", "http"), operation_timeout=0.2) as client,
    ):
        with pytest.raises(OperationTimeout):
            await client.lookup("persistent://t/n/x")


def test_urls_that_are_none() -> None:
    for url in ("http://", "http://a:0", "https://a/b", "http://me:pw" + "@a"):
        with pytest.raises(InvalidServiceUrl) as refused:
            LookupClient(url)
        assert "pw" not in str(refused.value)
    with pytest.raises(InvalidServiceUrl, match="needs TLS"):
        LookupClient("http://a", auth=Tls("client.pem"))


async def test_each_request_has_the_credentials_as_they_are(echo: ScriptedHttpServer, tmp_path: Path) -> None:
    file = tmp_path / "token.jwt"
    async with LookupClient(echo.url, auth=Token(file)) as client:
        for text in ("first.b.c", "second.b.c"):
            file.write_text(text)
            await client.get_topics_under_namespace("t/n")
            assert echo.requests[-1].headers["Authorization"] == f"Bearer {text}"
        file.unlink()
        with pytest.raises(CredentialsFailed, match="cannot read the token"):
            await client.get_topics_under_namespace("t/n")
    async with LookupClient(echo.url, auth=Basic("me", "pw")) as client:
        await client.get_topics_under_namespace("t/n")
        assert echo.requests[-1].headers["Authorization"] == "Basic bWU6cHc="


async def test_what_fails_for_credentials_shows_nothing_of_them(echo: ScriptedHttpServer) -> None:
    def fail() -> str:
        raise ValueError("the token is geheim")

    async with LookupClient(echo.url, auth=Token(fail)) as client:
        with pytest.raises(CredentialsFailed, match="no credentials: ValueError") as failed:
            await client.get_topics_under_namespace("t/n")
        assert "geheim" not in str(failed.value)
    assert not echo.requests


async def test_tls_with_a_client_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    issued, own = authority.issue("server"), authority.issue("client")
    answer: Any = always(lambda: arrow(NAMES))
    async with ScriptedHttpServer(answer, tls=issued.server_context(authority.ca)) as server:
        async with LookupClient(
            server.url, auth=Tls(own.certificate, own.key), tls=ClientTls(authority.ca)
        ) as client:
            assert await client.get_topics_under_namespace("t/n") == NAMES
        async with LookupClient(server.url, operation_timeout=AGES) as client:
            with pytest.raises(TlsFailed, match="is not accepted"):
                await client.get_topics_under_namespace("t/n")


async def test_tls_where_there_is_none(echo: ScriptedHttpServer) -> None:
    async with LookupClient(echo.url.replace("http", "https"), operation_timeout=AGES) as client:
        with pytest.raises(TlsFailed, match="speaks no TLS"):
            await client.get_topics_under_namespace("t/n")


async def test_credentials_that_no_header_can_have(echo: ScriptedHttpServer) -> None:
    async def data() -> bytes:
        return b"geheim\r\nX: y"

    async with LookupClient(echo.url, auth=Credentials("own", data)) as client:
        with pytest.raises(CredentialsFailed, match="control characters") as failed:
            await client.get_topics_under_namespace("t/n")
        assert "geheim" not in str(failed.value)
    assert not echo.requests
