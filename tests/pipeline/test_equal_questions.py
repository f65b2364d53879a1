"""Equal questions at a time: of a plugin that tells its version one asks for all, and nobody pays for another one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

import pytest

from broker_core import ListingRequest, TopicListingResult
from broker_core.access.asker import Asker
from broker_core.errors import ListingFailed
from broker_core.listing.listing_hash import topics_hash
from broker_core.pipeline import Answer
from broker_core.plugins import PluginFailed
from tests.support.eventually import eventually
from tests.support.pipelines import FEW, Made, made, names
from tests.support.plugins import PluginOf


class Slow:
    """A lister that takes its time, and tells the version of what it lists."""

    def __init__(self) -> None:
        self.version: str | None = "1"
        self.gate = asyncio.Event()
        self.asked: list[ListingRequest] = []
        self.error: Exception | None = None
        self.names = FEW

    def hooks(self, depends_on: Collection[str]) -> PluginOf:
        async def list_topics(request: ListingRequest) -> TopicListingResult:
            self.asked.append(request)
            await self.gate.wait()
            if self.error is not None:
                raise self.error
            return TopicListingResult.success(self.names)

        async def version() -> str | None:
            return self.version

        return PluginOf(list_topics=list_topics, version=version, depends_on=lambda: depends_on)


@asynccontextmanager
async def slow(*depends_on: str, **table: Any) -> AsyncIterator[tuple[Made, Slow]]:
    plugin = Slow()
    async with made(plugins={"p": plugin.hooks(depends_on)}, tables={"p": table}) as m:
        plugin.gate.set()
        (await m.ask()).release()  # the size of an answer is known from now on
        plugin.asked.clear()
        plugin.gate.clear()
        m.pipeline.changes.announce(None)
        yield m, plugin


def asks(m: Made, count: int, **fields: Any) -> list[asyncio.Task[Answer]]:
    return [asyncio.create_task(m.ask(**fields)) for _ in range(count)]


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_one_asks_for_all() -> None:
    async with slow() as (m, plugin):
        waiting = asks(m, 20) + asks(m, 5, pattern="t/n/0.*") + asks(m, 5, asker=Asker(role="me"))
        unchanged = asks(m, 5, topics_hash=topics_hash(FEW))
        await eventually(lambda: plugin.asked)
        await settled()
        assert len(plugin.asked) == 1
        plugin.gate.set()
        found = [names(answer) for answer in await asyncio.gather(*waiting)]
        assert found[:20] == [sorted(FEW)] * 20
        assert found[20:25] == [[name for name in sorted(FEW) if "/0" in name]] * 5
        assert found[25:] == [sorted(FEW)] * 5
        assert not any(answer.changed for answer in await asyncio.gather(*unchanged))
        assert len(plugin.asked) == 1


async def test_what_the_plugin_depends_on_makes_questions_others() -> None:
    async with slow("principal", "pattern") as (m, plugin):
        waiting = [
            *asks(m, 3, asker=Asker(role="me")),
            *asks(m, 3, asker=Asker(role="you")),
            *asks(m, 3, asker=Asker(role="you"), pattern="t/n/0.*"),
        ]
        await eventually(lambda: len(plugin.asked) == 3)
        await settled()
        plugin.gate.set()
        for answer in await asyncio.gather(*waiting):
            answer.release()
        assert len(plugin.asked) == 3


async def test_another_version_is_another_question() -> None:
    async with slow() as (m, plugin):
        before = asks(m, 2)
        await eventually(lambda: plugin.asked)
        plugin.version, plugin.names = "2", FEW[:3]
        after = asks(m, 2)
        await eventually(lambda: len(plugin.asked) == 2)
        plugin.gate.set()
        # What was asked for as of the first version cannot be kept: it is another one by now.
        for answer in await asyncio.gather(*before, *after):
            assert names(answer) == sorted(FEW[:3])


async def test_without_a_version_everybody_asks() -> None:
    """A later asker must not get what was true before it asked: nothing says that it still is."""
    async with slow() as (m, plugin):
        plugin.version = None
        waiting = asks(m, 5)
        await eventually(lambda: len(plugin.asked) == 5)
        plugin.gate.set()
        for answer in await asyncio.gather(*waiting):
            answer.release()


async def test_who_goes_away_takes_nobody_along() -> None:
    async with slow() as (m, plugin):
        first, *rest = asks(m, 4)
        await eventually(lambda: plugin.asked)
        await settled()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        await eventually(lambda: len(plugin.asked) == 2)  # one of the others asks now
        await settled()
        rest[0].cancel()
        plugin.gate.set()
        for answer in (await asyncio.gather(*rest, return_exceptions=True))[1:]:
            assert isinstance(answer, Answer)
            answer.release()
        assert len(plugin.asked) <= 3


async def test_a_failure_of_the_plugin_is_everybodys() -> None:
    async with slow() as (m, plugin):
        plugin.error = ListingFailed("no database")
        waiting = asks(m, 6)
        await eventually(lambda: plugin.asked)
        await settled()
        plugin.gate.set()
        failures = await asyncio.gather(*waiting, return_exceptions=True)
        assert len(plugin.asked) == 1
        assert {str(failure) for failure in failures} == {"plugin 'p' failed: no database"}
        assert len({id(failure) for failure in failures}) == 6
        for failure in failures:
            assert isinstance(failure, PluginFailed)
            assert failure.plugin == "p"


async def test_the_last_answer_stands_in_for_everybody() -> None:
    async with slow(on_failure="stale", max_stale=60.0) as (m, plugin):
        plugin.error = ListingFailed("no database")
        waiting = asks(m, 6)
        await eventually(lambda: plugin.asked)
        await settled()
        plugin.gate.set()
        for answer in await asyncio.gather(*waiting):
            assert answer.stale is not None
            assert names(answer) == sorted(FEW)
        assert len(plugin.asked) == 1


async def test_nobody_waits_longer_than_a_call_may_take() -> None:
    async with slow(deadline=0.05) as (m, plugin):
        waiting = asks(m, 3)
        await eventually(lambda: plugin.asked)
        failures = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(failure, PluginFailed) for failure in failures)


async def test_where_nothing_can_be_kept_everybody_asks() -> None:
    async with slow() as (m, plugin):
        everything = await m.permits.snapshots.acquire(m.permits.snapshots.maximum)
        waiting = asks(m, 4)
        await eventually(lambda: plugin.asked)
        plugin.gate.set()
        for answer in await asyncio.gather(*waiting):
            assert names(answer) == sorted(FEW)
        assert len(plugin.asked) == 4
        plugin.asked.clear()
        plugin.gate.clear()
        waiting = asks(m, 4)
        await eventually(lambda: len(plugin.asked) == 4)  # nobody waits in vain once more
        plugin.gate.set()
        for answer in await asyncio.gather(*waiting):
            answer.release()
        everything.release()
