"""``on_failure = "stale"`` as clients see it: the plugin's last answer, exact in itself, or an error."""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from broker_core import ListingRequest, TopicListingResult
from broker_core.listing.listing_hash import topics_hash
from broker_core.pipeline import PipelineOptions
from broker_core.plugin_api.hookspecs import ListingOutcome
from broker_core.servers.pulsar import PulsarOptions
from broker_core.settings import PulsarSettings
from tests.support.clock import AGES, time_passes
from tests.support.eventually import eventually
from tests.support.memory_lister import MemoryLister
from tests.support.plugins import PluginOf
from tests.support.pulsar_serving import Serving, serving
from tests.support.raw_client import Refused

NAMESPACE = "t/n"
STORED = [f"persistent://t/n/stored-{number}" for number in range(4)]
NAMES = [f"persistent://t/n/{number}-topic" for number in range(20)]
STALE = {"p": {"on_failure": "stale", "max_stale": "1h"}}

success = TopicListingResult.success


class Source:
    """A lister that answers by ``answer``, and fails while ``down``."""

    def __init__(self, answer: Any = None) -> None:
        self.answer = success(NAMES) if answer is None else answer
        self.down = False
        self.asked = 0

    def plugin(self, **hooks: Any) -> PluginOf:
        async def broker_core_list_topics(request: ListingRequest) -> Any:
            self.asked += 1
            if self.down:
                raise OSError("no database")
            return self.answer(request) if callable(self.answer) else self.answer

        return PluginOf(list_topics=broker_core_list_topics, **hooks)


def stale_answers(s: Serving) -> float:
    count = s.sample("listing_plugin_stale_total", plugin="p")
    assert s.sample("listing_plugin_stale_age_seconds_count", plugin="p") == count
    return count


@pytest.mark.parametrize("version", [None, 7])
@pytest.mark.parametrize("pattern", [None, "t/n/1.*"])
async def test_the_last_answer_stands_in_for_a_failure(pattern: str | None, version: int | None) -> None:
    source = Source(success(NAMES, version=version))
    expected = [name for name in NAMES if pattern is None or name.startswith("persistent://t/n/1")]
    async with (
        serving(MemoryLister(STORED), {"p": source.plugin()}, tables=STALE) as s,
        await s.client() as client,
    ):
        fresh = await client.ask(NAMESPACE, pattern=pattern)
        source.down = True
        stale = await client.ask(NAMESPACE, pattern=pattern)
        assert stale.topics == fresh.topics
        assert sorted(stale.topics) == sorted(expected)
        assert stale.topics_hash == fresh.topics_hash == topics_hash(expected)
        assert stale.filtered is fresh.filtered is (pattern is not None)
        held = await client.ask(NAMESPACE, pattern=pattern, topics_hash=fresh.topics_hash)
        assert (held.changed, held.topics_hash) == (False, fresh.topics_hash)
        # Another question has no last answer.
        with pytest.raises(Refused, match="plugin 'p' failed: OSError"):
            await client.ask(NAMESPACE, pattern="t/n/other.*")
        assert stale_answers(s) == 2
        described = s.dispatcher.describe()[0]
        assert described["calls"]["list_topics"]["stale"] == 2
        source.down = False
        source.answer = success(NAMES[:3])
        assert len((await client.ask(NAMESPACE)).topics) == 3


async def test_by_default_a_failure_is_an_error_and_nothing_is_remembered() -> None:
    source = Source()
    async with serving(MemoryLister(STORED), {"p": source.plugin()}) as s, await s.client() as client:
        await client.ask(NAMESPACE)
        assert len(s.pipeline.answers) == 0
        source.down = True
        with pytest.raises(Refused):
            await client.ask(NAMESPACE)


@pytest.mark.parametrize("bad", ["foreign", "late", "wrong"])
async def test_every_failure_counts(bad: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source, hangs = Source(), asyncio.Event()

    async def broker_core_list_topics(request: ListingRequest) -> Any:
        if not source.down:
            return source.answer
        if bad == "late":
            hangs.set()
            await asyncio.Event().wait()
        return success(["persistent://t/other/a"]) if bad == "foreign" else "no result"

    tables = {"p": STALE["p"] | {"deadline": "60s"}}
    plugin = PluginOf(list_topics=broker_core_list_topics)
    async with (
        serving(
            MemoryLister(STORED),
            {"p": plugin},
            tables=tables,
            options=PulsarOptions(PulsarSettings(keep_alive=AGES)),
            pipeline_options=PipelineOptions(time_budget=AGES),
        ) as s,
        await s.client() as client,
    ):
        await client.ask(NAMESPACE)
        source.down = True
        answer = asyncio.create_task(client.ask(NAMESPACE))
        if bad == "late":
            await hangs.wait()
            time_passes(monkeypatch, 61)
        assert len((await answer).topics) == len(NAMES)
        assert stale_answers(s) == 1


async def test_a_former_answer_passes_the_masks_of_now() -> None:
    source, hidden = Source(), {"topic": NAMES[0]}

    async def broker_core_visible(topics: pa.LargeStringArray) -> Any:
        return pc.not_equal(topics, hidden["topic"])

    plugins = {"p": source.plugin(), "m": PluginOf(visible=broker_core_visible)}
    async with serving(MemoryLister(STORED), plugins, tables=STALE) as s, await s.client() as client:
        fresh = await client.ask(NAMESPACE)
        assert sorted(fresh.topics) == sorted(NAMES[1:])
        source.down, hidden["topic"] = True, NAMES[5]
        stale = await client.ask(NAMESPACE, topics_hash=fresh.topics_hash)
        expected = [name for name in NAMES if name != NAMES[5]]
        assert sorted(stale.topics) == sorted(expected)
        assert stale.topics_hash == topics_hash(expected)
        held = await client.ask(NAMESPACE, topics_hash=stale.topics_hash)
        assert not held.changed


async def test_observers_are_told_how_old_it_is() -> None:
    source = Source()
    seen: list[ListingOutcome] = []

    async def broker_core_listing_served(outcome: ListingOutcome) -> None:
        seen.append(outcome)

    plugin = source.plugin(listing_served=broker_core_listing_served)
    async with serving(MemoryLister(STORED), {"p": plugin}, tables=STALE) as s, await s.client() as client:
        await client.ask(NAMESPACE)
        source.down = True
        await client.ask(NAMESPACE)
        await eventually(lambda: len(seen) == 2)
        assert s.sample("listing_requests_total", outcome="served", plan="none") == 2
    assert seen[0].stale_seconds is None
    assert seen[1].stale_seconds is not None
    assert 0 <= seen[1].stale_seconds < 3600
    assert seen[1].lister == "p"
