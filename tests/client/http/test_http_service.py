"""A lookup service over HTTP: this server's API, a broker's web service, redirects, TLS, credentials."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from aiohttp import web

from broker_core.client import (
    Basic,
    ClientTls,
    ConnectionLost,
    Credentials,
    CredentialsFailed,
    HandshakeRefused,
    InvalidQuestion,
    InvalidServiceUrl,
    LookupClient,
    OperationTimeout,
    ServerRefused,
    Tls,
    TlsFailed,
    Token,
    UnexpectedAnswer,
    topics_hash,
)
from broker_core.client.http import address_turns
from broker_core.names import Mode
from tests.support.certificates import Authority
from tests.support.clock import AGES
from tests.support.eventually import eventually
from tests.support.ports import free_port
from tests.support.scripted_http_server import ScriptedHttpServer
from tests.support.scripted_server import ScriptedServer

NAMES = [f"persistent://t/n/{name}" for name in ("a", "b", "b-partition-1", "c d")]
ARROW = "application/vnd.apache.arrow.stream"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("lookup_client._FIRST_PAUSE", "lookup_client._LONGEST_PAUSE"):
        monkeypatch.setattr(f"broker_core.client.{module}", 0.001)
    for name in ("_FIRST_BACKOFF", "_LONGEST_BACKOFF"):
        monkeypatch.setattr(f"broker_core.client.http.http_service.{name}", 0.001)


def arrow(names: list[str], **headers: str) -> web.Response:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema([("name", pa.string())])) as out:
        out.write_batch(pa.record_batch([pa.array(names, pa.string())], names=["name"]))
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return web.Response(body=sink.getvalue().to_pybytes(), content_type=ARROW, headers=named)


def problem(status: int, cause: str, detail: str) -> web.Response:
    return web.json_response(
        {"cause": cause, "detail": detail}, status=status, content_type="application/problem+json"
    )


def always(make: Callable[[], web.StreamResponse]) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def answer(_request: web.Request) -> web.StreamResponse:
        return make()

    return answer


async def broker(request: web.Request) -> web.StreamResponse:
    """A broker's web service: it has no API of ours."""
    if request.path == "/admin/v2/namespaces/t/n/topics":
        assert request.query["mode"] in ("PERSISTENT", "NON_PERSISTENT", "ALL")
        return web.json_response(NAMES, dumps=lambda names: json.dumps(names, separators=(",", ":")))
    if request.path.startswith("/admin/v2/persistent/t/n/"):
        return web.json_response({"partitions": 3, "deleted": False})
    if request.path.startswith("/lookup/v2/topic/persistent/t/n/"):
        return web.json_response({"brokerUrl": "pulsar://b:6650", "brokerUrlTls": "", "httpUrl": "http://b"})
    if request.path.startswith(("/admin", "/lookup")):
        return web.json_response({"reason": "Namespace does not exist"}, status=404)
    return web.Response(status=404, text="<html>", content_type="text/html")


# ---- listings ----------------------------------------------------------------------------------------------


async def test_a_listing_of_this_server() -> None:
    answer = always(lambda: arrow(NAMES, Topics_Filtered="true", ETag='W/"0011aabb"'))
    async with ScriptedHttpServer(answer) as server, LookupClient(server.url) as client:
        found = await client.get_topics_under_namespace(
            "t/n", Mode.ALL, "persistent://t/n/[a-c].*+é", "0000", {"b": "2 =&", "a": "1"}
        )
        assert found == NAMES
        assert (found.filtered, found.changed, found.topics_hash) == (True, True, "0011aabb")
        (request,) = server.requests
        assert request.path == "/v1/namespaces/t/n/topics"
        assert list(request.query.items()) == [
            ("mode", "all"),
            ("pattern", "persistent://t/n/[a-c].*+é"),
            ("property", "a=1"),
            ("property", "b=2 =&"),
        ]
        assert (request.headers["Accept"], request.headers["If-None-Match"]) == (ARROW, 'W/"0000"')
        await client.get_topics_under_namespace("t/n")
        assert "If-None-Match" not in server.requests[1].headers


async def test_an_unchanged_listing() -> None:
    async with (
        ScriptedHttpServer(always(lambda: web.Response(status=304))) as server,
        LookupClient(server.url) as client,
    ):
        found = await client.get_topics_under_namespace("t/n", topics_hash="0011aabb")
        assert (found.changed, len(found), found.topics_hash) == (False, 0, "0011aabb")


