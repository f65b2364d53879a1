"""Feeds: shared by equal questions, kept a little for those that come back, and bounded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from broker_core.access.asker import Asker
from broker_core.broker import opened_pipeline
from broker_core.errors import Cause, ListingFailed, TooManyRequests
from broker_core.metrics.metrics import Metrics
from broker_core.names import Mode, NamespaceName
from broker_core.pipeline import Pipeline
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.servers.http.api.admission import ApiAdmission
from broker_core.servers.http.api.events.listing_feeds import ListingFeeds, feeds_of
from broker_core.servers.http.api.services import ApiServices
from broker_core.settings import Settings
from tests.support.eventually import eventually
from tests.support.plugins import PluginOf

NAMESPACE = NamespaceName("a", "b")


def services_of(pipeline: Pipeline, limit: int = 0) -> ApiServices:
    nobody: Any = None
    settings = Settings()
    return ApiServices(pipeline, pipeline.permits, Metrics(), nobody, settings, admission=ApiAdmission(limit))


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[Pipeline]:
    settings = Settings.model_validate(
        {"catalog": {"path": tmp_path / "c.sqlite", "property_keys": ["region"]}}
    )
    async with opened_pipeline(settings, create=True) as opened:
        yield opened


def question(asker: Asker | None = None, **fields: Any) -> ListingRequest:
    return ListingRequest(NAMESPACE, asker=asker or Asker(), **fields)


async def test_equal_questions_share_a_feed(pipeline: Pipeline) -> None:
    feeds = ListingFeeds(services_of(pipeline))
    first, one = await feeds.join(question(), None)
    same, two = await feeds.join(
        question(Asker(role="other"), properties={"unknown": "1"}), first.topics_hash
    )
    assert same is first
    assert (one.lags, two.lags) == (True, False)
    others = [
        (await feeds.join(question(**fields), None))[0]
        for fields in (
            {"mode": Mode.ALL},
            {"properties": {"region": "eu"}},
            {"pattern": pipeline.compile("a/b/x")},
        )
    ]
    assert len({id(feed) for feed in (first, *others)}) == 4
    feeds.close()
    assert one.is_closed
    assert two.is_closed


async def test_a_feed_is_kept_for_those_that_come_back(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    feeds = ListingFeeds(services_of(pipeline))
    feed, subscriber = await feeds.join(question(), None)
    feeds.leave(feed, subscriber)
    again, subscriber = await feeds.join(question(), None)
    assert again is feed
    monkeypatch.setattr("broker_core.servers.http.api.events.listing_feeds._LINGER", 0.0)
    feeds.leave(feed, subscriber)
    await eventually(lambda: feed.is_closed)
    new, _ = await feeds.join(question(), None)
    assert new is not feed
    feeds.close()


async def test_nobody_has_all_places_and_there_is_an_end(pipeline: Pipeline) -> None:
    services = services_of(pipeline, 64)  # 16 streams
    feeds, admission = ListingFeeds(services), services.admission
    for _ in range(8):
        feeds.take_place(admission, "a")
    with pytest.raises(TooManyRequests) as refused:
        feeds.take_place(admission, "a")
    assert refused.value.cause is Cause.QUEUE
    for number in range(8):
        feeds.take_place(admission, f"b{number // 2}")
    with pytest.raises(TooManyRequests):
        feeds.take_place(admission, "c")
    feeds.give_place(admission, "b0")
    feeds.take_place(admission, "c")
    feeds.close()


async def test_a_question_without_an_answer_leaves_nothing(tmp_path: Path) -> None:
    def broker_core_list_topics() -> None:
        raise RuntimeError("broken")

    settings = Settings.model_validate({"catalog": {"path": tmp_path / "c.sqlite"}})
    plugins = {"p": PluginOf(list_topics=broker_core_list_topics)}
    async with opened_pipeline(settings, plugins=plugins, create=True) as pipeline:
        feeds = ListingFeeds(services_of(pipeline))
        feed = feeds._feed(question())[1]
        with pytest.raises(ListingFailed):
            await feeds.join(question(), None)
        assert feed.is_closed
        assert pipeline.permits.heap.acquired == 0


async def test_what_streams_keep_is_bounded(tmp_path: Path) -> None:
    settings = Settings.model_validate(
        {"catalog": {"path": tmp_path / "c.sqlite"}, "limits": {"snapshots": 4 * 1024 * 1024}}
    )
    names = [f"persistent://a/{'x' * 100}/{number:06}" for number in range(20_000)]

    def broker_core_list_topics(request: ListingRequest) -> Any:
        from broker_core import TopicListingResult

        return TopicListingResult.success(
            [name.replace("x" * 100, request.namespace.namespace) for name in names]
        )

    plugins = {"p": PluginOf(list_topics=broker_core_list_topics)}
    async with opened_pipeline(settings, plugins=plugins, create=True) as pipeline:
        feeds = ListingFeeds(services_of(pipeline))
        with pytest.raises(TooManyRequests, match="Streams of topics need more memory"):
            for letter in "xyz":
                large = ListingRequest(NamespaceName("a", letter * 100), asker=Asker())
                await feeds.join(large, None)
        assert pipeline.permits.heap.acquired == 0
        feeds.close()


async def test_a_broker_has_one_of_them(pipeline: Pipeline) -> None:
    services = services_of(pipeline)
    feeds = feeds_of(services)
    assert feeds_of(services) is feeds
    assert feeds_of(services_of(pipeline)) is feeds
    feeds.take_place(services.admission, "a")
    feed, subscriber = await feeds.join(question(), None)
    services.admission.draining.set()
    await eventually(lambda: subscriber.is_closed)
    assert feed.is_closed


async def test_a_feed_that_is_closed_already_has_ended_too_when_all_have_stopped(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    feeds = ListingFeeds(services_of(pipeline))
    feed, subscriber = await feeds.join(question(), None)
    asked, ended = asyncio.Event(), asyncio.Event()

    async def answer(*_: object) -> None:
        asked.set()
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.set()

    monkeypatch.setattr(pipeline, "answer_now", lambda _question: None)
    monkeypatch.setattr(pipeline, "answer", answer)
    feed.wake()
    await asked.wait()
    feeds.leave(feed, subscriber)
    feeds.close()
    assert not ended.is_set()
    await feeds.stop()
    assert ended.is_set()
