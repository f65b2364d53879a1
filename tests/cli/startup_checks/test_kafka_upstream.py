from __future__ import annotations

import asyncio
from pathlib import Path

from broker_core.cli.startup_checks.kafka_upstream import kafka_upstream_checks
from broker_core.plugin_api.check_findings import Check
from broker_core.settings import KafkaSettings, KafkaUpstreamSettings, Settings
from tests.support.kafka_gateway import address_of
from tests.support.kafka_serving import kafka_broker
from tests.support.ports import free_port


async def checks(address: str, ports: str, **kafka: object) -> list[Check]:
    upstream = KafkaUpstreamSettings.model_validate({"bootstrap_servers": [address], "ports": ports})
    settings = Settings(kafka=KafkaSettings.model_validate({"upstream": upstream, **kafka}))
    return await asyncio.to_thread(lambda: list(kafka_upstream_checks(settings)))


async def test_the_cluster_is_asked_for_its_nodes(tmp_path: Path) -> None:
    tls = {"certificate": "a.pem", "key": "a.key"}
    async with kafka_broker(tmp_path) as cluster:
        address = address_of(cluster)
        answers, ports = await checks(address, "20000")
        assert (answers.level, ports.level) == ("ok", "ok")
        assert "answers, of 1 node" in answers.text
        _, ports = await checks(address, "20000", tls=tls)
        assert (ports.level, ports.name) == ("error", "kafka.upstream.ports")
        assert ports.text == "1 node at 2 listeners need 2 ports of 1"


async def test_a_cluster_that_does_not_answer_is_an_error() -> None:
    (found,) = await checks(f"127.0.0.1:{free_port()}", "20000")
    assert (found.level, found.name) == ("error", "kafka.upstream.bootstrap_servers")


def test_without_one_there_is_nothing_to_say() -> None:
    assert list(kafka_upstream_checks(Settings())) == []
