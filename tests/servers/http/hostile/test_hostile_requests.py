"""Hostile requests do no harm: no 5xx but for limits, no traceback, all permits and places free; PING is answered.

``python -m tests.benchmarks.hostile`` sends a hundred thousand to a process of its own, and looks at its memory.
"""

from __future__ import annotations

import asyncio
from itertools import islice
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.servers.http.hostile.attack import attack, may_be
from tests.servers.http.hostile.hostile_requests import KINDS, Hostile, hostile_requests
from tests.support.api_serving import api_served
from tests.support.eventually import eventually
from tests.support.raw_client import RawClient


@pytest.mark.parametrize("count", [1000, pytest.param(5000, marks=pytest.mark.long)])
async def test_hostile_requests_do_no_harm(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, count: int
) -> None:
    asyncio.get_running_loop().set_debug(False)  # it says what took 0.1 s, and keeps a traceback of each task
    with capture_logs() as logs:
        async with api_served(tmp_path) as served:
            assert served.broker.http_address is not None
            async with asyncio.TaskGroup() as group:
                pings = group.create_task(ping_on(served.broker.pulsar_address))
                requests = islice(hostile_requests(14), count)
                attacked = await attack(served.broker.http_address, requests, clients=16)
                pings.cancel()
            assert [(request, said) for request, said in attacked.wrong if not may_be(request, said)] == []
            assert {kind for kind, _ in attacked.statuses} == set(KINDS)
            assert attacked.of(200) > count // 10
            assert attacked.of(400) > count // 10
            assert (await served.ask("/-/live")).status == 200
            await eventually(lambda: served.sample("http_requests_under_way") == 0)
    assert [line for line in logs if line["log_level"] in {"error", "critical"}] == []
    assert "Traceback" not in caplog.text


def test_the_same_requests_come_for_a_seed() -> None:
    assert list(islice(hostile_requests(3), 50)) == list(islice(hostile_requests(3), 50))
    assert list(islice(hostile_requests(3), 50)) != list(islice(hostile_requests(4), 50))


def test_which_answers_are_documented() -> None:
    listing = Hostile("fine", (b"GET /v1/namespaces HTTP/1.1\r\n",))
    lookup = Hostile("fine", (b"GET /lookup/v2/topic/persistent/a/b/c HTTP/1.1\r\n",))
    assert may_be(listing, b"HTTP/1.1 503 Service Unavailable\r\n")
    assert not may_be(listing, b"HTTP/1.1 501 Not Implemented\r\n")
    assert may_be(lookup, b"HTTP/1.1 501 Not Implemented\r\n")
    assert not may_be(lookup, b"HTTP/1.1 500 Internal Server Error\r\n")


async def ping_on(address: tuple[str, int]) -> None:
    """Until it is cancelled; a PONG that does not come is an error."""
    while True:
        async with asyncio.timeout(30), await RawClient.open(address) as client:
            await client.ping()
