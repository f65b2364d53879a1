"""What changed between two listings, for feeds whose patterns it may not concern."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from broker_core.access.asker import Asker
from broker_core.broker import opened_pipeline
from broker_core.catalog import SqliteCatalog
from broker_core.listing.listing import Listing
from broker_core.names import NamespaceName, TopicName
from broker_core.pipeline import Pipeline
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.servers.http.api.events.listing_changes import ListingChanges
from broker_core.servers.http.api.events.listing_feed import ListingFeed
from broker_core.servers.http.api.events.subscriber import Subscriber
from broker_core.settings import Settings
from tests.support.eventually import eventually
from tests.support.plugins import PluginOf

NAMESPACE = NamespaceName("a", "b")


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


def topic(local: str) -> TopicName:
    return TopicName("persistent", NAMESPACE, local)


def question(pipeline: Pipeline, pattern: str = "a/b/x-.*", **properties: str) -> ListingRequest:
    return ListingRequest(NAMESPACE, pattern=pipeline.compile(pattern), properties=properties)


async def listed(pipeline: Pipeline) -> Listing:
    result = await pipeline.lister.list_topics(ListingRequest(NAMESPACE))
    assert isinstance(result.topics, Listing)
    return result.topics


async def test_an_answer_is_the_same_until_a_name_comes_or_goes_that_matches(
    catalog: SqliteCatalog, pipeline: Pipeline
) -> None:
    changes, asked = ListingChanges(pipeline), question(pipeline)
    seen = await listed(pipeline)
    assert await changes.same_since(seen, asked) is seen
    catalog.create(topic("y-2"), partitions=2)
    now = await changes.same_since(seen, asked)
    assert now is not None
    assert len(now) == len(seen) + 2
    assert await changes.same_since(seen, question(pipeline, "a/b/.*-2")) is None
    catalog.create(topic("x-2"))
    assert await changes.same_since(now, asked) is None
    both = await listed(pipeline)
    catalog.delete(topic("x-1"))
    assert await changes.same_since(both, asked) is None
    assert await changes.same_since(both, question(pipeline, "a/b/y-.*")) is not None


async def test_many_changes_are_asked_about_anew(
    catalog: SqliteCatalog, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker_core.servers.http.api.events.listing_changes._MOST", 1)
    changes, seen = ListingChanges(pipeline), await listed(pipeline)
    catalog.create(topic("y-2"))
    assert await changes.same_since(seen, question(pipeline)) is not None
    catalog.create(topic("y-3"))
    assert await changes.same_since(seen, question(pipeline)) is None


async def test_it_is_for_questions_of_names_alone(pipeline: Pipeline, tmp_path: Path) -> None:
    changes = ListingChanges(pipeline)
    assert changes.applies(question(pipeline))
    assert changes.applies(question(pipeline, unknown="1"))
    assert not changes.applies(question(pipeline, region="eu"))
    assert not changes.applies(question(pipeline, "(?!x).*"))
    assert not changes.applies(ListingRequest(NAMESPACE))
    settings = Settings.model_validate({"catalog": {"path": tmp_path / "c.sqlite"}})
    masking = PluginOf(visible=lambda: None)
    async with opened_pipeline(settings, plugins={"p": masking}) as masked:
        assert not ListingChanges(masked).applies(question(masked))


async def test_a_feed_asks_only_where_a_change_concerns_it(
    catalog: SqliteCatalog, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker_core.servers.http.api.events.listing_feed._GAP", 0.0)
    feed = ListingFeed(pipeline, question(pipeline), frozenset, lambda _: True, ListingChanges(pipeline))
    subscriber = Subscriber(Asker())
    await feed.refresh(subscriber.asker)
    feed.join(subscriber, feed.topics_hash)
    rounds = asked(pipeline)
    for number in (2, 3):
        catalog.create(topic(f"y-{number}"))
        now = await listed(pipeline)
        feed.wake()
        await eventually(partial(has_seen, feed, now))
    assert asked(pipeline) == rounds
    catalog.create(topic("x-2"))
    feed.wake()
    await eventually(lambda: feed.selection is not None and len(feed.selection) == 2)
    assert subscriber.next() is not None
    assert asked(pipeline) == rounds + 1
    await feed.stop()


def has_seen(feed: ListingFeed, listing: Listing) -> bool:
    return feed._seen is not None and feed._seen() is listing


def asked(pipeline: Pipeline) -> float:
    return pipeline.metrics.registry.get_sample_value("broker_core_listing_seconds_count") or 0.0
