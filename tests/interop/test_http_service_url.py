"""The official Python client with an ``http://`` service URL: lookups over HTTP, messages with the broker directly."""

from __future__ import annotations

import contextlib
import re
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pulsar
import pytest

from tests.interop.pulsar_peer import PulsarBroker
from tests.support.served import Served

pytestmark = pytest.mark.interop

_MILLISECONDS = 60_000


@contextmanager
def _client(served: Served, log: Path) -> Iterator[pulsar.Client]:
    with contextlib.closing(
        pulsar.Client(
            f"http://{served.ready['http']}",
            operation_timeout_seconds=20,
            logger=pulsar.FileLogger(pulsar.LoggerLevel.Warn, str(log)),
        )
    ) as client:
        yield client


def test_it_produces_and_consumes_through_a_gateway(pulsar_broker: PulsarBroker, tmp_path: Path) -> None:
    namespace = "public/http-url"
    pulsar_broker.admin.create_namespace(namespace)
    parted = f"persistent://{namespace}/t-parted"
    pulsar_broker.admin.create_topic(parted, 2)
    plain = [f"persistent://{namespace}/t-{name}" for name in ("a", "b c", "caf\u00e9+")]
    tables = {"http": {"listen": "127.0.0.1:0"}, "upstream": {"service_url": pulsar_broker.service_url}}
    with Served(tmp_path, tables) as gateway, _client(gateway, tmp_path / "client.log") as client:
        assert client.get_topic_partitions(parted) == [f"{parted}-partition-{index}" for index in range(2)]
        one = client.subscribe(plain[0], "one")
        for topic in (*plain, parted):
            producer = client.create_producer(topic)
            producer.send(topic.encode())
            producer.close()
        message = one.receive(_MILLISECONDS)
        assert (message.topic_name(), message.data()) == (plain[0], plain[0].encode())
        # A pattern: the client lists the namespace over HTTP, and filters itself.
        pattern = re.compile(f"persistent://{namespace}/t-.*")
        many = client.subscribe(pattern, "many", initial_position=pulsar.InitialPosition.Earliest)
        received = set()
        for _ in range(4):
            message = many.receive(_MILLISECONDS)
            received.add(message.data().decode())
            many.acknowledge(message)
        assert received == {*plain, parted}
    assert set(plain) <= pulsar_broker.admin.topics(namespace)


def test_a_standalone_server_lists_and_has_no_broker(tmp_path: Path) -> None:
    tables = {
        "http": {"listen": "127.0.0.1:0"},
        "catalog": {"path": str(tmp_path / "topics.sqlite")},
    }
    with Served(tmp_path, tables) as served:
        topic = "persistent://public/default/orders"
        url = f"http://{served.ready['http']}/admin/v2/persistent/public/default/orders/partitions"
        request = urllib.request.Request(url, b"3", {"Content-Type": "application/json"}, method="PUT")
        urllib.request.urlopen(request, timeout=30).close()
        with _client(served, tmp_path / "client.log") as client:
            assert client.get_topic_partitions(topic) == [f"{topic}-partition-{index}" for index in range(3)]
            with pytest.raises(pulsar.PulsarException):
                client.create_producer(f"{topic}-partition-0")
