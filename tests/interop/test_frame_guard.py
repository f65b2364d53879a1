"""Listings over 5 MB with `advertise_frame = "auto"`, and what the larger frame must not do: to producers."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pulsar
import pytest

from tests.interop.conftest import gateway_settings
from tests.interop.gate import Gate
from tests.interop.programs import JavaConsumers
from tests.interop.pulsar_peer import PulsarBroker
from tests.support.served import Served

pytestmark = pytest.mark.interop

NAMESPACE = "public/frames"
NAMES = 60_000  # 5.7 MB
MESSAGE = 6 * 1024 * 1024


def test_java_gets_a_listing_over_its_limit_and_messages_over_the_brokers_fail_as_they_do_there(
    pulsar_broker: PulsarBroker, tmp_path: Path
) -> None:
    admin, gate = pulsar_broker.admin, Gate(tmp_path)
    admin.create_namespace(NAMESPACE)
    topic = f"persistent://{NAMESPACE}/orders"
    admin.create_topic(topic)
    gate.rule(NAMESPACE, topics=[topic], noise=NAMES)
    with (
        JavaConsumers(tmp_path / "java.log", pulsar_broker.jars, pulsar_broker.service_url) as java,
        pytest.raises(RuntimeError, match="InvalidMessage") as alone,
    ):
        java.publish(topic, "x" * MESSAGE)
    for setting in ("same", "auto"):
        tables = gateway_settings(pulsar_broker, gate)
        tables["pulsar"] = {"advertise_frame": setting}
        with (
            Served(tmp_path / setting, tables, python_path=gate.site) as served,
            JavaConsumers(tmp_path / f"java-{setting}.log", pulsar_broker.jars, served.service_url) as java,
        ):
            if setting == "auto":
                assert java.count(NAMESPACE) == NAMES + 1
            else:
                with pytest.raises(RuntimeError, match=r"NotAllowed.*max_message_size"):
                    java.count(NAMESPACE)
            # The same connection lists on, and its producers have the brokers' limit.
            assert java.publish(topic, setting) == (topic, setting)
            with pytest.raises(RuntimeError, match="InvalidMessage") as refused:
                java.publish(topic, "x" * MESSAGE)
            assert str(refused.value) == str(alone.value)
            expected = _refusal(pulsar_broker.service_url, topic, tmp_path)
            assert _refusal(served.service_url, topic, tmp_path) == expected


def _refusal(url: str, topic: str, folder: Path) -> str:
    """What a C++ producer says of a message of 6 MB, after it has listed the namespace at this URL."""
    logger = pulsar.FileLogger(pulsar.LoggerLevel.Warn, str(folder / "producer.log"))
    with contextlib.closing(pulsar.Client(url, logger=logger)) as client:
        assert client.get_topic_partitions(topic) == [topic]
        producer = client.create_producer(topic)
        producer.send(b"small")
        with pytest.raises(pulsar.PulsarException) as refused:
            producer.send(b"x" * MESSAGE)
        return f"{type(refused.value).__name__}: {refused.value}"
