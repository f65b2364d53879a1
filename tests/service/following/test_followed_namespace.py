"""The views of a namespace: each wakes the feeds that are answered from its listing, and no others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker_core.access.asker import Asker
from broker_core.broker.opened_core import opened_core
from broker_core.listing.listing_hash import topics_hash
from broker_core.names import NamespaceName
from broker_core.patterns import compile_pattern
from broker_core.pipeline import Pipeline
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.reloads import LiveSettings
from broker_core.service.following.listing_feed import ListingFeed
from broker_core.service.following.listing_feeds import ListingFeeds
from broker_core.settings import Settings
from tests.support.eventually import eventually
from tests.support.fake_cluster import FakeCluster
from tests.support.followers import RecordingFollower

NAMESPACE = NamespaceName("a", "b")
ALICE, BOB = Asker("alice"), Asker("bob")


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with FakeCluster() as cluster:
        cluster.topics[str(NAMESPACE)] = [f"persistent://a/b/y-{number}" for number in range(1000)]
        yield cluster


@pytest.fixture
async def pipeline(cluster: FakeCluster, tmp_path: Path) -> AsyncIterator[Pipeline]:
    (tmp_path / "token").write_text("gateway")
    upstream = {"service_url": cluster.url, "token": f"file:{tmp_path / 'token'}"}
    settings = Settings.model_validate({"upstream": upstream})
    async with opened_core(LiveSettings(settings), {}, identifies=True) as core:
        yield core.pipeline


@pytest.fixture
async def feeds(pipeline: Pipeline) -> AsyncIterator[ListingFeeds]:
    feeds = ListingFeeds(pipeline)
    yield feeds
    await feeds.stop()


async def followed(
    feeds: ListingFeeds, pipeline: Pipeline, asker: Asker, pattern: str = "a/b/x.*"
) -> tuple[ListingFeed, RecordingFollower]:
    follower = RecordingFollower(asker)
    question = ListingRequest(NAMESPACE, pattern=compile_pattern(pattern), asker=asker)
    return await feeds.join(question, follower), follower


async def move_snapshot_of(pipeline: Pipeline, asker: Asker) -> None:
    """Compare the snapshot of a principal with the cluster now."""
    await pipeline.lister.list_topics(
        ListingRequest(NAMESPACE, asker=asker, topics_hash="of another gateway")
    )


def is_at_rest(*feeds: ListingFeed) -> bool:
    return all(feed.repeat_now(feed.question.asker) is not None for feed in feeds)


@pytest.mark.parametrize(("earlier", "later"), [(ALICE, BOB), (BOB, ALICE)])
async def test_a_change_comes_to_each_principal_whichever_has_it_first(
    cluster: FakeCluster, pipeline: Pipeline, feeds: ListingFeeds, earlier: Asker, later: Asker
) -> None:
    names = cluster.topics[str(NAMESPACE)]
    by_asker = {asker: await followed(feeds, pipeline, asker) for asker in (ALICE, BOB)}
    both = [feed for feed, _ in by_asker.values()]
    await eventually(lambda: is_at_rest(*both))
    for name, text in (
        ("persistent://a/b/x-1", "persistent://a/b/x-1"),
        ("persistent://a/b/x-2", "persistent://a/b/x-2"),
        ("persistent://a/b/x-1", "-persistent://a/b/x-1"),
    ):
        (names.remove if name in names else names.append)(name)
        for asker in (earlier, later):
            feed, follower = by_asker[asker]
            await move_snapshot_of(pipeline, asker)
            assert await eventually(follower.text) == text
            await eventually(lambda: is_at_rest(*both))
            matching = [name for name in names if name.startswith("persistent://a/b/x")]
            assert feed.topics_hash == topics_hash(matching)


async def test_the_view_of_the_last_question_goes_with_it(
    pipeline: Pipeline, feeds: ListingFeeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker_core.service.following.listing_feeds._LINGER", 0.0)
    await followed(feeds, pipeline, ALICE)
    await followed(feeds, pipeline, ALICE, "a/b/y.*")
    feed, follower = await followed(feeds, pipeline, BOB)
    views = feeds._namespaces[NAMESPACE].views
    assert len(views) == 2
    feeds.leave(feed, follower)
    await eventually(lambda: len(views) == 1)
