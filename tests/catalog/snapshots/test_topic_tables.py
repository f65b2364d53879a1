"""A table is of exactly the topics of its listing, whatever was committed meanwhile."""

from __future__ import annotations

import gc

from broker_core.catalog.catalog_lister import CatalogLister
from broker_core.catalog.snapshots.topic_tables import TopicTables
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.listing.listing import Listing
from broker_core.listing.topic_table import TopicTable
from broker_core.memory.permits import Permits
from broker_core.names import TopicName
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.settings import LimitsSettings
from tests.catalog.listers import NAMESPACE, topic
from tests.support.eventually import eventually
from tests.support.narrowed import of_type, present


async def listing(lister: CatalogLister) -> Listing:
    result = await lister.list_topics(ListingRequest(NAMESPACE))
    return of_type(result.topics, Listing)


async def table(tables: TopicTables, lister: CatalogLister) -> TopicTable:
    found = present(await tables.of(await listing(lister)))
    return found[0]


def rows(found: TopicTable) -> dict[str, tuple[int, bytes]]:
    every = [chunk.row(row) for chunk in found.chunks for row in range(len(chunk))]
    return {row.name.decode(): (row.partitions, row.topic_id) for row in every}


async def test_a_table_is_moved_by_the_change_log(catalog: SqliteCatalog) -> None:
    lister = CatalogLister(catalog, Permits())
    tables = lister.topic_tables()
    assert (await table(tables, lister)).size == 0
    one = catalog.create(topic("one"), partitions=2)
    assert rows(await table(tables, lister)) == {"one": (2, one.topic_id.bytes)}
    two = catalog.create(topic("two"))
    catalog.create(topic("x y"))
    catalog.create(TopicName("non-persistent", NAMESPACE, "other"))
    moved = await table(tables, lister)
    assert rows(moved) == {"one": (2, one.topic_id.bytes), "two": (1, two.topic_id.bytes)}
    assert moved.left_out == 1
    now = await listing(lister)
    assert await tables.of(now) == (moved, True)
    lister.close()


async def test_a_name_that_was_created_again_has_another_id(catalog: SqliteCatalog) -> None:
    lister = CatalogLister(catalog, Permits())
    tables = lister.topic_tables()
    before = catalog.create(topic("one"), partitions=2)
    assert rows(await table(tables, lister)) == {"one": (2, before.topic_id.bytes)}
    catalog.delete(topic("one"))
    after = catalog.create(topic("one"), partitions=2)
    assert rows(await table(tables, lister)) == {"one": (2, after.topic_id.bytes)}
    assert before.topic_id != after.topic_id
    lister.close()


async def test_a_listing_of_before_has_its_own_table_or_none(catalog: SqliteCatalog) -> None:
    lister = CatalogLister(catalog, Permits())
    tables = lister.topic_tables()
    catalog.create(topic("one"))
    await table(tables, lister)
    catalog.create(topic("two"))
    old = await listing(lister)
    catalog.create(topic("three"))
    # The log leads to the version that was listed, though the catalogue is further on.
    found = present(await tables.of(old))
    assert set(rows(found[0])) == {"one", "two"}
    fresh = lister.topic_tables()
    assert await fresh.of(old) is None  # it reads what is there now, which is another listing
    assert set(rows(await table(fresh, lister))) == {"one", "two", "three"}
    assert await fresh.of(old) is None  # which the lister no longer has
    lister.close()


async def test_many_changes_are_read_anew(catalog: SqliteCatalog) -> None:
    lister = CatalogLister(catalog, Permits())
    tables = lister.topic_tables()
    catalog.create(topic("one"))
    await table(tables, lister)
    for number in range(60):
        catalog.create(topic(f"t{number}"))
    assert (await table(tables, lister)).size == 61
    lister.close()


async def test_without_room_a_table_is_made_for_each_who_asks(catalog: SqliteCatalog) -> None:
    permits = Permits(LimitsSettings(snapshots=64))
    lister = CatalogLister(catalog, permits)
    tables = lister.topic_tables()
    catalog.create(topic("one"))
    asked = await listing(lister)
    made = [await tables.of(asked) for _ in range(2)]
    first, second = (each for each in made if each is not None)
    assert first[0] is not second[0]
    assert rows(first[0]) == rows(second[0])
    assert (first[1], second[1]) == (False, False)
    lister.close()


async def test_a_namespace_that_makes_room_takes_its_table_along(catalog: SqliteCatalog) -> None:
    permits = Permits()
    lister = CatalogLister(catalog, permits)
    tables = lister.topic_tables()
    catalog.create(topic("one"))
    await table(tables, lister)
    assert permits.snapshots.acquired > 1024
    lister.close()  # lets go of all

    def all_is_free() -> bool:
        gc.collect()
        permits.leases.settle()
        return permits.snapshots.acquired == 0

    # The thread that has read the topics lets go of them when it ends.
    await eventually(all_is_free)
