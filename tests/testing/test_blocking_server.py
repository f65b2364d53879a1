"""``broker_core.testing.BlockingServer``: the test server without an event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from broker_core import ListingRequest, Page, TopicListingResult, hookimpl
from broker_core.client import ServerRefused
from broker_core.testing import BlockingServer, Server

PREFIX = "persistent://public/default/"


def test_it_serves_and_ends() -> None:
    with BlockingServer(topics=[PREFIX + "a", PREFIX + "b"]) as server:
        assert server.url.startswith("pulsar://127.0.0.1:")
        assert server.list("public/default", pattern=".*/b").topics == [PREFIX + "b"]
        with pytest.raises(ServerRefused):
            server.list("public")
    assert "broker-core-testing" not in {thread.name for thread in threading.enumerate()}
    with pytest.raises(RuntimeError, match="not running"):
        server.list("public/default")
    server.close()


class Plugin:
    @hookimpl
    async def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult | None:
        role = request.asker.role
        return None if role is None else TopicListingResult.success([PREFIX + role])


async def loop_that_runs() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def test_all_that_the_other_one_can() -> None:
    with BlockingServer({"mine": Plugin()}, topics=[PREFIX + "a"]) as server:
        assert server.list("public/default", role="eve", mode="all", address="203.0.113.7").topics == [
            PREFIX + "eve"
        ]
        assert server.ask("public/default", role="eve").lister == "mine"
        assert server.ask("public/default", page=Page(None, 1), wants={"partitions"}).details is not None
        assert "broker_core_listing_requests" in server.metrics()
        assert server.http_url.startswith("http://")
        loop = server.run(loop_that_runs())
        assert loop is server.run(loop_that_runs())
        server.create(PREFIX + "b", partitions=2)
        assert len(server.list("public/default")) == 3
        assert server.partitions(PREFIX + "b") == 2
        server.delete(PREFIX + "b")
        assert len(server.list("public/default")) == 1
    public = {name for name in vars(Server) if not name.startswith("_")}
    assert public <= {name for name in vars(BlockingServer) if not name.startswith("_")}


def test_a_start_that_fails_leaves_no_thread() -> None:
    with pytest.raises(ValueError, match="no-name"), BlockingServer(topics=["no-name"]):
        pass
    assert "broker-core-testing" not in {thread.name for thread in threading.enumerate()}
