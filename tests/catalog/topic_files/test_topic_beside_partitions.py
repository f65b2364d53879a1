from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from broker_core.catalog import SqliteCatalog
from broker_core.catalog.catalog_errors import PairRefused, PartitionRefused, TopicExists
from broker_core.catalog.topic_files.import_file import is_pair
from broker_core.names import NamespaceName, TopicName
from broker_core.names.listed_names import ListedNames
from broker_core.testing import serve
from tests.catalog.filled import bring


def topic(name: str) -> TopicName:
    return TopicName("persistent", NamespaceName("a", "b"), name)


@pytest.mark.parametrize(
    ("listed", "pair"), [("*", False), ("0-2", False), ("", False), ("*,0", True), ("*,3-4,7", True)]
)
def test_a_pair_has_both(listed: str, pair: bool) -> None:
    assert is_pair(listed) is pair


def test_the_error_names_both() -> None:
    assert "Topic 'x' and partition 'x-partition-3' cannot both" in str(
        PairRefused.of("x", ListedNames.of(3))
    )


def test_one_is_imported_and_never_created(tmp_path: Path) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite") as catalog:
        catalog.create(topic("x"), properties={"region": "eu"})
        with pytest.raises(PartitionRefused):
            catalog.create(topic("x-partition-0"), properties={"region": "eu"})
        bring(catalog, {"name": "y-partition-0", "properties": {"region": "us"}})
        with pytest.raises(TopicExists):
            catalog.create(topic("y"), properties={"region": "us"})


async def test_a_file_that_has_one_lists_both_and_selects_each_by_its_own_properties(tmp_path: Path) -> None:
    """As another program may have written it: the partition in a row of its own."""
    path = tmp_path / "c.sqlite"
    settings = {"catalog": {"path": path, "property_keys": ["region"]}}
    async with serve(topics=["persistent://a/b/x"], settings=settings) as server:
        with SqliteCatalog(path) as catalog:
            connection = catalog.connect()
            connection.execute('UPDATE topics SET properties = \'{"region":"eu"}\'')
            connection.execute(
                "INSERT INTO topics SELECT namespace, domain, 'x-partition-0', listed, randomblob(16),"
                ' \'{"region":"us"}\', created, NULL, NULL FROM topics'
            )
            connection.close()

            async def check(more: list[str]) -> None:
                x = "persistent://a/b/x"
                assert (await server.list("a/b")).topics == [*more, x, f"{x}-partition-0"]
                assert (await server.list("a/b", properties={"region": "eu"})).topics == [x]
                us = await server.list("a/b", properties={"region": "us"})
                assert us.topics == [f"{x}-partition-0"]

            await check([])
            await asyncio.to_thread(catalog.create, topic("a"))  # moves the snapshot
            await check(["persistent://a/b/a"])
            assert catalog.topic(topic("x-partition-0")) is not None
            catalog.delete(topic("x-partition-0"))
            assert (await server.list("a/b", properties={"region": "us"})).topics == []
