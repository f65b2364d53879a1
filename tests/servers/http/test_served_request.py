from __future__ import annotations

import aiohttp
from aiohttp import web

from broker_core.servers.http.served_request import ServedRequest
from tests.support.http_serving import Served


def test_a_request_may_know_its_connection() -> None:
    assert ServedRequest.connection is None
    assert "connection" in ServedRequest.ATTRS
    assert web.Request.ATTRS < ServedRequest.ATTRS


async def test_a_response_is_not_kept_by_caches_and_tells_no_versions(
    served: Served, session: aiohttp.ClientSession
) -> None:
    async with session.get(f"{served.url}/-/live") as said:
        assert said.headers["Cache-Control"] == "no-store"
        assert "Server" not in said.headers
