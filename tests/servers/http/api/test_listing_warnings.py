"""Warnings over HTTP: in each form of a listing, and the error of a listing that its client would have to filter."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.api_serving import NAMESPACE, ApiServed, api_served
from tests.support.event_reader import EventReader

LISTING = f"{NAMESPACE}/topics"
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
