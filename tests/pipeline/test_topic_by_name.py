"""One topic by its name: from a cached listing if there is one, and in time."""

from __future__ import annotations

import asyncio
import gc

import pytest

from broker_core import TopicListingResult, TopicName
from broker_core.access.asker import Asker
from broker_core.errors import ListingFailed
from broker_core.pipeline import PipelineOptions, Topic, partition_names
from tests.support.eventually import eventually
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import made
from tests.support.plugins import PluginOf

BASE = "persistent://t/n/"
X = TopicName.parse(f"{BASE}x")
NAMES = [f"{BASE}x-partition-{number}" for number in range(3)]


async def test_a_kept_listing_answers_at_once() -> None:
    lister = MemoryLister(NAMES)
    async with made(lister) as m:
        topics_by_name = m.pipeline.topics_by_name
        assert not topics_by_name.concerns(X)
        for _ in range(2):
            assert topics_by_name.listed_now(X, Asker()) == Topic(3)
        assert topics_by_name.listed_now(TopicName.parse(f"{BASE}y"), Asker()) == Topic(0, exists=False)
        # No listing has it, whether it is there or not.
        assert topics_by_name.listed_now(TopicName.parse(f"{BASE}__change_events"), Asker()) is None
        lister.change([f"{BASE}x"])
        assert topics_by_name.listed_now(X, Asker()) == Topic(0)
        lister.at_once = False
        assert topics_by_name.listed_now(X, Asker()) is None
        assert await topics_by_name.of_default_lister(X, Asker()) == Topic(0)
        assert await topics_by_name.topic(X, Asker()) is None  # no plugin says anything


async def test_it_takes_no_longer_than_a_listing_may() -> None:
    async def never() -> TopicListingResult | None:
        await asyncio.Event().wait()
        return None

    options = PipelineOptions(time_budget=0.05)
    async with made(plugins={"p": PluginOf(list_topics=never)}, options=options) as m:
        assert m.pipeline.topics_by_name.concerns(X)
        with pytest.raises(ListingFailed, match=r"longer than 0\.05 s"):
            await m.pipeline.topics_by_name.topic(X, Asker())
        # What nobody waits for any more ends by itself, with all that it holds.
        await eventually(lambda: m.permits.heap.acquired == 0)


async def test_what_was_listed_for_it_has_permits_as_long_as_it_lives() -> None:
    names = [f"{BASE}y{number:05d}" for number in range(5000)] + NAMES
    plugin = PluginOf(list_topics=lambda: TopicListingResult.success(names), depends_on=lambda: ["principal"])
    async with made(plugins={"p": plugin}) as m:
        assert await m.pipeline.topics_by_name.topic(X, Asker()) == Topic(3)
        gc.collect()
        await eventually(lambda: m.permits.heap.acquired == 0)


def test_the_names_of_partitions() -> None:
    assert partition_names(X, 9, 11).to_pylist() == [f"{BASE}x-partition-9", f"{BASE}x-partition-10"]
    assert partition_names(X, 3, 3).to_pylist() == []
