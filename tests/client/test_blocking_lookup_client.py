"""The lookup client without await."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from broker_core.client import (
    BlockingLookupClient,
    ConnectionLost,
    InvalidServiceUrl,
    LookupClient,
    OperationTimeout,
    ServerRefused,
    Token,
)
from broker_core.testing import BlockingServer
from tests.support.eventually import eventually_sync
from tests.support.ports import free_port

NAMES = [f"persistent://public/default/orders-{number}" for number in range(10)]


@pytest.fixture(scope="module")
def server() -> Iterator[BlockingServer]:
    with BlockingServer(topics=NAMES) as server:
        yield server


def test_it_asks_what_the_other_asks(server: BlockingServer) -> None:
    with BlockingLookupClient(server.url) as client:
        found = client.get_topics_under_namespace("public/default", topics_pattern="public/default/.*-[12]")
        assert found == NAMES[1:3]
        again = client.get_topics_under_namespace(
            "public/default", topics_pattern="public/default/.*-[12]", topics_hash=found.topics_hash
        )
        assert not again.changed
        assert client.partitioned_metadata(NAMES[0]) == 0
        with pytest.raises(ServerRefused, match="no brokers behind it"):
            client.lookup(NAMES[0])


def test_from_many_threads(server: BlockingServer) -> None:
    with BlockingLookupClient(server.url) as client, ThreadPoolExecutor(8) as threads:
        for found in threads.map(client.get_topics_under_namespace, ["public/default"] * 40):
            assert found == NAMES


def test_closing_ends_what_other_threads_ask() -> None:
    client = BlockingLookupClient(f"pulsar://127.0.0.1:{free_port()}", operation_timeout=3600)
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(client.get_topics_under_namespace, "public/default")
        eventually_sync(lambda: client._client._service.problem not in (None, "not connected yet"))
        client.close()
        assert isinstance(asked.exception(60), ConnectionLost)
    with pytest.raises(ConnectionLost, match="is closed"):
        client.get_topics_under_namespace("public/default")


def test_times_end() -> None:
    with (
        BlockingLookupClient(f"pulsar://127.0.0.1:{free_port()}", operation_timeout=0.05) as client,
        pytest.raises(OperationTimeout),
    ):
        client.lookup(NAMES[0])


async def test_a_running_loop_gets_a_clear_error(server: BlockingServer) -> None:
    client = BlockingLookupClient(server.url)
    with pytest.raises(RuntimeError, match="use LookupClient, and await it"):
        client.get_topics_under_namespace("public/default")


def test_it_has_the_methods_and_arguments_of_the_other() -> None:
    for name in ("__init__", "get_topics_under_namespace", "partitioned_metadata", "lookup", "close"):
        ours, theirs = (
            inspect.signature(getattr(kind, name)) for kind in (BlockingLookupClient, LookupClient)
        )
        assert ours == theirs, name
    with pytest.raises(InvalidServiceUrl):
        BlockingLookupClient("kafka://x")
    assert "a.b.c" not in repr(BlockingLookupClient("pulsar://x", auth=Token("a.b.c")))