async def test_what_the_server_did_not_filter_is_filtered_here() -> None:
    answer = always(lambda: arrow(NAMES, Topics_Filtered="false", ETag='W/"0011aabb"'))
    async with ScriptedHttpServer(answer) as server, LookupClient(server.url) as client:
        found = await client.get_topics_under_namespace("t/n", topics_pattern="t/n/b")
        assert found == NAMES[1:3]
        assert (found.filtered, found.topics_hash) == (False, "0011aabb")


async def test_a_listing_above_the_cap_is_read_page_by_page() -> None:
    """Its pages have no hash of the whole, so it is computed."""

    async def answer(request: web.Request) -> web.StreamResponse:
        place = int(request.query.get("cursor", "0"))
        more = {"Link": f'<{request.path}?cursor={place + 1}>; rel="next"'} if place + 1 < len(NAMES) else {}
        return arrow(NAMES[place : place + 1], Topics_Filtered="true", ETag='W/"0011aabb-7"', **more)

    async with ScriptedHttpServer(answer) as server, LookupClient(server.url) as client:
        found = await client.get_topics_under_namespace("t/n")
        assert found == NAMES
        assert found.topics_hash == topics_hash(NAMES)
        again = await client.get_topics_under_namespace("t/n", topics_hash=found.topics_hash)
        assert not again.changed
        assert len(server.requests) == 8


async def test_a_server_that_says_nothing_holds_up_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it begins to ask: the other address is asked beside it."""
    monkeypatch.setattr(address_turns, "_PATIENCE", 0.001)
    never = asyncio.Event()

    async def silent(_request: web.Request) -> web.StreamResponse:
        await never.wait()
        raise AssertionError

    answer = always(lambda: arrow(NAMES, Topics_Filtered="true", ETag='W/"0011aabb"'))
    async with (
        ScriptedHttpServer(silent) as hangs,
        ScriptedHttpServer(answer) as answers,
        LookupClient(f"{hangs.url},{answers.url.removeprefix('http://')}") as client,
    ):
        for _ in range(4):
            assert await client.get_topics_under_namespace("t/n") == NAMES
        assert len(hangs.requests) <= 1


async def test_a_broker_has_another_api_and_filters_nothing() -> None:
    async with ScriptedHttpServer(broker) as server, LookupClient(server.url) as client:
        found = await client.get_topics_under_namespace("t/n", topics_pattern="persistent://t/n/b")
        assert found == NAMES[1:3]
        assert (found.filtered, found.topics_hash) == (False, topics_hash(NAMES[1:3]))
        again = await client.get_topics_under_namespace(
            "t/n", topics_pattern="persistent://t/n/b", topics_hash=found.topics_hash
        )
        assert not again.changed
        assert server.paths[1::2] == ["/admin/v2/namespaces/t/n/topics?mode=PERSISTENT"] * 2
        with pytest.raises(ServerRefused, match="TopicNotFound: Namespace does not exist"):
            await client.get_topics_under_namespace("t/none")
        with pytest.raises(UnexpectedAnswer, match="does not belong into a listing of mode NON_PERSISTENT"):
            await client.get_topics_under_namespace("t/n", Mode.NON_PERSISTENT)


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (problem(403, "DENIED", "no"), ServerRefused, "AuthorizationError: no"),
        (problem(404, "NOT_FOUND", "none"), ServerRefused, "TopicNotFound: none"),
        (problem(400, "PATTERN", "bad"), ServerRefused, "MetadataError: bad"),
        (web.json_response({"cause": "UNAUTHENTICATED"}, status=401), HandshakeRefused, "Authentication"),
        (web.json_response([]), UnexpectedAnswer, "application/json"),
        (web.Response(body=b"x", content_type=ARROW), UnexpectedAnswer, "no listing"),
    ],
)
async def test_other_answers_are_errors_at_once(
    answer: web.Response, error: type[Exception], text: str
) -> None:
    async with (
        ScriptedHttpServer(always(lambda: answer)) as server,
        LookupClient(server.url, operation_timeout=AGES) as client,
    ):
        with pytest.raises(error, match=text):
            await client.get_topics_under_namespace("t/n")
        assert len(server.requests) == 1


async def test_a_proxy_that_does_not_find_the_server_makes_no_broker_of_it() -> None:
    """Neither for the next question, nor for the properties of this one."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/admin/v2/persistent/t/n":
            assert request.query["properties"] == "a+b=,team=blue%2C+or+so"
            return web.json_response(NAMES[:1])
        if len(server.requests) > 2:
            return arrow(NAMES[1:2])
        return web.Response(status=404, text="default backend - 404")

    async with ScriptedHttpServer(answer) as server, LookupClient(server.url) as client:
        found: list[str] = []
        for _ in range(2):
            found += await client.get_topics_under_namespace(
                "t/n", properties={"team": "blue, or so", "a b": ""}
            )
        assert found == NAMES[:2]


