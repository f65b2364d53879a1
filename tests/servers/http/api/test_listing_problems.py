"""Listings that HTTP refuses, and answers that it cannot send."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from broker_core.errors import ListingFailed, TooManyRequests
from broker_core.pipeline import Answer
from broker_core.servers.http.api.listing_problems import sending
from broker_core.servers.http.api.problem_details import RequestRefused, refused
from tests.support.api_serving import NAMESPACE, ApiServed, api_served
from tests.support.event_reader import EventReader


def answer(ends: list[ListingFailed | None]) -> Answer:
    return Answer(None, "hash", False, "catalog", "none", on_release=(ends.append,))


def test_what_was_sent_has_no_failure() -> None:
    ends: list[ListingFailed | None] = []
    with sending(answer(ends)):
        pass
    assert ends == [None]


def test_a_client_that_is_gone_is_no_failure() -> None:
    ends: list[ListingFailed | None] = []
    with pytest.raises(ConnectionError), sending(answer(ends)):
        raise ConnectionResetError
    assert ends == [None]


def test_what_cannot_be_sent_is_told_once() -> None:
    ends: list[ListingFailed | None] = []
    failure = TooManyRequests("no", reason="direct")
    with pytest.raises(TooManyRequests), sending(answer(ends)):
        raise failure
    assert ends == [failure]
    assert failure.reported


def test_what_http_refuses_and_what_nobody_foresaw_have_a_reason() -> None:
    ends: list[ListingFailed | None] = []
    with pytest.raises(RequestRefused) as caught, sending(answer(ends)):
        raise refused(406, "no")
    assert caught.value.reported
    with pytest.raises(KeyError), sending(answer(ends)):
        raise KeyError
    assert [end and end.reason for end in ends] == ["bad_request", "internal"]


async def test_a_request_without_a_place_is_a_listing_that_was_refused(served: ApiServed) -> None:
    servers = served.broker._http_servers
    assert servers is not None
    servers._services.admission.drain()
    assert (await served.ask(f"{NAMESPACE}/topics")).status == 503
    assert served.sample("listing_rejected_total", reason="failed") == 1
    assert served.sample("listing_errors_sent_total", reason="failed") == 1
    assert served.sample("listing_seconds_count") == 1


async def test_a_refusal_of_the_pipeline_is_counted_once(served: ApiServed) -> None:
    assert (await served.ask(f"{NAMESPACE}/topics?pattern=(" + "a" * 100)).status == 400
    assert served.sample("listing_rejected_total", reason="bad_pattern") == 1
    assert served.sample("listing_errors_sent_total", reason="bad_pattern") == 1
    assert served.sample("listing_requests_total", outcome="error", plan="unknown") == 1


LISTING = f"{NAMESPACE}/topics"


@pytest.mark.parametrize(
    ("pattern", "part"),
    [("public/default/(?!b).*", "(?!"), ("persistent://public/default/(b", "("), ("http://b", "http://")],
)
async def test_a_refused_pattern_is_told_with_its_part(served: ApiServed, pattern: str, part: str) -> None:
    for query in ({}, {"limit": "1"}):
        said = await served.ask(LISTING, params={"pattern": pattern} | query)
        assert (said.status, said.json["cause"]) == (400, "PATTERN")
        error = said.json["error"]
        assert pattern[error["offset"] : error["offset"] + error["length"]] == part


async def test_other_errors_have_no_part(served: ApiServed) -> None:
    said = await served.ask(LISTING, params={"pattern": "x" * 20_000})
    assert (said.status, "error" in said.json) == (400, False)
    assert "error" not in (await served.ask(f"{LISTING}?limit=0")).json


NDJSON = "application/x-ndjson"
ARROW = "application/vnd.apache.arrow.stream"
LOOKAHEAD = {"pattern": "public/default/(?=b).*"}


@pytest.fixture
async def unevaluated(tmp_path: Path) -> AsyncIterator[ApiServed]:
    async with api_served(tmp_path, patterns={"evaluate": False}) as served:
        yield served


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"pattern": "orders.*"}, ["such as 'public/default/orders.*'"]),
        ({"property": "colour=é"}, ["by the property 'colour'"]),
        ({"pattern": "é/.*", "property": "Größe=1"}, ["'é/.*'", "'Größe'"]),
        ({"pattern": "orders.*", "limit": "1"}, ["can match no topic"]),
        ({"pattern": "orders.*", "detail": "partitions"}, ["can match no topic"]),
    ],
)
async def test_each_form_has_them(served: ApiServed, query: dict[str, str], says: list[str]) -> None:
    said = await served.ask(LISTING, params=query)
    warnings = said.json["warnings"]
    for warning, text in zip(warnings, says, strict=True):
        assert text in warning
    for accept in (NDJSON, ARROW, *(() if "detail" in query else ("text/plain",))):
        said = await served.ask(LISTING, params=query, headers={"Accept": accept})
        assert said.headers["Topics-Warnings"].isascii()
        assert json.loads(said.headers["Topics-Warnings"]) == warnings
        if accept == NDJSON:
            assert json.loads(said.body.splitlines()[-1])["warnings"] == warnings


async def test_a_client_that_has_the_listing_is_warned_too(served: ApiServed) -> None:
    query = {"property": "colour=red"}
    first = await served.ask(LISTING, params=query)
    said = await served.ask(LISTING, params=query, headers={"If-None-Match": first.headers["ETag"]})
    assert (said.status, said.headers["Topics-Warnings"]) == (304, first.headers["Topics-Warnings"])


@pytest.mark.parametrize("query", [{}, {"pattern": "public/default/none"}, {"property": "region=eu"}])
async def test_there_are_none_without_a_reason(served: ApiServed, query: dict[str, str]) -> None:
    said = await served.ask(LISTING, params=query)
    assert "warnings" not in said.json
    assert "Topics-Warnings" not in said.headers


@pytest.mark.parametrize(
    "more", [{}, {"limit": "1"}, {"detail": "properties"}, {"count": "true", "limit": "1"}]
)
@pytest.mark.parametrize("accept", ["application/json", ARROW])
async def test_what_the_client_would_have_to_filter_is_an_error(
    served: ApiServed, accept: str, more: dict[str, str]
) -> None:
    headers = {"Accept": accept}
    said = await served.ask(LISTING, params=LOOKAHEAD | more, headers=headers)
    assert (said.status, said.json["cause"], said.json["retry_with"]) == (400, "PATTERN", "unfiltered=true")
    assert "RE2 refuses it" in said.json["detail"]
    assert said.json["detail"].endswith("; unfiltered=true asks for all of them")
    assert served.sample("listing_errors_sent_total", reason="bad_pattern") == 1
    said = await served.ask(LISTING, params=LOOKAHEAD | more | {"unfiltered": "true"}, headers=headers)
    assert (said.status, said.headers["Topics-Filtered"]) == (200, "false")
    if accept != ARROW:
        assert len(said.json["items"]) == (1 if "limit" in more else 3)


async def test_a_server_that_applies_no_patterns(unevaluated: ApiServed) -> None:
    query = {"pattern": "public/default/b.*"}
    said = await unevaluated.ask(LISTING, params=query)
    assert said.status == 400
    assert "patterns.evaluate is false" in said.json["detail"]
    said = await unevaluated.ask(LISTING, params=query | {"unfiltered": "true"})
    assert (said.status, len(said.json["items"])) == (200, 3)
    said = await unevaluated.ask(LISTING, params={"unfiltered": "true"})
    assert (said.status, "warnings" in said.json) == (200, False)


async def test_a_stream_of_events(served: ApiServed) -> None:
    async def first(**params: str) -> tuple[dict[str, Any], str | None]:
        headers = {"Accept": "text/event-stream"}
        async with served.session.get(served.url + LISTING, params=params, headers=headers) as response:
            if response.status != 200:
                return await response.json(content_type=None), None
            (event,) = [await EventReader(response).next()]
            return event.data, response.headers.get("Topics-Warnings")

    data, header = await first(property="colour=red")
    assert data["warnings"] == json.loads(header or "")
    # A follower of the same topics has warnings of its own.
    data, header = await first(property="color=red")
    assert "'color'" in data["warnings"][0]
    data, header = await first()
    assert ("warnings" in data, header) == (False, None)
    problem, _ = await first(**LOOKAHEAD)
    assert (problem["status"], problem["retry_with"]) == (400, "unfiltered=true")
    data, _ = await first(**LOOKAHEAD, unfiltered="true")
    assert (data["filtered"], len(data["items"]), "warnings" in data) == (False, 3, False)


async def test_explaining_has_them(served: ApiServed) -> None:
    body = {"pattern": "orders.*", "properties": {"colour": "red"}}
    said = await served.ask(f"{NAMESPACE}/explain", "POST", json=body)
    listed = await served.ask(LISTING, params={"pattern": "orders.*", "property": "colour=red"})
    assert said.json["warnings"] == listed.json["warnings"]
