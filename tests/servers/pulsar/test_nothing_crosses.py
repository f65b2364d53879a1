"""What a plugin keeps of others, and lookups that share one call, cross no principals.

docs/explanation/promises.md#nothing-crosses-principals
"""

from __future__ import annotations

import asyncio
from typing import Any

import pyarrow.compute as pc
import pytest

from broker_core import BoundedCache, ListingRequest, TopicListingResult, hookimpl
from broker_core.client import ServerRefused
from broker_core.errors import ServerError
from broker_core.testing import serve
from broker_core.testing.personas import Persona
from tests.support.eventually import eventually

NAMESPACE = "t/n"
ROLES = ("ann", "bob")
CATALOG = [f"persistent://{NAMESPACE}/catalog-{number}" for number in range(4)]


class OfRole:
    """Lists what is for the role that asks."""

    @hookimpl
    def broker_core_depends_on(self) -> set[str]:
        return {"principal"}

    @hookimpl
    def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult:
        return TopicListingResult.success([f"persistent://{NAMESPACE}/secret-{request.asker.role}"])


class Cache:
    """Keeps what is behind it; says itself that it depends on nothing."""

    def __init__(self) -> None:
        self.kept: BoundedCache[Any, Any] = BoundedCache(10_000_000)
        self.hits = 0

    @hookimpl
    def broker_core_depends_on(self) -> set[str]:
        return set()

    @hookimpl
    async def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult:
        key = request.key(pattern=None)
        selection = self.kept.get(key)
        if selection is None:
            selection = (await request.rest(pattern=None)).selection
            self.kept.put(key, selection, selection.listing.nbytes)
        else:
            self.hits += 1
        return TopicListingResult.success(selection)


async def test_the_cache_is_hit_by_the_same_principal_alone() -> None:
    cache = Cache()
    async with serve({"cache": cache, "role": OfRole()}, topics=CATALOG) as server:
        for role in ("ann", "bob", "ann", "bob"):
            answer = await server.list(NAMESPACE, role=role)
            assert answer.topics == [f"persistent://{NAMESPACE}/secret-{role}"]
    assert cache.hits == 2
    async with serve({"cache": Cache()}, topics=CATALOG) as server:
        for role in ROLES:  # nothing behind it depends on who asks
            assert sorted((await server.list(NAMESPACE, role=role)).topics) == CATALOG
        assert server.broker.pipeline.dispatcher.describe()[0]["depends_on"] == []


@pytest.mark.parametrize("kind", ["lister", "mask"])
async def test_lookups_of_a_plugin_that_declares_too_little(kind: str) -> None:
    """Equal lookups share one call of a plugin: before it is known that it reads the role, and afterwards."""
    arrived = asyncio.Event()

    class TooLittle:
        @hookimpl
        def broker_core_depends_on(self) -> set[str]:
            return set()

    class Lists(TooLittle):
        @hookimpl
        async def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult:
            await arrived.wait()
            return TopicListingResult.success([f"persistent://{NAMESPACE}/secret-{request.asker.role}"])

    class Masks(TooLittle):
        @hookimpl
        async def broker_core_visible(self, request: ListingRequest, topics: Any) -> Any:
            await arrived.wait()
            return pc.ends_with(topics, pattern=f"-{request.asker.role}")

    plugin = Lists() if kind == "lister" else Masks()
    secrets = [f"persistent://{NAMESPACE}/secret-{role}" for role in ROLES]
    async with serve({"too-little": plugin}, topics=secrets, check_masks=False, check_reads=False) as server:

        async def may_see(role: str, of: str) -> bool:
            try:
                topic = f"persistent://{NAMESPACE}/secret-{of}"
                return await server.partitions(topic, role=role, auto_create=False) == 0
            except ServerRefused as refused:
                return refused.code is not ServerError.TopicNotFound

        for role in ROLES:
            await server._client(Persona(role))  # so that they ask at once
        by_name = server.broker.pipeline.topic_questions
        shared = by_name._listings if kind == "lister" else by_name._masks._runs
        questions = [(role, of) for role in ROLES for of in ROLES] * 3
        for _ in range(2):
            asking = asyncio.gather(*(may_see(*question) for question in questions))
            if not arrived.is_set():
                await eventually(lambda: sum(run.size for run in shared._next.values()) == len(questions) - 1)
                arrived.set()
            assert await asking == [role == of for role, of in questions]
