"""Clients of Kafka and of Pulsar ask one server: each lists at once what the other made, with the masks of plugins."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka.admin import KafkaAdminClient

from broker_core.client import BlockingLookupClient
from tests.interop.gate import Gate
from tests.interop.kafka_stage import KafkaServed, kafka_server
from tests.interop.maven import PeerUnavailable
from tests.interop.programs import AdminTool
from tests.interop.pulsar_peer import admin_tool_jars

pytestmark = pytest.mark.interop

_NAMESPACE = "public/default"
_BASE = f"persistent://{_NAMESPACE}"


@pytest.fixture(scope="module")
def gate(tmp_path_factory: pytest.TempPathFactory) -> Gate:
    return Gate(tmp_path_factory.mktemp("gate"))


@pytest.fixture(scope="module")
def server(gate: Gate, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServed]:
    """A server whose plugin hides topics with the word `secret`."""
    gate.rule(_NAMESPACE, hide="secret")
    tables: dict[str, dict[str, object]] = {
        "http": {"listen": "127.0.0.1:0"},
        "plugins": {"enabled": ["gate"], "gate": gate.settings},
    }
    folder: Path = tmp_path_factory.mktemp("both")
    with kafka_server(folder, tables=tables, python_path=gate.site) as served:
        yield served


@contextmanager
def _kafka(server: KafkaServed) -> Iterator[KafkaAdminClient]:
    with contextlib.closing(KafkaAdminClient(bootstrap_servers=server.clients.bootstrap)) as client:
        yield client


def _of_kafka(client: KafkaAdminClient) -> list[str]:
    return sorted(name for name in client.list_topics() if name != "__consumer_offsets")


def test_each_lists_at_once_what_the_other_made(server: KafkaServed, tmp_path: Path) -> None:
    try:
        jars = admin_tool_jars()
    except PeerUnavailable as error:
        pytest.skip(str(error))
    http = f"http://{server.served.ready['http']}"
    with (
        AdminTool(tmp_path / "tool.log", jars) as pulsar_admin,
        BlockingLookupClient(server.served.service_url) as pulsar,
        _kafka(server) as kafka,
    ):

        def of_pulsar() -> list[str]:
            """By the binary protocol and by pulsar-admin, which say the same."""
            names = sorted(pulsar.get_topics_under_namespace(_NAMESPACE))
            assert names == sorted(pulsar_admin.run(http, "topics", "list", _NAMESPACE).out.split())
            return [name.removeprefix(f"{_BASE}/") for name in names if "__consumer_offsets" not in name]

        kafka.create_topics({"orders": {"num_partitions": 2}, "bills": {}})
        assert of_pulsar() == ["bills-partition-0", "orders-partition-0", "orders-partition-1"]
        assert pulsar.partitioned_metadata(f"{_BASE}/orders") == 2

        created = pulsar_admin.run(http, "topics", "create-partitioned-topic", "-p", "3", f"{_BASE}/wide")
        assert created.exit == 0, created
        assert pulsar_admin.run(http, "topics", "create", f"{_BASE}/plain").exit == 0
        assert _of_kafka(kafka) == ["bills", "orders", "plain", "wide"]
        shown = {each["name"]: each for each in kafka.describe_topics(["wide", "plain"])}
        assert [len(shown[name]["partitions"]) for name in ("wide", "plain")] == [3, 1]

        kafka.delete_topics(["orders"])
        kafka.create_partitions({"bills": 2})
        assert of_pulsar() == [
            "bills-partition-0",
            "bills-partition-1",
            "plain",
            "wide-partition-0",
            "wide-partition-1",
            "wide-partition-2",
        ]
        assert pulsar_admin.run(http, "topics", "delete-partitioned-topic", f"{_BASE}/wide").exit == 0
        assert _of_kafka(kafka) == ["bills", "plain"]
        kafka.delete_topics(["bills", "plain"])


def test_a_plugin_hides_topics_from_both(server: KafkaServed, gate: Gate) -> None:
    with _kafka(server) as kafka, BlockingLookupClient(server.served.service_url) as pulsar:
        kafka.create_topics(["secret-plans", "open-plans"])
        assert _of_kafka(kafka) == ["open-plans"]
        assert [name for name in pulsar.get_topics_under_namespace(_NAMESPACE) if "plans" in name] == [
            f"{_BASE}/open-plans-partition-0"
        ]
        (hidden,) = kafka.describe_topics(["secret-plans"])
        assert hidden["error_code"] == 3
        again = kafka.create_topics(["secret-plans"], raise_errors=False)
        assert again["topics"][0]["error_code"] == 36
        # The plugin of a Pulsar client sees its properties; Kafka clients have none.
        gate.rule(_NAMESPACE)
        assert _of_kafka(kafka) == ["open-plans", "secret-plans"]
        kafka.delete_topics(["open-plans", "secret-plans"])
        gate.rule(_NAMESPACE, hide="secret")
