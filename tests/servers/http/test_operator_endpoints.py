"""The answer of each HTTP path."""

from __future__ import annotations

import json

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Counter

from broker_core.names import Mode
from broker_core.servers.http import Endpoints, HttpServer, Readiness
from tests.support.http_serving import Served


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
    server = HttpServer(Endpoints(CollectorRegistry(), lambda: Readiness.READY))
    host, port = await server.start("127.0.0.1", 0)
    async with session.get(f"http://{host}:{port}/questions") as answer:
        assert answer.status == 403
        assert "questions = true in the table [http]" in (await answer.json())["error"]
    await server.close()


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
