"""Topic list watchers of the official Java client at a gateway, which follows the watchers of a real broker."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.interop.conftest import gateway_settings
from tests.interop.gate import Gate
from tests.interop.pulsar_peer import PulsarBroker
from tests.interop.stage import Stage, partitions_of
from tests.support.eventually import eventually_sync
from tests.support.ports import free_ports
from tests.support.served import Served

pytestmark = pytest.mark.interop

_SOON = 120.0


@dataclass(frozen=True)
class Watched:
    """A gateway with one snapshot of each namespace, kept true by a watcher at the broker."""

    stage: Stage
    metrics_url: str

    def sample(self, name: str) -> float:
        """The sum of a metric over its labels."""
        with urllib.request.urlopen(self.metrics_url) as answer:
            text = answer.read().decode()
        found = re.findall(rf"^broker_core_{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
        return sum(map(float, found))


@pytest.fixture
def watched(pulsar_broker: PulsarBroker, tmp_path: Path) -> Iterator[Watched]:
    (port,) = free_ports(1)
    tables = gateway_settings(pulsar_broker)
    tables["upstream"]["snapshots"] = {"mode": "auto"}
    tables["http"] = {"listen": f"127.0.0.1:{port}"}
    gate = Gate(tmp_path)
    with Served(tmp_path / "gateway", tables) as served:
        stage = Stage(pulsar_broker, served.service_url, gate, tmp_path)
        yield Watched(stage, f"http://127.0.0.1:{port}/metrics")


def test_java_watches_at_the_gateway_and_learns_of_topics_from_it(watched: Watched) -> None:
    stage = watched.stage
    namespace = stage.namespace("java-watching")
    admin, base = stage.broker.admin, f"persistent://{namespace}"
    admin.create_topic(f"{base}/t-first")
    sent = stage.publish([f"{base}/t-first"], "one")
    with stage.java_consumers("watching") as java:
        java.subscribe("watching", f"{base}/t-.*")
        java.wait_received("watching", sent, _SOON)
        eventually_sync(lambda: watched.sample("watchers") == 1, _SOON, what="a watcher at the gateway")
        admin.create_topic(f"{base}/t-later")
        admin.create_topic(f"{base}/t-parts", 3)
        admin.create_topic(f"{base}/other")
        eventually_sync(lambda: watched.sample("watch_updates_total") >= 1, _SOON, what="an update")
        topics = [f"{base}/t-later", *partitions_of(f"{base}/t-parts", 3)]
        sent |= stage.publish(topics, "two")
        stage.publish([f"{base}/other"], "two")
        java.wait_received("watching", sent, _SOON)
        assert dict(java.received("watching")) == dict.fromkeys(sent, 1)
        assert watched.sample("watches_refused_total") == 0
        assert admin.subscriptions(f"{base}/other") == set()
