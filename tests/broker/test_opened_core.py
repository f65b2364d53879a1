"""The parts of a broker without its servers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from broker_core.broker.opened_core import opened_pipeline
from broker_core.catalog import CatalogUnusable
from broker_core.plugins.failures import PluginLoadError
from broker_core.settings import CatalogSettings, KafkaSettings, Settings
from broker_core.settings.kafka_upstream_model import KafkaUpstreamSettings
from tests.support.ports import free_port


async def test_without_a_catalogue_there_is_no_pipeline(tmp_path: Path) -> None:
    settings = Settings(catalog=CatalogSettings(path=tmp_path / "none.sqlite"))
    with pytest.raises(CatalogUnusable):
        async with opened_pipeline(settings):
            raise AssertionError


async def test_a_kafka_cluster_is_the_last_plugin(tmp_path: Path) -> None:
    upstream = KafkaUpstreamSettings(bootstrap_servers=(f"127.0.0.1:{free_port()}",))
    settings = Settings(
        catalog=CatalogSettings(path=tmp_path / "catalog.sqlite"), kafka=KafkaSettings(upstream=upstream)
    )
    async with opened_pipeline(settings, plugins={"mine": object()}, create=True) as pipeline:
        assert [plugin.name for plugin in pipeline.dispatcher.registry] == ["mine", "kafka-upstream"]
    assert "broker_core.broker.kafka_gateway" in sys.modules


async def test_who_answers_for_the_cluster_cannot_be_set(tmp_path: Path) -> None:
    upstream = KafkaUpstreamSettings(bootstrap_servers=(f"127.0.0.1:{free_port()}",))
    settings = Settings.model_validate(
        {
            "catalog": {"path": tmp_path / "catalog.sqlite"},
            "kafka": KafkaSettings(upstream=upstream),
            "plugins": {"kafka-upstream": {"on_failure": "next"}},
        }
    )
    with pytest.raises(PluginLoadError, match=r"plugins\.kafka-upstream\.on_failure"):
        async with opened_pipeline(settings, create=True):
            raise AssertionError
