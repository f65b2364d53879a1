"""Mirroring a real cluster into a real PostgreSQL: compared, damaged on both sides, and repaired."""

from __future__ import annotations

import contextlib
import json
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pulsar
import pytest

from broker_core.cli.command_tree import run
from tests.interop.pulsar_peer import PulsarBroker
from tests.interop.pulsar_peer.admin import rest_path
from tests.support.postgres_server import Database, PostgresServer, run_apart
from tests.support.served import Served
from tests.support.vectors import pattern_vectors

pytestmark = pytest.mark.interop

_P = "persistent://public/mirrored/"
_PARTITIONED = "application/vnd.partitioned-topic-metadata+json"


@pytest.fixture
def mirror() -> Iterator[Database]:
    """A database of PostgreSQL with the newest schema."""
    with PostgresServer() as server:
        yield server.create_database()


class Cluster:
    """The admin calls of this test that others do not make."""

    def __init__(self, broker: PulsarBroker) -> None:
        self.broker = broker
        self.url = f"http://127.0.0.1:{broker.http_port}"

    def call(self, method: str, path: str, body: object = None, content: str = "application/json") -> None:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.url}/admin/v2/{path}", data, {"Content-Type": content}, method=method
        )
        with urllib.request.urlopen(request, timeout=60):
            pass

    def topic(self, name: str, properties: dict[str, str] | None = None) -> None:
        self.call("PUT", f"persistent/public/mirrored/{urllib.parse.quote(name, safe='')}", properties or {})

    def partitioned(self, name: str, partitions: int, properties: dict[str, str]) -> None:
        body = {"partitions": partitions, "properties": properties}
        self.call("PUT", f"persistent/public/mirrored/{name}/partitions", body, _PARTITIONED)

    def as_pulsar_admin(self, topic: str, partitions: int) -> None:
        """As `pulsar-admin topics create-partitioned-topic -p N` does without metadata: a number, no properties."""
        self.call("PUT", f"{rest_path(topic)}/partitions", partitions)

    def create(self, topic: str) -> None:
        """As `pulsar-admin topics create` does: without a body."""
        self.call("PUT", rest_path(topic))


def rows(database: Database, namespace: str) -> dict[str, dict[str, str]]:
    async def read() -> Any:
        async with database.connected() as connection:
            return await connection.fetch(
                "SELECT domain || '://' || namespace || '/' || local_name, properties::text"
                " FROM broker_core.topics WHERE namespace = $1",
                namespace,
            )

    return {name: json.loads(text) for name, text in run_apart(read)}


def versions(database: Database) -> dict[str, int]:
    async def read() -> Any:
        async with database.connected() as connection:
            return await connection.fetch("SELECT namespace, version FROM broker_core.namespaces")

    return dict(run_apart(read))