async def test_a_broker_that_cannot_apply_properties_is_not_asked() -> None:
    async with ScriptedHttpServer(broker) as server, LookupClient(server.url) as client:
        for mode, properties in ((Mode.ALL, {"a": "1"}), (Mode.PERSISTENT, {"": "1"})):
            with pytest.raises(InvalidQuestion, match="properties for persistent topics only"):
                await client.get_topics_under_namespace("t/n", mode, properties=properties)
        assert [path for path in server.paths if path.startswith("/admin")] == []


async def test_an_address_without_any_api_is_no_missing_topic() -> None:
    answer = always(lambda: web.Response(status=404, text="default backend - 404"))
    async with ScriptedHttpServer(answer) as server, LookupClient(server.url) as client:
        with pytest.raises(UnexpectedAnswer, match="neither the API of this server nor"):
            await client.get_topics_under_namespace("t/n")


async def test_unchanged_to_a_question_without_a_hash() -> None:
    answer = always(lambda: web.Response(status=304))
    async with ScriptedHttpServer(answer) as server, LookupClient(server.url) as client:
        with pytest.raises(UnexpectedAnswer, match="without a hash"):
            await client.get_topics_under_namespace("t/n")


@pytest.mark.parametrize("link", ["</v1/x>", "</v1/namespaces/t/n/topics?mode=persistent>", "<http://[::1>"])
async def test_pages_that_do_not_end(link: str) -> None:
    answer = always(lambda: arrow(NAMES[:1], Link=f'{link}; rel="next"'))
    async with ScriptedHttpServer(answer) as server, LookupClient(server.url) as client:
        with pytest.raises(UnexpectedAnswer, match=r"do not end|no address"):
            await client.get_topics_under_namespace("t/n")
        assert len(server.requests) <= 2


@pytest.mark.parametrize("paged", [False, True])
async def test_an_answer_is_bounded(paged: bool) -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        more = {"Link": f'</v1/{len(server.requests)}>; rel="next"'} if paged else {}
        return arrow(NAMES * (1 if paged else 1000), **more)

    async with ScriptedHttpServer(answer) as server, LookupClient(server.url, max_answer=10_000) as client:
        with pytest.raises(UnexpectedAnswer, match=r"is larger than \d+ bytes"):
            await client.get_topics_under_namespace("t/n")
        assert len(server.requests) < 50


async def test_an_endless_answer_is_bounded_too() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": ARROW})
        await response.prepare(request)
        while True:
            await response.write(b"x" * 10_000)

    async with ScriptedHttpServer(answer) as server, LookupClient(server.url, max_answer=100_000) as client:
        with pytest.raises(UnexpectedAnswer, match="is larger than 100000 bytes"):
            await client.get_topics_under_namespace("t/n")
        with pytest.raises(UnexpectedAnswer, match="is larger than 1048576 bytes"):
            await client.lookup("persistent://t/n/x")


async def test_compressed_answers_are_refused_as_they_are() -> None:
    def answer() -> web.Response:
        response = arrow(NAMES)
        assert isinstance(response.body, bytes)
        return web.Response(
            body=gzip.compress(response.body), content_type=ARROW, headers={"Content-Encoding": "gzip"}
        )

    async with ScriptedHttpServer(always(answer)) as server, LookupClient(server.url) as client:
        with pytest.raises(UnexpectedAnswer, match="sent 'gzip', which was not asked for"):
            await client.get_topics_under_namespace("t/n")


async def test_credentials_that_no_header_can_have(echo: ScriptedHttpServer) -> None:
    async def data() -> bytes:
        return b"geheim\r\nX: y"

    async with LookupClient(echo.url, auth=Credentials("own", data)) as client:
        with pytest.raises(CredentialsFailed, match="control characters") as failed:
            await client.get_topics_under_namespace("t/n")
        assert "geheim" not in str(failed.value)
    assert not echo.requests


async def test_what_passes_is_asked_again() -> None:
    async def answer(_request: web.Request) -> web.StreamResponse:
        asked = len(server.requests)
        if asked < 3:
            return problem(503, ("PERMITS", "UNAVAILABLE")[asked - 1], "later")
        return arrow(NAMES)

    async with ScriptedHttpServer(answer) as server, LookupClient(server.url) as client:
        assert await client.get_topics_under_namespace("t/n") == NAMES


