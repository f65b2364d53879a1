"""Feeds: shared by equal questions, kept a little for those that come back, and bounded."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core.access.asker import Asker
from broker_core.broker.opened_core import opened_pipeline
from broker_core.catalog import CatalogLogReader, SqliteCatalog
from broker_core.errors import Cause, ListingFailed, TooManyRequests
from broker_core.names import Mode, NamespaceName, TopicName
from broker_core.patterns import compile_pattern
from broker_core.pipeline import Pipeline
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.plugin_api.listing_result import TopicListingResult
from broker_core.service.following.listing_feed import ListingFeed
from broker_core.service.following.listing_feeds import ListingFeeds
from broker_core.settings import Settings
from tests.support.eventually import eventually
from tests.support.followers import RecordingFollower, unanswered
from tests.support.plugins import PluginOf

NAMESPACE = NamespaceName("a", "b")


@pytest.fixture
async def pipeline(tmp_path: Path) -> AsyncIterator[Pipeline]:
    settings = Settings.model_validate(
        {"catalog": {"path": tmp_path / "c.sqlite", "property_keys": ["region"]}}
    )
    async with opened_pipeline(settings, create=True) as opened:
        yield opened


def question(asker: Asker | None = None, **fields: Any) -> ListingRequest:
    return ListingRequest(NAMESPACE, asker=asker or Asker(), **fields)


async def joined(
    feeds: ListingFeeds, asked: ListingRequest, last_id: str | None = None
) -> tuple[ListingFeed, RecordingFollower]:
    follower = RecordingFollower(asked.asker)
    return await feeds.join(asked, follower, last_id), follower


async def test_equal_questions_share_a_feed(pipeline: Pipeline) -> None:
    feeds = ListingFeeds(pipeline)
    first, one = await joined(feeds, question())
    same, two = await joined(
        feeds, question(Asker(role="other"), properties={"unknown": "1"}), first.topics_hash
    )
    assert same is first
    assert (one.lags, two.lags) == (0, 0)
    others = [
        (await joined(feeds, question(**fields)))[0]
        for fields in (
            {"mode": Mode.ALL},
            {"properties": {"region": "eu"}},
            {"pattern": compile_pattern("a/b/x")},
        )
    ]
    assert len({id(feed) for feed in (first, *others)}) == 4
    feeds.close()
    assert one.is_closed
    assert two.is_closed


async def test_a_feed_is_kept_for_those_that_come_back(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    feeds = ListingFeeds(pipeline)
    feed, follower = await joined(feeds, question())
    feeds.leave(feed, follower)
    again, follower = await joined(feeds, question())
    assert again is feed
    monkeypatch.setattr("broker_core.service.following.listing_feeds._LINGER", 0.0)
    feeds.leave(feed, follower)
    await eventually(lambda: feed.is_closed)
    new, _ = await joined(feeds, question())
    assert new is not feed
    feeds.close()


async def test_a_question_without_an_answer_leaves_nothing(tmp_path: Path) -> None:
    def broker_core_list_topics() -> None:
        raise RuntimeError("broken")

    settings = Settings.model_validate({"catalog": {"path": tmp_path / "c.sqlite"}})
    plugins = {"p": PluginOf(list_topics=broker_core_list_topics)}
    async with opened_pipeline(settings, plugins=plugins, create=True) as pipeline:
        feeds = ListingFeeds(pipeline)
        feed = feeds._feed(question())
        with pytest.raises(ListingFailed):
            await joined(feeds, question())
        assert feed.is_closed
        assert pipeline.permits.heap.acquired == 0


async def test_what_cannot_be_caught_up_with_is_refused_unless_a_plugin_answers_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: list[Any] = []

    def broker_core_list_topics(request: ListingRequest) -> Any:
        return answers[-1](request)

    async def with_rest(request: ListingRequest) -> Any:
        return TopicListingResult.success((await request.rest()).selection)

    async def catch_up(request: ListingRequest) -> None:
        assert request.topics_hash == "01234567"
        raise ListingFailed("no broker answers", cause=Cause.UPSTREAM)

    settings = Settings.model_validate({"catalog": {"path": tmp_path / "c.sqlite"}})
    plugins = {"p": PluginOf(list_topics=broker_core_list_topics)}
    async with opened_pipeline(settings, plugins=plugins, create=True) as pipeline:
        monkeypatch.setattr(pipeline.lister, "catch_up", catch_up)
        feeds = ListingFeeds(pipeline)
        asked = question(topics_hash="01234567")
        for answer in (lambda _: None, with_rest):
            answers.append(answer)
            with pytest.raises(ListingFailed, match="no broker answers"):
                await joined(feeds, asked)
        answers.append(lambda _: TopicListingResult.success(["persistent://a/b/own"]))
        feed, _ = await joined(feeds, asked)
        assert feed.selection is not None
        assert feed.selection.names.to_pylist() == ["persistent://a/b/own"]
        await feeds.stop()


@pytest.mark.parametrize("lists", [False, True], ids=["catalogue", "plugin"])
async def test_changes_are_shown_to_come_at_once_or_after_a_period(tmp_path: Path, lists: bool) -> None:
    plugin = PluginOf(list_topics=lambda: TopicListingResult.success(["persistent://a/b/own"]))
    settings = Settings.model_validate({"catalog": {"path": tmp_path / "c.sqlite"}})
    async with opened_pipeline(settings, plugins={"p": plugin} if lists else {}, create=True) as pipeline:
        feeds = ListingFeeds(pipeline, interval=7.0)
        await joined(feeds, question())
        (shown,) = await feeds.followed()
        assert shown.period == (7.0 if lists else None)
        await feeds.stop()


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
        feeds = ListingFeeds(pipeline)
        with pytest.raises(TooManyRequests, match="need more memory"):
            for letter in "xyz":
                large = ListingRequest(NamespaceName("a", letter * 100), asker=Asker())
                await joined(feeds, large)
        assert pipeline.permits.heap.acquired == 0
        feeds.close()


async def test_a_feed_that_is_closed_already_has_ended_too_when_all_have_stopped(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    feeds = ListingFeeds(pipeline)
    feed, follower = await joined(feeds, question())
    asked, ended = unanswered(pipeline, monkeypatch)
    feed.wake()
    await asked.wait()
    feeds.leave(feed, follower)
    feeds.close()
    assert not ended.is_set()
    await feeds.stop()
    assert ended.is_set()


def grow(catalog: SqliteCatalog, number: int) -> int:
    """Create 200 topics more, of some 60 KB in memory; the number of topics then."""
    name = f"{number:02d}-".ljust(100, "x")
    catalog.create(TopicName("persistent", NAMESPACE, name), partitions=200)
    return 200 * (number + 1)


def has_topics(feed: ListingFeed, number: int) -> bool:
    return feed.selection is not None and len(feed.selection) == number


async def test_a_listing_is_followed_though_there_is_no_room_for_two_of_it(tmp_path: Path) -> None:
    settings = Settings.model_validate(
        {"catalog": {"path": tmp_path / "c.sqlite"}, "limits": {"snapshots": "1MB"}}
    )
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        grow(catalog, 0)
        log = CatalogLogReader(catalog)
        async with opened_pipeline(settings) as pipeline:
            feeds = ListingFeeds(pipeline, log)
            feed, follower = await joined(feeds, question(pattern=compile_pattern("a/b/.*")))
            for number in range(1, 14):
                topics = grow(catalog, number)
                await eventually(partial(has_topics, feed, topics))
                # All of these would stay in memory.
                follower.earlier.clear()
                follower.events.clear()
                follower.failures.clear()
            assert feed.selection is not None
            size = feed.selection.listing.nbytes
            assert size < pipeline.permits.snapshots.maximum < 2 * size
            await eventually(lambda: pipeline.permits.heap.acquired == 0)
            await feeds.stop()
        log.close()


async def test_a_question_that_there_is_no_room_for_says_so_and_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {"snapshots": "1MB", "heap_permits": "100KB", "permit_timeout": "100ms"}
    settings = Settings.model_validate({"catalog": {"path": tmp_path / "c.sqlite"}, "limits": limits})
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        grow(catalog, 0)
        log = CatalogLogReader(catalog)
        async with opened_pipeline(settings) as pipeline:
            feeds = ListingFeeds(pipeline, log)
            feed, follower = await joined(feeds, question(pattern=compile_pattern("a/b/.*")))
            for number in range(1, 20):
                grow(catalog, number)
            with capture_logs() as logs:
                await eventually(lambda: feed.problem is not None)
                (shown,) = await feeds.followed()
                assert (shown.outdated, feeds.failing) == (1, 1)
                assert "memory" in (shown.problem or "")
                monkeypatch.setattr("broker_core.service.following.follower._MOST_SHORT", 0.0)
                await eventually(lambda: follower.is_closed)
            said = [entry for entry in logs if "no answer" in entry["event"]]
            assert [(entry["log_level"], entry["namespace"]) for entry in said] == [("warning", "a/b")]
            feeds.leave(feed, follower)
            assert feeds.failing == 0
            await feeds.stop()
        log.close()
