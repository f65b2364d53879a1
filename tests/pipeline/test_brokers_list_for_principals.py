"""If brokers list for each principal, nothing that is learned or kept of one serves another.

docs/explanation/promises.md#nothing-crosses-principals
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from broker_core import Asker, ListingRequest, TopicListingResult, hookimpl
from broker_core.errors import ListingFailed
from broker_core.names import TopicName
from broker_core.patterns import TopicsPattern
from broker_core.pipeline import Pipeline, Trace
from broker_core.service import Find, TopicAsker
from tests.support.eventually import eventually
from tests.support.memory_lister import MemoryLister
from tests.support.pipelines import made, request

OF = {"small": 3, "large": 20_000}


def names_of(asker: Asker) -> list[str]:
    """What the brokers list for a principal: the original one, if a proxy asks for it."""
    principal = asker.original_principal or asker.role or ""
    return [f"persistent://t/n/{principal}-{number:05d}" for number in range(OF.get(principal, 2))]


class Brokers(MemoryLister):
    """Lists for each principal something else, and depends on what the lister of a gateway says."""

    name = "upstream"
    depends_on = frozenset({"pattern", "properties", "principal"})

    def list_now(
        self,
        request: ListingRequest,
        applied: TopicsPattern | None = None,
    ) -> TopicListingResult | None:
        return self._result(request) if self.at_once else None

    def _result(self, request: ListingRequest) -> TopicListingResult:
        return TopicListingResult.success(names_of(request.asker))


class Shared(Brokers):
    depends_on = frozenset({"pattern"})


def of(role: str | None, original: str | None = None) -> Asker:
    return Asker(role=role, original_principal=original)


async def estimate(pipeline: Pipeline, asker: Asker) -> int:
    trace = Trace()
    answer = await pipeline.answer(request(asker=asker), trace)
    answer.release()
    taken: int = trace.permits["estimate"]
    return taken


async def test_the_size_for_one_is_not_the_estimate_for_another() -> None:
    async with made(Brokers(at_once=False)) as m:
        for role in ("large", "small"):
            await estimate(m.pipeline, of(role))
        large, small = [await estimate(m.pipeline, of(role)) for role in ("large", "small")]
        assert large > 100 * small
        assert await estimate(m.pipeline, of("proxy", "small")) != small, (
            "another pair of principals learns anew"
        )


async def test_where_all_get_the_same_one_teaches_the_size_for_all() -> None:
    async with made(Shared(at_once=False)) as m:
        await estimate(m.pipeline, of("large"))
        assert await estimate(m.pipeline, of("small")) > 100_000


class Rest:
    """Lists what is behind it, and says that it depends on nothing."""

    @hookimpl
    def broker_core_depends_on(self) -> list[str]:
        return []

    @hookimpl
    def broker_core_version(self) -> str:
        return "1"

    @hookimpl
    async def broker_core_list_topics(self, request: Any) -> Any:
        behind = await request.rest()
        return TopicListingResult.success(behind.selection, filtered=behind.filtered)


@pytest.mark.parametrize("first", ["small", "large", "other"])
async def test_a_plugin_that_hands_on_what_brokers_list_hands_on_nothing_of_others(first: str) -> None:
    async with made(Brokers(at_once=False), {"rest": Rest()}) as m:
        for role in (first, "small", "large", "small", "other"):
            answer = await m.pipeline.answer(request(asker=of(role)))
            assert answer.selection is not None
            assert answer.selection.names.to_pylist() == names_of(of(role))
            answer.release()


async def test_lookups_of_a_topic_that_wait_for_each_other_are_of_one_principal() -> None:
    """The first ones come before it is known that the plugin asks what is behind it."""
    brokers = Brokers(at_once=False)
    async with made(brokers, {"rest": Rest()}) as m:
        brokers.gate.clear()
        roles = ["a", "b", "c", "b", "a", "c"]
        topics = {role: TopicName.parse(names_of(of(role))[0]) for role in roles}
        find = Find(m.pipeline, None)
        tasks = [
            asyncio.create_task(find.partitions(TopicAsker(asker=of(role)), topics[topic]))
            for role in roles
            for topic in ("a", "b", "c")
        ]
        await eventually(lambda: brokers.asked)
        brokers.gate.set()
        found = await asyncio.gather(*tasks)
        seen = [partitions is not None for partitions in found]
        assert seen == [role == topic for role in roles for topic in ("a", "b", "c")]


async def test_a_denial_of_one_is_no_denial_of_another() -> None:
    class Denying(Brokers):
        async def list_topics(self, request: ListingRequest) -> TopicListingResult:
            self.asked.append(request)
            await self.gate.wait()
            if request.asker.role == "denied":
                raise ListingFailed("Client is not authorized")
            return self._result(request)

    brokers = Denying(at_once=False)
    async with made(brokers, {"rest": Rest()}) as m:
        brokers.gate.clear()
        tasks = [
            asyncio.create_task(m.pipeline.answer(request(asker=of(role))))
            for role in ("denied", "a", "denied", "b")
        ]
        await eventually(lambda: brokers.asked)
        brokers.gate.set()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(each, ListingFailed) for each in answers] == [True, False, True, False]
