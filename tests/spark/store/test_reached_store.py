"""A store that does not answer is an error after a time limit."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from broker_core_spark.errors import StoreFailed
from broker_core_spark.store import open_store
from broker_core_spark.store.reached_store import REACH_SECONDS, check_reached, within


def test_a_store_that_answers_and_one_that_says_why_not(tmp_path: Path) -> None:
    check_reached(open_store(str(tmp_path / "not made yet")))
    (tmp_path / "pointers").write_text("no folder")
    with pytest.raises(StoreFailed, match="cannot list pointers"):
        check_reached(open_store(str(tmp_path)))


def test_one_that_hangs() -> None:
    never = threading.Event()
    with pytest.raises(StoreFailed, match=r"s3://x: no answer for 0\.01 seconds"):
        within("s3://x", never.wait, 0.01)
    never.set()
    assert REACH_SECONDS < 30  # what a command may take until it says so


def test_a_server_that_takes_connections_and_says_nothing() -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        options = {
            "endpoint": f"http://127.0.0.1:{silent.getsockname()[1]}",
            "region": "us-east-1",
            "skip_signature": "true",
            "allow_http": "true",
        }
        with pytest.raises(StoreFailed, match=r"s3://bucket/x: no answer for 0\.2 seconds"):
            check_reached(open_store("s3://bucket/x", options), 0.2)
