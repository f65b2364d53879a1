from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from broker_core.cli.startup_checks.kafka_upstream import kafka_upstream_checks
from broker_core.plugin_api.check_findings import Check
from broker_core.settings import (
    CatalogSettings,
    KafkaSettings,
    KafkaUpstreamSettings,
    Settings,
    UpstreamSettings,
)
from broker_core.wire.kafka import METADATA, SASL_AUTHENTICATE, SASL_HANDSHAKE, Api, Fields
from tests.support.catalogue_topics import create_topics
from tests.support.fake_cluster import FakeCluster
from tests.support.kafka_gateway import address_of
from tests.support.kafka_serving import kafka_broker
from tests.support.ports import free_port, free_ports
from tests.support.scripted_kafka import Asked, Handler, ScriptedKafka, metadata_of


async def checks(
    path: Path, address: str, ports: str, own: dict[str, object] | None = None, **kafka: object
) -> list[Check]:
    table = {"bootstrap_servers": address.split(","), "ports": ports, **(own or {})}
    upstream = KafkaUpstreamSettings.model_validate(table)
    settings = Settings(
        kafka=KafkaSettings.model_validate({"upstream": upstream, **kafka}),
        catalog=CatalogSettings(path=path),
    )
    return await asyncio.to_thread(lambda: list(kafka_upstream_checks(settings)))


async def test_the_cluster_is_asked_for_its_nodes(tmp_path: Path) -> None:
    tls = {"certificate": "a.pem", "key": "a.key"}
    async with kafka_broker(tmp_path) as cluster:
        address = address_of(cluster)
        none = tmp_path / "none.sqlite"
        alone, answers, ports, topics = await checks(none, address, "20000")
        assert (alone.level, alone.name) == ("ok", "kafka.upstream.namespace")
        assert (answers.level, ports.level) == ("ok", "ok")
        assert "answers, of 1 node" in answers.text
        assert topics == Check.ok("kafka.upstream.topics", "0 topics, all of which can be listed")
        *_, ports, _ = await checks(none, address, "20000", tls=tls)
        assert (ports.level, ports.name) == ("error", "kafka.upstream.ports")
        assert ports.text == "1 node at 2 listeners needs 2 ports of 1: widen the range"


async def test_a_namespace_with_other_topics_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker_core.broker.kafka_gateway._LOOK", 0.5)
    create_topics(tmp_path / "catalog.sqlite", "persistent://public/default/a")
    found, *_ = await checks(tmp_path / "catalog.sqlite", f"127.0.0.1:{free_port()}", "20000")
    assert (found.level, found.name) == ("error", "kafka.upstream.namespace")
    assert found.text.startswith("public/default holds 1 topic of the catalogue, which nobody would be shown")
    async with FakeCluster() as pulsar:
        pulsar.topics["public/default"] = ["persistent://public/default/a"]
        upstream = KafkaUpstreamSettings(bootstrap_servers=(f"127.0.0.1:{free_port()}",))
        settings = Settings(
            kafka=KafkaSettings(upstream=upstream), upstream=UpstreamSettings(service_url=pulsar.url)
        )
        found, *_ = await asyncio.to_thread(lambda: list(kafka_upstream_checks(settings)))
        assert found.text.startswith("public/default holds 1 topic of the Pulsar cluster of [upstream]")
    found, *_ = await asyncio.to_thread(lambda: list(kafka_upstream_checks(settings)))
    assert (found.level, found.name) == ("warning", "kafka.upstream.namespace")


async def test_a_cluster_that_does_not_answer_is_an_error(tmp_path: Path) -> None:
    both = [f"127.0.0.1:{port}" for port in free_ports(2)]
    _, found = await checks(tmp_path / "none.sqlite", ",".join(both), "20000")
    assert (found.level, found.name) == ("error", "kafka.upstream.bootstrap_servers")
    assert all(found.text.count(address) == 1 for address in both)


async def test_credentials_that_the_cluster_refuses_are_named(tmp_path: Path) -> None:
    handlers: dict[Api, Handler] = {
        SASL_HANDSHAKE: lambda _: {"mechanisms": ["PLAIN"]},
        SASL_AUTHENTICATE: lambda _: {"error_code": 58, "error_message": "no such user"},
    }
    sasl = {"mechanism": "PLAIN", "user": "gateway", "password": "env:PATH"}
    async with ScriptedKafka(handlers) as node:
        _, found = await checks(tmp_path / "none.sqlite", node.address, "20000", {"sasl": sasl})
    assert (found.level, found.name) == ("error", "kafka.upstream.sasl")
    assert found.text.startswith("the Kafka cluster refuses the user gateway: SASL_AUTHENTICATION_FAILED")


async def test_topics_that_no_listing_can_have_are_named(tmp_path: Path) -> None:
    def metadata(asked: Asked) -> Fields:
        names = ["a", "a-partition-0"] if asked.value["topics"] is None else []
        return metadata_of(node, topics=[{"name": name, "partitions": [{}]} for name in names])

    async with ScriptedKafka({METADATA: metadata}) as node:
        *_, found = await checks(tmp_path / "none.sqlite", node.address, "20000")
    assert (found.level, found.name) == ("warning", "kafka.upstream.topics")
    assert found.text.endswith(" 1 topic: a-partition-0")


def test_without_one_there_is_nothing_to_say() -> None:
    assert list(kafka_upstream_checks(Settings())) == []
