from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest

from broker_core.client import ConnectionLost
from broker_core.client.kafka import AdminClient, BlockingAdminClient, Plain
from broker_core.wire.kafka import DESCRIBE_CLUSTER, LIST_TOPICS
from tests.support.scripted_kafka import ScriptedKafka, in_a_thread


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """A scripted node in a thread."""
    node = ScriptedKafka(
        {
            LIST_TOPICS: lambda _: {"topics": [{"name": "orders"}]},
            DESCRIBE_CLUSTER: lambda _: {"cluster_id": "c", "brokers": []},
        }
    )
    with in_a_thread(node):
        yield node.address


def test_it_asks_what_the_other_asks(address: str) -> None:
    with BlockingAdminClient(address) as client:
        assert client.list_topics().names() == ["orders"]
        assert client.describe_cluster().cluster_id == "c"
        assert client.api_versions()[LIST_TOPICS.key] == (0, 0)
    with pytest.raises(ConnectionLost, match="is closed"):
        client.list_topics()


async def test_a_running_loop_gets_a_clear_error(address: str) -> None:
    with pytest.raises(RuntimeError, match="use AdminClient, and await it"):
        BlockingAdminClient(address).list_topics()


def test_it_has_the_methods_and_arguments_of_the_other() -> None:
    names = [name for name, _ in inspect.getmembers(AdminClient, inspect.isfunction) if name[0] != "_"]
    assert len(names) == 36
    for name in ("__init__", *names):
        ours, theirs = (inspect.signature(getattr(kind, name)) for kind in (BlockingAdminClient, AdminClient))
        assert ours == theirs, name
    assert "secret" not in repr(BlockingAdminClient("a:9092", sasl=Plain("alice", "secret")))


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("create_topics", [[]]),
        ("describe_topics", [["x"]]),
        ("delete_topics", [["x"]]),
        ("create_partitions", [{"x": 2}]),
        ("describe_configs", [[]]),
        ("incremental_alter_configs", [{}]),
        ("describe_acls", [None]),
        ("create_acls", [[]]),
        ("delete_acls", [[]]),
    ],
)
def test_each_call_is_handed_on(method: str, arguments: list[object]) -> None:
    client = BlockingAdminClient("a:9092")
    asked: list[object] = []

    async def note(*given: object, **_options: object) -> str:
        asked.extend(given)
        return "answer"

    setattr(client._client, method, note)
    assert getattr(client, method)(*arguments) == "answer"
    assert asked == (arguments or [None])
    client.close()
