"""Names that are deleted and made anew between two looks, in what the log tells of two answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker_core.catalog import CatalogLogReader, SqliteCatalog
from broker_core.listing.listing import Listing, Selection
from broker_core.names import Mode, NamespaceName, TopicName
from broker_core.servers.http.api.events import recreated_topics
from broker_core.servers.http.api.events.recreated_topics import RecreatedTopics

NAMESPACE = NamespaceName("a", "b")


def topic(local: str) -> TopicName:
    return TopicName("persistent", NAMESPACE, local)


def answer(*locals_: str) -> Selection:
    return Listing.from_names(NAMESPACE, Mode.PERSISTENT, [str(topic(each)) for each in locals_]).all()


@pytest.fixture
async def catalog(tmp_path: Path) -> AsyncIterator[SqliteCatalog]:
    with SqliteCatalog(tmp_path / "c.sqlite") as opened:
        for name in ("one", "two"):
            opened.create(topic(name))
        opened.create(topic("many"), partitions=2)
        yield opened


@pytest.fixture
async def recreated(catalog: SqliteCatalog) -> AsyncIterator[RecreatedTopics]:
    log = CatalogLogReader(catalog)
    found = RecreatedTopics(log, NAMESPACE)
    await found.look()
    assert told(found.of(ALL)) == []
    yield found
    log.close()


ALL = answer("one", "two", "many-partition-0", "many-partition-1")


def told(names: Selection | None) -> list[str] | None:
    return None if names is None else sorted(each.rpartition("/")[2] for each in names.names.to_pylist())


async def test_names_of_other_topics_are_told_once(
    catalog: SqliteCatalog, recreated: RecreatedTopics
) -> None:
    catalog.set_properties(topic("one"), {"k": "v"})
    catalog.create(topic("new"))
    await recreated.look()
    assert (told(recreated.of(ALL)), recreated.number) == ([], 0)
    catalog.delete(topic("one"))
    catalog.create(topic("one"))
    catalog.delete(topic("many"))
    catalog.create(topic("many"), partitions=3)
    await recreated.look()
    assert told(recreated.of(ALL)) == ["many-partition-0", "many-partition-1", "one"]
    assert recreated.number == catalog.version(NAMESPACE).number
    await recreated.look()
    assert told(recreated.of(ALL)) == []


async def test_a_deletion_may_be_of_the_round_before(
    catalog: SqliteCatalog, recreated: RecreatedTopics
) -> None:
    catalog.delete(topic("one"))
    await recreated.look()
    catalog.create(topic("one"))  # so that the answer has it, as the one before did
    assert told(recreated.of(ALL)) == []
    await recreated.look()
    assert told(recreated.of(ALL)) == ["one"]


async def test_what_an_answer_lacks_is_told_by_the_difference(
    catalog: SqliteCatalog, recreated: RecreatedTopics
) -> None:
    catalog.delete(topic("one"))
    catalog.create(topic("one"))
    await recreated.look()
    assert told(recreated.of(answer("two"))) == []


async def test_more_than_can_be_told_is_none(
    catalog: SqliteCatalog, recreated: RecreatedTopics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recreated_topics, "_MOST", 1)
    catalog.delete(topic("many"))
    catalog.create(topic("many"), partitions=2)
    await recreated.look()
    assert told(recreated.of(ALL)) is None
    await recreated.look()
    assert told(recreated.of(ALL)) == []
