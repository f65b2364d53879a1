"""A lookup service over HTTP: listings and lookups of this server and of a broker, redirects."""

from __future__ import annotations

import asyncio
import gzip
import json

import pytest
from aiohttp import web

from broker_core.client import (
    CredentialsFailed,
    HandshakeRefused,
    HttpService,
    InvalidQuestion,
    ListingWarning,
    LookupClient,
    ServerRefused,
    Token,
    UnexpectedAnswer,
    topics_hash,
)
from broker_core.client.http import address_turns
from broker_core.names import Mode
from tests.client.http.scripted_answers import ARROW, NAMES, always, arrow, broker, problem
from tests.support.clock import AGES
from tests.support.scripted_http_server import ScriptedHttpServer

pytestmark = pytest.mark.usefixtures("no_pauses")


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


async def test_a_server_that_does_not_apply_the_pattern_is_asked_for_all_topics() -> None:
    """Older servers list them without being asked to."""

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.query.get("unfiltered") == "true":
            return arrow(NAMES, Topics_Filtered="false")
        refused = {"cause": "PATTERN", "detail": "not applied", "retry_with": "unfiltered=true"}
        return web.json_response(refused, status=400, content_type="application/problem+json")

    for each in (answer, always(lambda: arrow(NAMES, Topics_Filtered="false"))):
        async with ScriptedHttpServer(each) as server, LookupClient(server.url) as client:
            found = await client.get_topics_under_namespace("t/n", topics_pattern="t/n/[ab]")
            assert found == NAMES[:3]
            assert (found.filtered, found.warnings) == (False, ())


async def test_an_error_that_asks_for_the_same_again_is_one() -> None:
    def again() -> web.Response:
        refused = {"cause": "PATTERN", "detail": "never", "retry_with": "unfiltered=true"}
        return web.json_response(refused, status=400, content_type="application/problem+json")

    async with ScriptedHttpServer(always(again)) as server, LookupClient(server.url) as client:
        with pytest.raises(ServerRefused, match="never"):
            await client.get_topics_under_namespace("t/n", topics_pattern="t/n/a")
        assert len(server.requests) == 2


async def test_warnings_of_the_server_are_warnings_here() -> None:
    said = json.dumps(["nothing selects by \x1b[1m"])
    answer = always(lambda: arrow(NAMES, Topics_Warnings=said))
    async with ScriptedHttpServer(answer) as server, LookupClient(server.url) as client:
        with pytest.warns(ListingWarning, match=r"^nothing selects by \\x1b\[1m$"):
            found = await client.get_topics_under_namespace("t/n", properties={"colour": "red"})
        assert found.warnings == ("nothing selects by \x1b[1m",)
        assert found[1:].warnings == ()


@pytest.mark.parametrize("said", ["nothing", "{}", "[1]", "[" * 100_000])
async def test_warnings_that_are_none(said: str) -> None:
    answer = always(lambda: arrow(NAMES, Topics_Warnings=said))
    async with ScriptedHttpServer(answer) as server, LookupClient(server.url) as client:
        with pytest.raises(UnexpectedAnswer, match="warnings"):
            await client.get_topics_under_namespace("t/n")


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


async def test_non_persistent_topics_of_all_brokers() -> None:
    names = ["non-persistent://t/n/a", "non-persistent://t/n/b"]
    asked: list[tuple[str, str | None]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append((request.path_qs, request.headers.get("X-Original-Principal")))
        if request.path.endswith("/none"):
            return web.json_response({"reason": "Namespace does not exist"}, status=404)
        return web.json_response(names) if request.path.endswith("/n") else web.Response(status=404)

    async with ScriptedHttpServer(answer) as server:
        service = HttpService(
            server.url,
            client_version="x",
            credentials=None,
            tls=None,
            connect_timeout=AGES,
            max_answer=1000,
            original_principal="ann",
        )
        assert (await service.loaded_topics("t/n")).to_pylist() == names
        assert (await service.loaded_topics("t/none")).to_pylist() == []
        with pytest.raises(ServerRefused):
            await service.loaded_topics("t/gone")
        assert asked == [(f"/admin/v2/non-persistent/t/{each}", "ann") for each in ("n", "none", "gone")]
        await service.close()
        odd = HttpService(
            server.url,
            client_version="x",
            credentials=None,
            tls=None,
            connect_timeout=AGES,
            max_answer=1000,
            original_principal="a\r\nb",
        )
        with pytest.raises(CredentialsFailed, match="cannot be sent"):
            await odd.loaded_topics("t/n")
        await odd.close()


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
