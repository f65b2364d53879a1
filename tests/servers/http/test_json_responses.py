"""Errors as JSON responses."""

from __future__ import annotations

import aiohttp
import pytest
from prometheus_client import Gauge
from structlog.testing import capture_logs

from tests.support.http_serving import Served


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
