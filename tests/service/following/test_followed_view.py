"""What changed between two listings of a view, and the feeds whose patterns it does not concern."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker_core.broker.opened_core import opened_pipeline
from broker_core.catalog import CatalogLogReader, SqliteCatalog
from broker_core.listing.listing import Selection
from broker_core.names import Mode
from broker_core.patterns import compile_pattern
from broker_core.pipeline import Pipeline
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.service.following import followed_namespace
from broker_core.service.following.change_watch import ChangeWatch
from broker_core.service.following.followed_namespace import FollowedView, ViewKey
from broker_core.service.following.listing_feed import ListingFeed
from broker_core.service.following.listing_feeds import ListingFeeds
from broker_core.settings import Settings
from tests.support.eventually import eventually
from tests.support.followers import NAMESPACE, RecordingFollower, topic
from tests.support.plugins import PluginOf


@pytest.fixture
async def catalog(tmp_path: Path) -> AsyncIterator[SqliteCatalog]:
    with SqliteCatalog(tmp_path / "c.sqlite") as opened:
        opened.create(topic("x-1"))
        opened.create(topic("y-1"))
        yield opened


@pytest.fixture
async def pipeline(catalog: SqliteCatalog) -> AsyncIterator[Pipeline]:
    settings = Settings.model_validate({"catalog": {"path": catalog.path, "property_keys": ["region"]}})
    async with opened_pipeline(settings) as opened:
        yield opened


@pytest.fixture
async def feeds(catalog: SqliteCatalog, pipeline: Pipeline) -> AsyncIterator[ListingFeeds]:
    log = CatalogLogReader(catalog)
    feeds = ListingFeeds(pipeline, log)
    yield feeds
    await feeds.stop()
    log.close()


def question(pipeline: Pipeline, pattern: str = "a/b/x-.*", **properties: str) -> ListingRequest:
    return ListingRequest(NAMESPACE, pattern=compile_pattern(pattern), properties=properties)


async def joined(feeds: ListingFeeds, asked: ListingRequest) -> tuple[ListingFeed, RecordingFollower]:
    follower = RecordingFollower()
    return await feeds.join(asked, follower), follower


def asked(pipeline: Pipeline) -> float:
    return pipeline.metrics.registry.get_sample_value("broker_core_listing_seconds_count") or 0.0


def seen(feeds: ListingFeeds) -> int:
    """How many topics the newest listing has that was looked at."""
    (view,) = feeds._namespaces[NAMESPACE].views.values()
    return 0 if view.seen is None else len(view.seen)


async def test_only_questions_are_asked_again_that_a_changed_name_matches(
    catalog: SqliteCatalog, pipeline: Pipeline, feeds: ListingFeeds
) -> None:
    _, x = await joined(feeds, question(pipeline))
    _, y = await joined(feeds, question(pipeline, "a/b/y-.*"))
    catalog.create(topic("y-2"))  # the first look knows of no listing before
    assert await eventually(y.text) == str(topic("y-2"))
    await eventually(lambda: seen(feeds) == 3)
    rounds = asked(pipeline)
    for number in (3, 4):
        catalog.create(topic(f"y-{number}"), partitions=2)
        names = [f"{topic(f'y-{number}')}-partition-{index}" for index in range(2)]
        assert await eventually(y.text) == ",".join(names)
    catalog.delete(topic("y-3"))
    assert await eventually(y.text) == ",".join(f"-{topic('y-3')}-partition-{index}" for index in range(2))
    assert asked(pipeline) == rounds + 3
    assert x.next() is None
    catalog.delete(topic("x-1"))
    assert await eventually(x.text) == f"-{topic('x-1')}"
    assert asked(pipeline) == rounds + 4


async def test_many_changes_are_asked_about_anew(
    catalog: SqliteCatalog, pipeline: Pipeline, feeds: ListingFeeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    await joined(feeds, question(pipeline))
    await eventually(lambda: seen(feeds) == 2)
    catalog.create(topic("y-2"))
    await eventually(lambda: seen(feeds) == 3)
    before = asked(pipeline)
    monkeypatch.setattr(followed_namespace, "_MOST", 1)
    with SqliteCatalog(catalog.path) as other:
        # More than the names that are kept of the last changes.
        other.create(topic("z" * 100), partitions=300)
    await eventually(lambda: asked(pipeline) == before + 1, 10)  # long before the interval


async def test_names_are_matched_for_questions_of_names_alone(
    pipeline: Pipeline, catalog: SqliteCatalog, tmp_path: Path
) -> None:
    watch = ChangeWatch(pipeline.changes, None)
    key = ViewKey(Mode.PERSISTENT, NAMESPACE)
    followed = FollowedView(pipeline, NAMESPACE, key, watch, 30.0, lambda *_: None)
    assert followed.pattern_of(question(pipeline)) is not None
    assert followed.pattern_of(question(pipeline, unknown="1")) is not None
    assert followed.pattern_of(question(pipeline, region="eu")) is None
    assert followed.pattern_of(question(pipeline, "(?!x).*")) is None
    assert followed.pattern_of(ListingRequest(NAMESPACE)) is None
    followed.close()
    settings = Settings.model_validate({"catalog": {"path": catalog.path}})
    masking = PluginOf(visible=lambda: None)
    async with opened_pipeline(settings, plugins={"p": masking}) as masked:
        followed = FollowedView(
            masked, NAMESPACE, key, ChangeWatch(masked.changes, None), 30.0, lambda *_: None
        )
        assert followed.pattern_of(question(masked)) is None
        followed.close()


async def test_what_tells_nobody_is_asked_again_after_an_interval(catalog: SqliteCatalog) -> None:
    listed = ["persistent://a/b/one"]

    def broker_core_list_topics() -> object:
        from broker_core import TopicListingResult

        return TopicListingResult.success(listed)

    settings = Settings.model_validate({"catalog": {"path": catalog.path}})
    plugin = PluginOf(list_topics=broker_core_list_topics, depends_on=lambda: ())
    async with opened_pipeline(settings, plugins={"p": plugin}) as opened:
        feeds = ListingFeeds(opened, interval=0.05)
        _, follower = await joined(feeds, ListingRequest(NAMESPACE))
        listed.append("persistent://a/b/two")
        assert await eventually(follower.text) == "persistent://a/b/two"
        await feeds.stop()


async def test_an_answer_lets_go_of_an_old_listing(
    catalog: SqliteCatalog, pipeline: Pipeline, feeds: ListingFeeds
) -> None:
    feed, follower = await joined(feeds, question(pipeline, "a/b/x.*"))
    before = feed.selection
    assert before is not None
    catalog.create(topic("y-2"))
    await eventually(lambda: seen(feeds) == 3)

    def moved() -> Selection | None:
        feeds._namespaces[NAMESPACE]._period()
        return feed.selection if feed.selection is not before else None

    after = await eventually(moved)
    assert after is not None
    assert after.topics_hash == before.topics_hash
    assert len(after.listing) == 3
    assert follower.next() is None
