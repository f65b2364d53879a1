"""The stage of a scene: the real broker, the gateway, the plugin's rules, and a publisher."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pulsar

from tests.interop.gate import Gate
from tests.interop.programs import JavaConsumers, PropertyConsumer, PythonConsumer, PythonConsumers
from tests.interop.pulsar_peer import PulsarBroker

__all__ = ["Stage", "partitions_of", "publish"]


def partitions_of(topic: str, count: int) -> list[str]:
    """The full names of a topic's partitions."""
    return [f"{topic}-partition-{index}" for index in range(count)]


def publish(service_url: str, folder: Path, topics: Iterable[str], text: str) -> set[tuple[str, str]]:
    """Send ``text`` to each topic; the pairs (topic, text) to expect. The client's log is in the folder."""
    # The client logs to standard output otherwise.
    logger = pulsar.FileLogger(pulsar.LoggerLevel.Warn, str(folder / "publisher.log"))
    with contextlib.closing(pulsar.Client(service_url, logger=logger)) as client:
        sent = set()
        for topic in topics:
            producer = client.create_producer(topic)
            producer.send(text.encode())
            producer.close()
            sent.add((topic, text))
        return sent


@dataclass(frozen=True)
class Stage:
    """``service_url`` is what clients are given (the gateway's); ``folder`` takes their logs."""

    broker: PulsarBroker
    service_url: str
    gate: Gate
    folder: Path

    def namespace(self, name: str) -> str:
        """A new namespace ``public/NAME``."""
        namespace = f"public/{name}"
        self.broker.admin.create_namespace(namespace)
        return namespace

    def publish(
        self, topics: Iterable[str], text: str, *, past_the_gateway: bool = False
    ) -> set[tuple[str, str]]:
        """Send ``text`` to each topic, looked up through the gateway; the pairs (topic, text) to expect.

        What a plugin hides does not exist there, for producers either: it is sent ``past_the_gateway``.
        """
        url = self.broker.service_url if past_the_gateway else self.service_url
        return publish(url, self.folder, topics, text)

    def python_consumer(self, name: str, pattern: str) -> PythonConsumer:
        """Start the Python client; ``name`` is its subscription."""
        return PythonConsumer(self.folder / f"python-{name}.log", self.service_url, pattern, name)

    def python_consumers(self, name: str) -> PythonConsumers:
        """Start a program with the Python client, whose period of discovery can be set."""
        return PythonConsumers(self.folder / f"python-{name}.log", self.service_url)

    def property_consumer(self, name: str, pattern: str, properties: Mapping[str, str]) -> PropertyConsumer:
        """Start a consumer of `broker_core.consumer`; ``name`` is its subscription."""
        log = self.folder / f"property-{name}.log"
        return PropertyConsumer(log, self.service_url, pattern, name, properties)

    def java_consumers(self, name: str) -> JavaConsumers:
        """Start a JVM with the Java client."""
        return JavaConsumers(self.folder / f"java-{name}.log", self.broker.jars, self.service_url)
