"""Changes of topics for HTTP clients: who may make them, and what they wait for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from broker_core.access.access import Access, Refused
from broker_core.access.asker import Asker
from broker_core.access.authorization import Authorization
from broker_core.catalog import (
    AsyncCatalog,
    PartitionedRefused,
    PreconditionFailed,
    SqliteCatalog,
    TopicExists,
    TopicInvalid,
    TopicMissing,
    TopicRecord,
)
from broker_core.errors import Cause, ListingFailed
from broker_core.names import TopicName
from broker_core.servers.http.topic_writes import TopicWrites
from broker_core.settings import AuthorizationSettings
from tests.support.pipelines import made
from tests.support.plugins import PluginOf

X = TopicName.parse("persistent://acme/shop/x")
P = TopicName.parse("persistent://acme/shop/p")
ASKER = Asker("alice", transport="http")


@asynccontextmanager
async def writing(
    folder: Path,
    *,
    allowed: bool = True,
    gate: Callable[..., object] | None = None,
    rules: AuthorizationSettings | None = None,
) -> AsyncIterator[TopicWrites]:
    plugins = None if gate is None else {"gate": PluginOf(authorize=gate)}
    async with made(plugins=plugins) as m:
        if rules is not None:
            m.pipeline.authorization = Authorization(rules, authentication=True)
        with SqliteCatalog(folder / "topics.sqlite") as catalog:
            topics = AsyncCatalog(catalog)
            writes = TopicWrites(topics, catalog, m.pipeline, allowed=allowed)
            try:
                yield writes
            finally:
                await asyncio.to_thread(topics.close)
                await asyncio.to_thread(writes.close)


async def test_a_topic_from_its_creation_to_its_end(tmp_path: Path) -> None:
    async with writing(tmp_path) as writes:
        made_x = await writes.create(ASKER, X, {"k": "v"})
        assert made_x.after == await writes.catalog.topic(X)
        with pytest.raises(TopicExists):
            await writes.create(ASKER, X)
        merged = await writes.merge(ASKER, X, {"k": None, "new": "1"})
        assert merged.after is not None
        assert merged.after.properties == {"new": "1"}
        replaced = await writes.put(ASKER, X, 0, {}, may_replace=True)
        assert replaced.version.number == 3
        assert (await writes.delete(ASKER, X)).after is None
        with pytest.raises(TopicMissing):
            await writes.delete(ASKER, X)
        with pytest.raises(TopicInvalid):
            await writes.create(ASKER, X, {"k": "v" * 100_000})


async def test_a_partitioned_topic_grows_and_goes_as_a_whole(tmp_path: Path) -> None:
    async with writing(tmp_path) as writes:
        await writes.create_partitioned(ASKER, P, 2)
        grown = await writes.grow(ASKER, P, 3)
        assert grown.after is not None
        assert grown.after.partitions == 3
        with pytest.raises(PartitionedRefused):
            await writes.delete(ASKER, P)
        await writes.delete(ASKER, TopicName.parse(f"{P}-partition-1"))
        await writes.create(ASKER, TopicName.parse(f"{P}-partition-1"))
        await writes.delete_partitioned(ASKER, P)
        assert await writes.catalog.topic(P) is None


async def test_a_requirement_is_about_what_is_there(tmp_path: Path) -> None:
    def refuse(topic: TopicRecord | None) -> None:
        assert topic is None
        raise PreconditionFailed("there is none")

    async with writing(tmp_path) as writes:
        with pytest.raises(PreconditionFailed):
            await writes.put(ASKER, X, 0, {}, may_replace=True, require=refuse)
        with pytest.raises(PreconditionFailed):
            await writes.delete(ASKER, X, require=refuse)


async def test_rules_and_gates_are_asked_about_each(tmp_path: Path) -> None:
    asked: list[Access] = []

    def gate(access: Access) -> Refused | None:
        asked.append(access)
        return Refused("not this one") if access.topic == P else None

    rules = AuthorizationSettings.model_validate(
        {"rules": [{"roles": ["alice"], "namespaces": ["acme/shop"], "actions": ["*"]}]}
    )
    async with writing(tmp_path, gate=gate, rules=rules) as writes:
        await writes.create(ASKER, X)
        assert [(each.action, each.namespace, each.topic) for each in asked] == [("admin", X.namespace, X)]
        with pytest.raises(ListingFailed, match="not this one"):
            await writes.create(ASKER, P)
        with pytest.raises(ListingFailed, match="no right to") as denied:
            await writes.delete(Asker("bob", transport="http"), X)
        assert denied.value.cause is Cause.DENIED
        assert await writes.catalog.topic(X) is not None


async def test_writes_may_be_off(tmp_path: Path) -> None:
    async with writing(tmp_path, allowed=False) as writes:
        with pytest.raises(ListingFailed, match="writes = false") as off:
            await writes.create(ASKER, X)
        assert off.value.cause is Cause.NOT_ALLOWED
        assert await writes.catalog.topic(X) is None
