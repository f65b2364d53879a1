"""Names that are deleted and made anew between two looks, in what the log tells of two answers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from broker_core.catalog import CatalogLogReader, SqliteCatalog
from broker_core.listing.listing import Listing, Selection
from broker_core.names import Mode
from broker_core.service.following import recreated_topics
from broker_core.service.following.recreated_topics import RecreatedTopics, names_in
from tests.support.followers import NAMESPACE, topic


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
    assert told(recreated.of(ALL)) == []
    catalog.delete(topic("one"))
    catalog.create(topic("one"))
    catalog.delete(topic("many"))
    catalog.create(topic("many"), partitions=3)
    await recreated.look()
    assert told(recreated.of(ALL)) == ["many-partition-0", "many-partition-1", "one"]
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


async def test_what_another_reader_was_told_is_known_by_its_text(
    catalog: SqliteCatalog, recreated: RecreatedTopics
) -> None:
    first = recreated.reported
    catalog.delete(topic("one"))
    await recreated.look()
    catalog.create(topic("one"))  # the answer has it already
    assert told(recreated.of(ALL)) == []
    between = recreated.reported
    assert await recreated.missed(first) == await recreated.missed(between) == [str(topic("one"))]
    await recreated.look()
    assert told(recreated.of(ALL)) == ["one"]
    assert await recreated.missed(recreated.reported) == []
    assert told(names_in(answer("one"), [str(topic("one")), str(topic("two"))])) == ["one"]


@pytest.mark.parametrize(
    "text", ["", "7", "a:b~c~1", "x:1~~", "x:1~~-1", "x:1~~" + "9" * 19, "x" * 300 + ":1~~1", "other:1~~1"]
)
async def test_nobody_knows_what_a_reader_of_another_text_was_told(
    text: str, recreated: RecreatedTopics
) -> None:
    assert await recreated.missed(text) is None


async def test_after_a_copy_was_restored_nobody_knows(
    catalog: SqliteCatalog, recreated: RecreatedTopics
) -> None:
    version, stamp, number = recreated.reported.split("~")
    assert stamp
    assert await recreated.missed(f"{version}~{stamp}~{number}") == []
    assert await recreated.missed(f"{version}~{stamp[::-1]}x~{number}") is None


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