def test_a_cluster_is_mirrored_compared_and_mended(
    pulsar_broker: PulsarBroker, mirror: Database, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(pulsar_broker)
    admin = pulsar_broker.admin
    cluster.call("PUT", "tenants/mirror-tenant", {"allowedClusters": ["standalone"]})
    admin.create_namespace("mirror-tenant/empty")
    admin.create_namespace("public/mirrored")
    hostile = [
        "a b",
        "100%",
        "%2F",
        "q?x=1",
        "#frag",
        "日本",
        "😀",
        "semi;colon",
        "a+b",
        "back\\slash",
        "eu=1",
    ]
    for name in hostile:
        cluster.topic(name, {"name": name})
    cluster.topic("plain", {"region": "eu", "team": "a"})
    cluster.topic("bare")
    cluster.partitioned("parts", 3, {"region": "us"})

    common = ["--admin-url", cluster.url, "--dsn", mirror.dsn, "--tries", "3"]
    sync, verify = ["postgres", "sync", *common], ["postgres", "verify", "--json", *common]
    logger = pulsar.FileLogger(pulsar.LoggerLevel.Warn, str(tmp_path / "client.log"))
    with contextlib.closing(pulsar.Client(pulsar_broker.service_url, logger=logger)) as client:
        # Topics that are not persistent are there for as long as somebody uses them.
        producer = client.create_producer("non-persistent://public/mirrored/live")
        assert run(sync) == 0, capfd.readouterr().err
        capfd.readouterr()
        expected: dict[str, dict[str, str]] = {f"{_P}{name}": {"name": name} for name in hostile}
        expected |= {f"{_P}plain": {"region": "eu", "team": "a"}, f"{_P}bare": {}}
        expected |= {f"{_P}parts-partition-{index}": {"region": "us"} for index in range(3)}
        expected["non-persistent://public/mirrored/live"] = {}
        assert rows(mirror, "public/mirrored") == expected
        # The names of the recorded vectors, as the binary protocol lists them: without system topics.
        golden = pattern_vectors()["namespace"]
        assert rows(mirror, golden).keys() == admin.topics(golden)
        before = versions(mirror)
        assert {"mirror-tenant/empty", "public/mirrored", golden} <= before.keys()

        assert run(sync) == 0
        assert "0 added, 0 changed, 0 removed; 0 namespaces written" in capfd.readouterr().out
        assert versions(mirror) == before
        assert run(verify) == 0
        assert not capfd.readouterr().out

        # Differences on both sides, and nothing else, are found.
        # Other scenes have topics of these names in their namespaces.
        mirror.sql(
            "DELETE FROM broker_core.topics"
            " WHERE namespace = 'public/mirrored' AND local_name IN ('bare', 'parts-partition-1')"
        )
        mirror.sql(
            "INSERT INTO broker_core.topics (namespace, local_name) VALUES ('mirror-tenant/empty', 'ghost')"
        )
        mirror.sql(
            'UPDATE broker_core.topics SET properties = \'{"region": "xx"}\''
            " WHERE namespace = 'public/mirrored' AND local_name = 'plain'"
        )
        cluster.topic("new", {"k": "v"})
        cluster.call("DELETE", f"persistent/public/mirrored/{urllib.parse.quote('a b')}")
        cluster.call(
            "PUT", f"persistent/public/mirrored/{urllib.parse.quote('日本')}/properties", {"more": "1"}
        )
        assert run(verify) == 1
        told = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
        assert {(each["kind"], each["topic"]) for each in told} == {
            ("missing", f"{_P}bare"),
            ("missing", f"{_P}new"),
            ("extra", "persistent://mirror-tenant/empty/ghost"),
            ("extra", f"{_P}a b"),
            ("different", f"{_P}plain"),
            ("different", f"{_P}parts"),
            ("different", f"{_P}日本"),
        }
        assert len(told) == 7
        assert run([*verify, "--fix"]) == 0
        capfd.readouterr()
        assert run(verify) == 0
        after = versions(mirror)
        assert {name for name in after if after[name] != before[name]} == {
            "public/mirrored",
            "mirror-tenant/empty",
        }

        producer.close()


def test_topics_as_pulsar_admin_and_clients_make_them(
    pulsar_broker: PulsarBroker, mirror: Database, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """None of them has properties, and a broker says so by an empty body."""
    cluster = Cluster(pulsar_broker)
    for namespace in ("public/by-hand", "public/by-clients"):
        pulsar_broker.admin.create_namespace(namespace)
    automatic = {"allowAutoTopicCreation": True, "topicType": "partitioned", "defaultNumPartitions": 3}
    cluster.call("POST", "namespaces/public/by-clients/autoTopicCreation", automatic)
    expected: dict[str, dict[str, dict[str, str]]] = {"public/by-hand": {}, "public/by-clients": {}}
    for name in ("parted", "100%", "a b", "q?x=1#f", "%2F", "日本"):
        cluster.as_pulsar_admin(f"persistent://public/by-hand/{name}", 2)
        for index in range(2):
            expected["public/by-hand"][f"persistent://public/by-hand/{name}-partition-{index}"] = {}
    cluster.create("persistent://public/by-hand/plain")
    expected["public/by-hand"]["persistent://public/by-hand/plain"] = {}
    cluster.as_pulsar_admin("non-persistent://public/by-hand/unused", 2)  # lists nothing before it is used
    told = {"partitions": 1, "properties": {"by": "hand"}}
    cluster.call("PUT", "non-persistent/public/by-hand/told/partitions", told, _PARTITIONED)
    logger = pulsar.FileLogger(pulsar.LoggerLevel.Warn, str(tmp_path / "client.log"))
    with contextlib.closing(pulsar.Client(pulsar_broker.service_url, logger=logger)) as client:
        client.create_producer("non-persistent://public/by-hand/told")
        expected["public/by-hand"]["non-persistent://public/by-hand/told-partition-0"] = {"by": "hand"}
        for domain in ("persistent", "non-persistent"):
            client.create_producer(f"{domain}://public/by-clients/produced")
            client.subscribe(f"{domain}://public/by-clients/consumed", "s")
            for index in range(3):
                for name in ("produced", "consumed"):
                    expected["public/by-clients"][
                        f"{domain}://public/by-clients/{name}-partition-{index}"
                    ] = {}
        common = [
            "--admin-url",
            cluster.url,
            "--dsn",
            mirror.dsn,
            "--tries",
            "2",
            "--namespace",
            "public/by-*",
        ]
        for _ in range(2):
            assert run(["postgres", "sync", *common]) == 0, capfd.readouterr().err
            assert run(["postgres", "verify", *common]) == 0, capfd.readouterr().err
        assert {name: rows(mirror, name) for name in expected} == expected
        plugin = {"dsn": mirror.dsn, "property_keys": ["by"]}
        with Served(
            tmp_path / "server", {"plugins": {"enabled": ["postgres"], "postgres": plugin}}
        ) as served:
            capfd.readouterr()
            for name, listed in expected.items():
                assert run(["list", name, "--mode", "all", "--url", served.service_url]) == 0
                assert set(capfd.readouterr().out.splitlines()) == listed.keys()


def test_a_broker_that_stops_empties_nothing(
    pulsar_broker: PulsarBroker, mirror: Database, capfd: pytest.CaptureFixture[str]
) -> None:
    url = f"http://127.0.0.1:{pulsar_broker.http_port}"
    scope = ["--namespace", pattern_vectors()["namespace"], "--dsn", mirror.dsn]
    assert run(["postgres", "sync", "--admin-url", url, *scope]) == 0
    before = rows(mirror, pattern_vectors()["namespace"])
    assert before
    assert run(["postgres", "sync", "--admin-url", "http://127.0.0.1:1", "--tries", "1", *scope]) == 1
    assert rows(mirror, pattern_vectors()["namespace"]) == before
    assert "broker-core: GET http://127.0.0.1:1/" in capfd.readouterr().err
