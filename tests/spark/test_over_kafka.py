"""Batch and index of a Kafka cluster's topics: filled through its gateway by the commands, and served before it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from broker_core.broker import Broker
from broker_core.cli.command_tree import run
from broker_core.client import LookupClient
from broker_core.client.kafka import AdminClient, NewTopic
from broker_core.names import NamespaceName
from broker_core_postgres.plugin import PostgresPlugin
from broker_core_spark.plugin import SparkPlugin
from tests.support.kafka_gateway import NAMESPACE, Cluster, Secrets, address_of, gateway, small_cluster
from tests.support.narrowed import present
from tests.support.postgres_server import Database, PostgresServer
from tests.support.spark_catalogues import write_patterns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMES = [
    f"persistent://{NAMESPACE}/{name}"
    for name in (
        "mail-partition-0",
        *(f"orders-partition-{each}" for each in range(3)),
        "secret.keys-partition-0",
    )
]


@pytest.fixture(scope="module")
def database() -> Iterator[Database]:
    with PostgresServer() as server:
        yield server.create_database()


def test_commands_read_a_cluster_through_its_gateway(
    spark: SparkSession, database: Database, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert spark.version
    requested = write_patterns(tmp_path / "patterns.jsonl", [{"namespace": NAMESPACE}])
    out = ("--patterns", str(requested), "--out", str(tmp_path / "store"))
    # The session of Spark is of this thread.
    with _loop_beside() as there, _entered(there, small_cluster(tmp_path)) as client:
        with _entered(there, gateway(tmp_path, client.address)) as broker:
            url = _http(broker)
            common = ("--admin-url", url, "--dsn", database.dsn, "--namespace", NAMESPACE)
            assert run(["postgres", "sync", *common]) == 0
            assert run(["postgres", "verify", *common]) == 0
            capsys.readouterr()
            assert run(["spark", "build", "--broker", url, "--namespace", NAMESPACE, *out]) == 0
            result = json.loads(capsys.readouterr().out.splitlines()[-1])
            assert (result["topics"], result["catalogue"]) == (len(NAMES), url)
        there(_served(client, database, tmp_path, capsys))


@contextmanager
def _loop_beside() -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    """Gives a function that runs a coroutine in an event loop of another thread, which runs until the end."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield lambda work: asyncio.run_coroutine_threadsafe(work, loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.run_until_complete(loop.shutdown_asyncgens())  # with them the threads of the loop end
        loop.close()


@contextmanager
def _entered(there: Callable[[Coroutine[Any, Any, Any]], Any], context: Any) -> Iterator[Any]:
    """The result of an asynchronous context, which is left at the end."""
    value = there(context.__aenter__())
    try:
        yield value
    finally:
        there(context.__aexit__(None, None, None))


async def _served(
    cluster: Cluster, database: Database, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What the index and the generation have is listed, and Kafka's clients are shown what the cluster has of it."""
    (await cluster.create_topics([NewTopic("later")])).all()
    (await cluster.delete_topics(["mail"])).all()
    static = {"store": str(folder / "store"), "static": True, "refresh": "1h"}
    for name, plugin, own in (
        ("postgres", PostgresPlugin(), {"dsn": database.dsn}),
        ("spark", SparkPlugin(), static),
    ):
        tables: dict[str, Any] = {"plugins": {"enabled": [name], name: {"namespaces": [NAMESPACE], **own}}}
        async with gateway(folder, cluster.address, {name: plugin}, tables) as broker:
            assert await _listed(capsys, _http(broker)) == NAMES
            async with AdminClient(address_of(broker)) as client:
                assert {row.name for row in await client.list_topics()} == {"orders", "secret.keys"}
        # A mask hides from all clients what the index has.
        tables["plugins"]["enabled"].append("secrets")
        async with gateway(folder, cluster.address, {name: plugin, "secrets": Secrets()}, tables) as broker:
            async with AdminClient(address_of(broker)) as client:
                described = await client.describe_topics(["orders", "secret.keys"])
                assert (list(described), list(described.errors)) == (
                    ["orders", "secret.keys"],
                    ["secret.keys"],
                )
                assert len(described["orders"].partitions) == 3
                assert (await client.list_topics()).names() == ["orders"]
            async with LookupClient("pulsar://{}:{}".format(*broker.pulsar_address)) as pulsar:
                assert (
                    list(await pulsar.get_topics_under_namespace(NamespaceName.parse(NAMESPACE))) == NAMES[:4]
                )


async def _listed(capsys: pytest.CaptureFixture[str], url: str) -> list[str]:
    out = await _run(capsys, "list", NAMESPACE, "--url", url)
    return [line for line in out.splitlines() if line.startswith("persistent://")]  # the server logs here too


async def _run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The output of a command."""
    capsys.readouterr()
    assert await asyncio.to_thread(run, arguments) == 0
    return capsys.readouterr().out


def _http(broker: Broker) -> str:
    return "http://{}:{}".format(*present(broker.http_address))
