"""Configs of topics that a plugin lists."""

from __future__ import annotations

import pytest

from broker_core import Details, ListingRequest, TopicListingResult
from broker_core.catalog import SqliteCatalog
from broker_core.servers.kafka import configs_of_others as module
from broker_core.servers.kafka.configs_of_others import configs_of_others
from broker_core.wire.kafka import DESCRIBE_CONFIGS
from tests.support.kafka_serving import ask_once, kafka_broker
from tests.support.kafka_topics import caller
from tests.support.pipelines import made
from tests.support.plugins import PluginOf

BASE = "persistent://public/default/"
CONFIGS = {
    "a": {"retention.ms": "5", "nonsense": "1", "segment.ms": "no number"},
    "b.c": {},
    "unknown": None,
    "other": {"retention.ms": "6"},
}


def list_topics(request: ListingRequest) -> TopicListingResult:
    topics = [BASE + name for name in CONFIGS]
    if not request.wants:
        return TopicListingResult.success(topics)
    told = {"configs": CONFIGS.values()} if "configs" in request.wants else {}
    return TopicListingResult.success(topics, details=Details.of(topics, **told))


@pytest.mark.parametrize("few", [100, 1])
async def test_those_that_kafka_would_take_are_told(few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_FEW", few)
    async with made(plugins={"lister": PluginOf(list_topics=list_topics)}) as m:
        asked = ["a", "b.c", "unknown", "gone"]
        assert await configs_of_others(m.pipeline, caller(), asked) == {"a": {"retention.ms": "5"}, "b.c": {}}


async def test_nothing_is_known_where_the_plugin_tells_nothing() -> None:
    def silent() -> TopicListingResult:
        return TopicListingResult.success([BASE + "a"])

    async with made(plugins={"lister": PluginOf(list_topics=silent)}) as m:
        assert await configs_of_others(m.pipeline, caller(), ["a"]) == {}


async def test_clients_are_told_them(catalog: SqliteCatalog) -> None:
    plugins = {"lister": PluginOf(list_topics=list_topics)}
    rows = [
        {"resource_type": 2, "resource_name": name, "configuration_keys": ["retention.ms"]}
        for name in CONFIGS
    ]
    async with kafka_broker(catalog.path.parent, plugins=plugins) as broker:
        answer = await ask_once(broker, DESCRIBE_CONFIGS, 4, {"resources": rows})
    told = {row["resource_name"]: [each["value"] for each in row["configs"]] for row in answer["results"]}
    assert told == {"a": ["5"], "b.c": ["604800000"], "unknown": ["604800000"], "other": ["6"]}


async def test_a_plugin_that_fails_is_an_error_of_its_topics(catalog: SqliteCatalog) -> None:
    def failing(request: ListingRequest) -> TopicListingResult:
        if "configs" in request.wants:
            raise RuntimeError("no configs today")
        return list_topics(request)

    rows = [{"resource_type": 2, "resource_name": name, "configuration_keys": None} for name in ("a", "none")]
    async with kafka_broker(catalog.path.parent, plugins={"lister": PluginOf(list_topics=failing)}) as broker:
        answer = await ask_once(broker, DESCRIBE_CONFIGS, 4, {"resources": rows})
    assert {row["resource_name"]: (row["error_code"], row["configs"]) for row in answer["results"]} == {
        "a": (-1, []),
        "none": (3, []),
    }
