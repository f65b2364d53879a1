from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from aiohttp import StreamReader, web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.test_utils import make_mocked_request

from broker_core.servers.http.api import api_request
from broker_core.servers.http.api.api_request import Body, RequestObject, check_body, read_pieces
from broker_core.servers.http.api.json_object import Text
from broker_core.servers.http.api.problem_details import RequestRefused

BODY = Body({"application/json": {}}, most_bytes=10)


def request(*pieces: bytes, ends: bool = True, headers: Mapping[str, str] | None = None) -> web.Request:
    loop = asyncio.get_running_loop()
    protocol = BaseProtocol(loop)
    protocol.connection_made(asyncio.Transport())
    stream = StreamReader(protocol, 2**16, loop=loop)
    for piece in pieces:
        stream.feed_data(piece)
    if ends:
        stream.feed_eof()
    return make_mocked_request("POST", "/x", headers=headers, payload=stream)


async def test_a_body_comes_piece_by_piece() -> None:
    assert (
        b"".join([piece async for piece in read_pieces(request(b"01234", b"56789"), BODY)]) == b"0123456789"
    )


async def test_one_that_is_larger_is_refused() -> None:
    with pytest.raises(RequestRefused) as refused:
        _ = [piece async for piece in read_pieces(request(b"01234", b"567890"), BODY)]
    assert refused.value.problem.status == 413


async def test_one_that_does_not_come_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_request, "_TIMEOUT", 0.001)
    with pytest.raises(RequestRefused) as refused:
        _ = [piece async for piece in read_pieces(request(b"0", ends=False), BODY)]
    assert refused.value.problem.status == 408


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 415),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/json", "Content-Encoding": "gzip"}, 415),
        ({"Content-Type": "application/json", "Content-Length": "11"}, 413),
        ({"Content-Type": "application/json; charset=utf-8", "Content-Length": "10"}, None),
    ],
)
async def test_what_an_operation_takes(headers: dict[str, str], status: int | None) -> None:
    asked = request(b"{}", headers=headers)
    if status is None:
        check_body(asked, BODY)
    else:
        with pytest.raises(RequestRefused) as refused:
            check_body(asked, BODY)
        assert refused.value.problem.status == status


class Asked(RequestObject):
    wrong = {"": "must be an object", "name": "name must be text", "count": "count must be a number"}  # noqa: RUF012
    prefix = "the body: "

    name: Text = ""
    count: int = 0


@pytest.mark.parametrize(
    ("content", "detail"),
    [
        ([], "must be an object"),
        (None, "must be an object"),
        ({"count": "1"}, "count must be a number"),
        ({"count": True, "name": 1}, "name must be text"),
        ({"name": 1, "b": 2, "a": 3}, "unknown member 'b' of the body; known: name, count"),
        ({"name": "\ud800"}, "a text is not valid Unicode (a lone surrogate)"),
        ({"name": "\ud800", "count": "x"}, "count must be a number"),
    ],
)
def test_a_wrong_body_is_refused_in_words(content: Any, detail: str) -> None:
    with pytest.raises(RequestRefused) as refused:
        Asked.read(content)
    assert (refused.value.problem.status, refused.value.problem.detail) == (400, f"the body: {detail}")
    assert Asked.read({"name": "x"}) == Asked(name="x")
