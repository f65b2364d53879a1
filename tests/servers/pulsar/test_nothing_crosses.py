"""Nothing crosses principals: caches, unions, masks and listers in random orders, served for real.

docs/explanation/promises.md#nothing-crosses-principals

What a client gets is compared with the answers of the same plugins if nothing is kept.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker_core import (
    BoundedCache,
    ListingBuilder,
    ListingRequest,
    Mode,
    TopicListingResult,
    hookimpl,
)
from broker_core.client import ServerRefused
from broker_core.errors import ServerError
from broker_core.testing import serve
from broker_core.testing.personas import Persona
from tests.support.eventually import eventually

NAMESPACE = "t/n"
ROLES = ("ann", "bob")
REGIONS = ("eu", "us")
CATALOG = [f"persistent://{NAMESPACE}/catalog-{region}-{n}" for region in REGIONS for n in range(4)]


@dataclass
class World:
    """What the plugins know: it changes between questions, and its number is the version of everything."""

    number: int = 1
    secrets: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ROLES, 3))
    hidden: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ROLES, 0))

    def of_role(self, role: str | None) -> list[str]:
        return [f"persistent://{NAMESPACE}/secret-{role}-{n}" for n in range(self.secrets.get(role or "", 0))]

    def shows(self, role: str | None, name: str) -> bool:
        return not name.endswith(f"-{self.hidden.get(role or '', 0)}")


class Base:
    def __init__(self, world: World, versioned: bool) -> None:
        self.world = world
        if not versioned:
            # pluggy finds hooks by their attributes.
            self.__dict__["broker_core_version"] = None

    @hookimpl
    async def broker_core_version(self, request: ListingRequest) -> str:
        return str(self.world.number)


class OfRole(Base):
    """Lists what is for the role that asks; passes to everybody else."""

    @hookimpl
    def broker_core_depends_on(self) -> set[str]:
        return {"principal"}

    @hookimpl
    async def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult | None:
        topics = self.world.of_role(request.asker.role)
        return TopicListingResult.success(topics) if topics and request.mode is Mode.PERSISTENT else None


class OfRegion(Base):
    """Passes, but for a region that is asked for."""

    @hookimpl
    def broker_core_depends_on(self) -> set[str]:
        return {"property:region"}

    @hookimpl
    async def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult | None:
        region = request.properties.get("region")
        if region is None:
            return None
        return TopicListingResult.success([name for name in CATALOG if f"-{region}-" in name])


class Cache(Base):
    """Keeps what is behind it, until the world changes; says itself that it depends on nothing."""

    def __init__(self, world: World, versioned: bool) -> None:
        super().__init__(world, versioned)
        self.kept: BoundedCache[Any, Any] = BoundedCache(10_000_000)
        self.hits = 0

    @hookimpl
    def broker_core_depends_on(self) -> set[str]:
        return set()

    @hookimpl
    async def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult:
        key = (self.world.number, request.key(pattern=None))
        selection = self.kept.get(key)
        if selection is None:
            selection = (await request.rest(pattern=None)).selection
            self.kept.put(key, selection, selection.listing.nbytes)
        else:
            self.hits += 1
        return TopicListingResult.success(selection)


class Union(Base):
    """What is behind it, and what is for the role that asks."""

    @hookimpl
    def broker_core_depends_on(self) -> set[str]:
        return {"principal"}

    @hookimpl
    async def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult:
        behind = await request.rest()
        builder = ListingBuilder(request)
        builder.add(behind.selection.names)
        builder.add(self.world.of_role(request.asker.role))
        return TopicListingResult.success(builder.finish())


class Mask(Base):
    """Hides one number from each role."""

    @hookimpl
    def broker_core_depends_on(self) -> set[str]:
        return {"principal"}

    @hookimpl
    def broker_core_visible(self, request: ListingRequest, topics: Any) -> Any:
        number = self.world.hidden.get(request.asker.role or "", 0)
        return pc.invert(pc.ends_with(topics, pattern=f"-{number}"))


KINDS = {"role": OfRole, "region": OfRegion, "cache": Cache, "union": Union, "mask": Mask}


def truth(world: World, chain: list[str], role: str, region: str | None, pattern: str | None) -> list[str]:
    """What the chain says, computed by hand: no cache in it."""

    def listed(behind: list[str]) -> set[str]:
        for number, kind in enumerate(behind):
            if kind == "role" and world.of_role(role):
                return set(world.of_role(role))
            if kind == "region" and region is not None:
                return {name for name in CATALOG if f"-{region}-" in name}
            if kind == "cache":
                return listed(behind[number + 1 :])
            if kind == "union":
                return listed(behind[number + 1 :]) | set(world.of_role(role))
        return set(CATALOG)

    names = listed(chain)
    if pattern is not None:
        names = {name for name in names if f"/{pattern}-" in name}
    if "mask" in chain:
        names = {name for name in names if world.shows(role, name)}
    return sorted(names)


QUESTIONS = st.lists(
    st.one_of(
        st.tuples(
            st.just("ask"),
            st.sampled_from(ROLES),
            st.sampled_from([None, *REGIONS]),
            st.sampled_from([None, "catalog", "secret"]),
        ),
        st.tuples(st.just("secrets"), st.sampled_from(ROLES), st.integers(0, 4)),
        st.tuples(st.just("hidden"), st.sampled_from(ROLES), st.integers(0, 4)),
    ),
    min_size=6,
    max_size=24,
)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    chain=st.permutations(list(KINDS)),
    versioned=st.frozensets(st.sampled_from(list(KINDS))),
    stale=st.booleans(),
    questions=QUESTIONS,
)
def test_nothing_crosses_in_any_order(
    chain: list[str], versioned: frozenset[str], stale: bool, questions: list[Any]
) -> None:
    asyncio.run(_run(list(chain), versioned, stale, questions))


async def _run(chain: list[str], versioned: frozenset[str], stale: bool, questions: list[Any]) -> None:
    world = World()
    plugins = {kind: KINDS[kind](world, kind in versioned) for kind in chain}
    tables = {kind: {"on_failure": "stale" if stale else "error"} for kind in chain}
    async with serve(plugins, topics=CATALOG, settings={"plugins": tables}) as server:
        for question in questions:
            if question[0] == "ask":
                _, role, region, pattern = question
                answer = await server.list(
                    NAMESPACE,
                    role=role,
                    properties=None if region is None else {"region": region},
                    pattern=None if pattern is None else f"{NAMESPACE}/{pattern}-.*",
                )
                assert sorted(answer.topics) == truth(world, chain, role, region, pattern), question
            else:
                what, role, number = question
                getattr(world, what)[role] = number
                world.number += 1


async def test_the_cache_is_hit_by_the_same_principal_alone() -> None:
    world = World()
    cache = Cache(world, versioned=False)
    async with serve({"cache": cache, "role": OfRole(world, versioned=True)}, topics=CATALOG) as server:
        for role in ("ann", "bob", "ann", "bob"):
            answer = await server.list(NAMESPACE, role=role)
            assert sorted(answer.topics) == world.of_role(role)
    assert cache.hits == 2
    async with serve({"cache": Cache(world, versioned=False)}, topics=CATALOG) as server:
        for role in ROLES:  # nothing behind it depends on who asks
            assert sorted((await server.list(NAMESPACE, role=role)).topics) == sorted(CATALOG)
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
