from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.kafka.configs import InvalidConfig
from broker_core.servers.admission.file_budget import FileBudget
from broker_core.servers.kafka.server_from_settings import _options
from broker_core.settings import KafkaSettings, PulsarSettings, Settings
from broker_core.wire.kafka import LIST_TOPICS
from tests.support.kafka_serving import kafka_broker, raw_client
from tests.support.kafka_topics import create


def test_the_address_is_that_of_the_settings(tmp_path: Path) -> None:
    async def scene() -> None:
        async with kafka_broker(tmp_path) as broker:
            assert broker.kafka_address is not None
            assert broker.kafka_address[0] == "127.0.0.1"
            assert broker.kafka_tls_address is None

    asyncio.run(scene())


def test_the_times_of_connections_are_those_of_the_pulsar_server() -> None:
    settings = Settings(pulsar=PulsarSettings(write_timeout=3.0, min_write_rate=4096))
    times = _options(KafkaSettings(), settings, FileBudget.of(1024, 24)).times
    assert (times.write_timeout, times.min_write_rate) == (3.0, 4096)


def test_a_broker_without_kafka_imports_nothing_of_it() -> None:
    told = "import sys, broker_core.broker; print([name for name in sys.modules if 'servers.kafka' in name])"
    assert subprocess.check_output([sys.executable, "-c", told], text=True).strip() == "[]"


def test_a_wrong_default_of_a_topic_config_keeps_the_broker_from_starting(tmp_path: Path) -> None:
    async def scene() -> None:
        with pytest.raises(InvalidConfig, match=r"^kafka\.configs: Unknown topic config name: no\.such$"):
            async with kafka_broker(tmp_path, configs={"no.such": "1"}):
                pass

    asyncio.run(scene())


async def test_names_that_kafka_cannot_have_are_a_metric(catalog: SqliteCatalog) -> None:
    create(catalog, "a b")
    create(catalog, "a")
    async with kafka_broker(catalog.path.parent) as broker:
        assert broker.kafka_address is not None
        async with raw_client(broker.kafka_address) as client:
            await client.ask(LIST_TOPICS, 0, {"list_internal": True})
        found = broker.pipeline.metrics.registry.get_sample_value(
            "broker_core_kafka_names_left_out", {"namespace": "public/default"}
        )
        assert found == 1
