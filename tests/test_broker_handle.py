"""What plugins may ask of the broker: versions, changes, what was asked, and to forget kept answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from broker_core import ListingRequest, TopicListingResult, hookimpl
from broker_core.broker import Broker
from broker_core.catalog import Changes
from broker_core.client import LookupClient
from broker_core.errors import InvalidName, ListingFailed
from broker_core.names import TopicName
from broker_core.settings import Settings


class Curious:
    """Keeps the handle; answers one namespace from a list that is shared by all, under one version."""

    def __init__(self) -> None:
        self.broker: Any = None
        self.topics = [f"persistent://public/kept/t-{number}" for number in range(600)]

    @hookimpl
    async def broker_core_startup(self, broker: Any) -> None:
        self.broker = broker

    @hookimpl
    async def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult | None:
        if str(request.namespace) != "public/kept":
            return None
        return TopicListingResult.success(self.topics, version="same")


def settings(folder: Path, **tables: Any) -> Settings:
    catalog = {"path": folder / "topics.sqlite"}
    return Settings.model_validate({"pulsar": {"listen": "127.0.0.1:0"}, "catalog": catalog} | tables)


async def test_version_and_changes_are_those_of_the_catalogue(tmp_path: Path) -> None:
    plugin = Curious()
    async with Broker(settings(tmp_path), plugins={"curious": plugin}) as broker:
        assert broker.catalog is not None
        before = await asyncio.to_thread(plugin.broker.version, "public/default")
        broker.catalog.create(TopicName.parse("persistent://public/default/new"))
        after = await asyncio.to_thread(plugin.broker.version, "public/default")
        changes = await asyncio.to_thread(plugin.broker.changes, "public/default", before)
    assert after.number == before.number + 1
    assert isinstance(changes, Changes)
    assert [str(change.name) for change in changes] == ["persistent://public/default/new"]
    with pytest.raises(InvalidName):
        plugin.broker.version("not a namespace")


async def test_questions_are_counted_without_who_asked(tmp_path: Path) -> None:
    plugin = Curious()
    async with Broker(settings(tmp_path), plugins={"curious": plugin}) as broker:
        host, port = broker.pulsar_address
        async with LookupClient(f"pulsar://{host}:{port}") as client:
            for _ in range(3):
                await client.get_topics(
                    "public/default", pattern="public/default/a.*", properties={"secret": "x"}
                )
            await client.get_topics("public/default")
        first, second = plugin.broker.questions()
    assert (first.topics_pattern, first.count, first.properties) == ("public/default/a.*", 3, ())
    assert (second.topics_pattern, second.count) == (None, 1)


async def test_kept_answers_are_forgotten_when_the_plugin_says_so(tmp_path: Path) -> None:
    plugin = Curious()
    async with Broker(settings(tmp_path), plugins={"curious": plugin}) as broker:
        host, port = broker.pulsar_address
        async with LookupClient(f"pulsar://{host}:{port}") as client:
            assert len(await client.get_topics("public/kept")) == 600
            plugin.topics.append("persistent://public/kept/one-more")
            # The same version is the same answer: the plugin's word.
            assert len(await client.get_topics("public/kept")) == 600
            plugin.broker.topics_changed("public/other")
            assert len(await client.get_topics("public/kept")) == 600
            plugin.broker.topics_changed("public/kept")
            assert len(await client.get_topics("public/kept")) == 601


async def test_before_a_cluster_there_is_no_change_log(tmp_path: Path) -> None:
    plugin = Curious()
    upstream = {"service_url": "pulsar://127.0.0.1:1"}
    async with Broker(settings(tmp_path, upstream=upstream), plugins={"curious": plugin}):
        with pytest.raises(ListingFailed, match="no change log"):
            plugin.broker.version("public/default")
