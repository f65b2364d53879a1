"""The outcome of a listing: reported to metrics, observers, the log and the counts of questions."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core import ListingRequest, TopicListingResult
from broker_core.access import Asker
from broker_core.errors import InvalidListing, ListingFailed
from broker_core.pipeline import PipelineOptions, explain
from broker_core.settings import PatternsSettings
from tests.support.eventually import eventually
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import FEW, made, names, request
from tests.support.plugins import PluginOf


async def test_an_error_of_this_package_is_told_and_any_other_is_not() -> None:
    source = MemoryLister(FEW, at_once=False)
    async with made(source) as m:
        source.error = InvalidListing("what is wrong")
        with pytest.raises(ListingFailed, match="what is wrong"):
            await m.ask()
        source.error = RuntimeError("secret")
        with capture_logs() as logs, pytest.raises(ListingFailed) as raised:
            await m.ask()
        assert raised.value.message == "Internal error: RuntimeError"
        assert raised.value.reason == "internal"
        assert [event["event"] for event in logs] == ["listing failed"]


async def test_questions_are_counted_by_what_selects_and_those_of_browsers_and_explanations_are_not() -> None:
    options = PipelineOptions(selecting_keys=frozenset({"region"}))
    async with made(MemoryLister(FEW), options=options) as m:
        chromium = Asker(client_version="Mozilla/5.0 (X11; Linux x86_64)", transport="http")
        for region, asker in (("eu", Asker()), ("eu", Asker()), ("us", Asker()), ("e", chromium)):
            answer = m.pipeline.answer_now(
                request(pattern="t/n/.*", properties={"region": region, "secret": "x"}, asker=asker)
            )
            assert answer is not None
            answer.release()
        await explain(m.pipeline, request(pattern="t/n/.*", properties={"region": "explained"}))
        asked = m.pipeline.questions.most_frequent()
        assert [(each.topics_pattern, each.properties, each.count) for each in asked] == [
            ("t/n/.*", (("region", "eu"),), 2),
            ("t/n/.*", (("region", "us"),), 1),
        ]


async def test_observers_hear_of_what_is_answered_at_once_too() -> None:
    heard: list[Any] = []

    async def broker_core_listing_served(outcome: Any) -> None:
        heard.append((outcome.outcome, outcome.lister, outcome.topics, outcome.error))

    plugin = PluginOf(listing_served=broker_core_listing_served)
    strict = PipelineOptions(PatternsSettings(unsupported="error"))
    async with made(MemoryLister(FEW), {"o": plugin}, options=strict) as m:
        answer = m.pipeline.answer_now(request())
        assert answer is not None
        answer.release()
        with pytest.raises(ListingFailed):
            m.pipeline.answer_now(request(pattern="(?!x)"))
        await eventually(lambda: len(heard) == 2)
    assert heard[0] == ("served", "catalog", 10, None)
    assert heard[1][:3] == ("error", None, 0)


async def test_of_a_pattern_of_megabytes_observers_hear_the_begin_and_nothing_is_kept() -> None:
    heard: list[Any] = []

    async def broker_core_listing_served(request: ListingRequest) -> None:
        heard.append(request.topics_pattern)

    plugins = {
        "o": PluginOf(listing_served=broker_core_listing_served),
        "p": PluginOf(list_topics=lambda: TopicListingResult.success(FEW, version=1)),
    }
    async with made(plugins=plugins) as m:
        answer = await m.ask(pattern="x" * 1_000_000)
        assert names(answer) == sorted(FEW)
        assert len(m.pipeline.answers) == 0
        await eventually(lambda: heard)
    assert heard == ["x" * 1024]
