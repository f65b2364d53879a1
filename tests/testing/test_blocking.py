"""``broker_core.testing.BlockingServer``: the same without an event loop."""

from __future__ import annotations

import threading

import pytest

from broker_core.client import ServerRefused
from broker_core.testing import BlockingServer

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


def test_a_start_that_fails_leaves_no_thread() -> None:
    with pytest.raises(ValueError, match="no-name"), BlockingServer(topics=["no-name"]):
        pass
    assert "broker-core-testing" not in {thread.name for thread in threading.enumerate()}