async def test_an_answer_that_is_cut_is_asked_for_again() -> None:
    async def answer(request: web.Request) -> web.StreamResponse:
        whole = arrow(NAMES)
        if len(server.requests) > 2:
            return whole
        response = web.StreamResponse(headers={"Content-Type": ARROW})
        await response.prepare(request)
        assert isinstance(whole.body, bytes)
        await response.write(whole.body[: -20 * len(server.requests)])
        assert request.transport is not None
        request.transport.abort()
        return response

    async with ScriptedHttpServer(answer) as server, LookupClient(server.url) as client:
        assert await client.get_topics_under_namespace("t/n") == NAMES
        assert len(server.requests) == 3


async def test_a_property_that_cannot_be_sent() -> None:
    async with LookupClient("http://127.0.0.1:1") as client:
        with pytest.raises(InvalidQuestion, match="equals sign"):
            await client.get_topics_under_namespace("t/n", properties={"a=b": "c"})


# ---- lookups -----------------------------------------------------------------------------------------------


async def test_partitions_and_the_broker_of_a_topic() -> None:
    async with ScriptedHttpServer(broker) as server, LookupClient(server.url) as client:
        assert await client.partitioned_metadata("persistent://t/n/a b%é", auto_create=True) == 3
        found = await client.lookup("persistent://t/n/x", listener_name="out side")
        assert (found.url, found.url_tls, found.redirect) == ("pulsar://b:6650", None, False)
        assert server.paths == [
            "/admin/v2/persistent/t/n/a%20b%25%C3%A9/partitions?checkAllowAutoCreation=true",
            "/lookup/v2/topic/persistent/t/n/x?listenerName=out+side",
        ]


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"partitions":"3"}', b'{"partitions":-1}', b'{"partitions":true}']
)
async def test_answers_to_lookups_that_say_nothing(body: bytes) -> None:
    answer = always(lambda: web.Response(body=body, content_type="application/json"))
    async with ScriptedHttpServer(answer) as server, LookupClient(server.url) as client:
        for ask in (client.partitioned_metadata, client.lookup):
            with pytest.raises(UnexpectedAnswer):
                await ask("persistent://t/n/x")


async def test_redirects_have_the_credentials_at_addresses_of_the_service_url_only() -> None:
    async with ScriptedHttpServer(broker) as owner:

        async def answer(request: web.Request) -> web.StreamResponse:
            raise web.HTTPTemporaryRedirect(f"{owner.url}{request.path_qs}?authoritative=true")

        async with ScriptedHttpServer(answer) as server:
            path = "/lookup/v2/topic/persistent/t/n/x?authoritative=true"
            for url, sent in ((f"{server.url},127.0.0.1:{owner.port}", "Bearer a.b.c"), (server.url, None)):
                owner.requests.clear()
                async with LookupClient(url, auth=Token("a.b.c")) as client:
                    while path not in owner.paths:  # it may begin with the second address
                        assert (await client.lookup("persistent://t/n/x")).url == "pulsar://b:6650"
                (redirected,) = [request for request in owner.requests if request.path_qs == path]
                assert redirected.headers.get("Authorization") == sent
            owner.answer = always(lambda: web.json_response({"reason": "who?"}, status=401))
            async with LookupClient(server.url, auth=Token("a.b.c")) as client:
                with pytest.raises(HandshakeRefused, match="they go to addresses of the service URL only"):
                    await client.lookup("persistent://t/n/x")


@pytest.mark.parametrize(
    ("location", "text"),
    [
        ("", "redirects more than 20 times"),
        ("https://b/x", "no broker of http"),
        ("http://me:pw" + "@b/x", "no broker of http"),
        ("ftp://b", "no broker of http"),
        ("http://[::1", "what is no address"),
        ("http://127.0.0.1:99999/x", "what is no address"),
        ("http://b:c/", "what is no address"),
        (f"http://{'a' * 300}/", "cannot be asked"),
    ],
)
async def test_redirects_that_lead_nowhere(location: str, text: str) -> None:
    answer = always(lambda: web.Response(status=307, headers={"Location": location}))
    async with ScriptedHttpServer(answer) as server, LookupClient(server.url) as client:
        with pytest.raises(UnexpectedAnswer, match=text):
            await client.lookup("persistent://t/n/x")


# ---- connections -------------------------------------------------------------------------------------------


async def test_the_server_may_come_later_and_another_address_answers() -> None:
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
        with pytest.raises(OperationTimeout, match="cannot connect to 127"):
            await client.get_topics_under_namespace("t/n", timeout=0.2)
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


# ---- credentials and TLS -----------------------------------------------------------------------------------


@pytest.fixture
async def echo() -> AsyncIterator[ScriptedHttpServer]:
    async with ScriptedHttpServer(always(lambda: arrow(NAMES))) as server:
        yield server


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
