from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from broker_core.access.access import Access, Refused
from broker_core.catalog import (
    AsyncCatalog,
    CatalogBusy,
    Edit,
    SqliteCatalog,
    TopicExists,
    TopicWrite,
    creation,
)
from broker_core.names import TopicName
from broker_core.servers.kafka.topic_changes import TopicChanges
from tests.support.kafka_topics import NAMESPACE, caller, create
from tests.support.pipelines import made
from tests.support.plugins import PluginOf


@asynccontextmanager
async def changing(
    catalog: SqliteCatalog, gate: Callable[[Access], object] | None = None
) -> AsyncIterator[TopicChanges]:
    plugins = None if gate is None else {"gate": PluginOf(authorize=gate)}
    topics = AsyncCatalog(catalog)
    async with made(plugins=plugins) as m:
        yield TopicChanges(topics, m.pipeline)
    await asyncio.to_thread(topics.close)


def _creation(name: str) -> Edit:
    topic = TopicName("persistent", NAMESPACE, name)
    return Edit(topic, creation(topic, 1))


async def test_the_changes_of_a_request_are_one_version_and_each_stands_for_itself(
    catalog: SqliteCatalog,
) -> None:
    create(catalog, "there", 1)
    async with changing(catalog) as changes:
        done = await changes.change(caller(), [_creation(name) for name in ("a", "there", "b")])
    first, refused, last = done
    assert isinstance(first, TopicWrite)
    assert isinstance(refused, TopicExists)
    assert isinstance(last, TopicWrite)
    assert first.version == last.version == catalog.version(NAMESPACE)


async def test_nothing_to_change_asks_for_no_turn(catalog: SqliteCatalog) -> None:
    before = catalog.version(NAMESPACE)
    async with changing(catalog) as changes:
        assert await changes.change(caller(), [], 0) == []
    assert catalog.version(NAMESPACE) == before


async def test_a_catalogue_that_others_write_fails_all_of_a_request_in_its_time(
    catalog: SqliteCatalog,
) -> None:
    other = catalog.connect()
    other.execute("BEGIN IMMEDIATE")
    async with changing(catalog) as changes:
        done = await changes.change(caller(), [_creation("a"), _creation("b")], 50)
        assert [type(each) for each in done] == [CatalogBusy, CatalogBusy]
        other.execute("ROLLBACK")
        other.close()
    assert catalog.taken_names(NAMESPACE, ["a", "b"]) == {}


async def test_gates_are_asked_about_each_topic(catalog: SqliteCatalog) -> None:
    asked: list[Access] = []

    def gate(access: Access) -> Refused | None:
        asked.append(access)
        return Refused("not this one") if access.topic is not None and access.topic.local == "b" else None

    async with changing(catalog, gate) as changes:
        denied = await changes.denied(caller("ann"), ["a", "b"])
    assert {name: (error.code, error.message) for name, error in denied.items()} == {
        "b": (29, "not this one")
    }
    assert [(each.action, str(each.topic)) for each in asked] == [
        ("admin", "persistent://public/default/a"),
        ("admin", "persistent://public/default/b"),
    ]


async def test_names_are_taken_by_topics_that_nobody_may_see(catalog: SqliteCatalog) -> None:
    create(catalog, "a.b", 1)
    async with changing(catalog) as changes:
        assert await changes.taken(caller(), ["a_b", "c"]) == {"a_b": "a.b"}
