"""What a lister lists, and when it reads: after changes, with properties, for many at once."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest

from broker_core.catalog import catalog_lister as lister_module
from broker_core.catalog import move_or_read_snapshot
from broker_core.catalog.catalog_lister import CatalogLister
from broker_core.catalog.snapshots.name_changes import LoggedNames, read_name_changes
from broker_core.catalog.store.change_log_writer import LogBounds
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.errors import ListingFailed, ServerError
from broker_core.guards import ShrinkGuard
from broker_core.listing.listing import Listing, Selection, part_of
from broker_core.memory.permit_budget import PermitBudget
from broker_core.memory.permits import Permits
from broker_core.names import Mode, NamespaceName, TopicName
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.plugin_api.listing_result import DefaultLister, TopicListingResult
from broker_core.settings import ShrinkGuardSettings
from tests.catalog.listers import NAMESPACE, QUESTION, Reads, bring, names_of, put_another, settled, topic
from tests.support.catalogue_topics import create_topics
from tests.support.eventually import eventually
from tests.support.narrowed import of_type, present


async def test_changes_are_read_once_also_where_the_move_needs_more_permits(
    catalog: SqliteCatalog, lister: CatalogLister, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create(topic("a"))
    catalog.create(topic("b"))
    await lister.list_topics(ListingRequest(NAMESPACE))
    read: list[int] = []

    def reading(*arguments: Any, **keywords: Any) -> Any:
        changes = of_type(read_name_changes(*arguments, **keywords), LoggedNames)
        read.append(len(changes))
        return changes

    monkeypatch.setattr(move_or_read_snapshot, "read_name_changes", reading)
    monkeypatch.setattr(lister_module, "_ROOM", 1)
    catalog.create(topic("c"))
    assert sorted(names_of(await lister.list_topics(ListingRequest(NAMESPACE)))) == ["a", "b", "c"]
    assert (read, reads.moved) == ([1], 1)


async def test_it_is_a_default_lister(lister: CatalogLister) -> None:
    default: DefaultLister = lister
    assert default.name == "catalog"


async def test_the_first_listing_reads_and_the_next_takes_no_waiting(
    catalog: SqliteCatalog, lister: CatalogLister, reads: Reads
) -> None:
    bring(catalog, {"name": "b"}, {"name": "a", "partitions": 2}, {"name": "__change_events"})
    assert lister.list_now(QUESTION) is None
    first = await lister.list_topics(QUESTION)
    assert names_of(first) == ["a-partition-0", "a-partition-1", "b"]
    assert not first.filtered
    assert first.version == str(catalog.version(NAMESPACE))
    again = present(lister.list_now(QUESTION))
    assert again.topics is first.topics
    assert reads.loaded == [Mode.PERSISTENT]


async def test_a_namespace_that_never_was_lists_as_empty_at_once(
    catalog: SqliteCatalog, lister: CatalogLister, reads: Reads
) -> None:
    question = ListingRequest(NamespaceName("no", "where"), properties={"region": "eu"})
    for result in (lister.list_now(question), await lister.list_topics(question)):
        assert result is not None
        assert names_of(result) == []
        assert result.version == f"{catalog.catalog_id}:0"
    assert reads.loaded == []


async def test_the_next_listing_sees_every_change_without_reading_anew(
    catalog: SqliteCatalog, lister: CatalogLister, reads: Reads
) -> None:
    bring(catalog, {"name": "a"})
    old = await lister.list_topics(QUESTION)
    create_topics(catalog.path, topic("b"))
    assert lister.list_now(QUESTION) is None
    new = await lister.list_topics(QUESTION)
    assert names_of(new) == ["a", "b"]
    assert names_of(old) == ["a"], "who has the old listing keeps it"
    catalog.delete(topic("a"))
    assert names_of(await lister.list_topics(QUESTION)) == ["b"]
    assert (reads.loaded, reads.moved) == ([Mode.PERSISTENT], 2)


async def test_a_listing_that_is_asked_for_as_a_read_of_an_older_state_ends_does_not_hold_the_loop(
    catalog: SqliteCatalog, lister: CatalogLister, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring(catalog, {"name": "a"})
    late: list[asyncio.Task[TopicListingResult]] = []
    keep, current = lister._kept.keep, lister._current
    looks = 0

    def keeping(*arguments: Any) -> None:
        """The last step of a read: a change, and a question that runs before the loop tells of the read's end."""
        keep(*arguments)
        if not late:
            catalog.create(topic("b"))
            late.append(asyncio.get_running_loop().create_task(lister.list_topics(QUESTION)))

    def looking(key: Any) -> Any:
        nonlocal looks
        looks += 1
        assert looks < 100, "the ended read was awaited again and again, without a pause for the event loop"
        return current(key)

    monkeypatch.setattr(lister._kept, "keep", keeping)
    monkeypatch.setattr(lister, "_current", looking)
    assert names_of(await lister.list_topics(QUESTION)) == ["a"]
    assert names_of(await late[0]) == ["a", "b"]
    assert lister._reads == {}


async def test_a_change_of_another_namespace_costs_one_look(
    catalog: SqliteCatalog, lister: CatalogLister, reads: Reads
) -> None:
    bring(catalog, {"name": "a"})
    await lister.list_topics(QUESTION)
    bring(catalog, {"name": "x"}, namespace=NamespaceName("other", "space"))
    assert lister.list_now(QUESTION) is not None
    assert len(reads.loaded) == 1


async def test_where_the_log_does_not_reach_it_reads_anew(
    tmp_path: Path, permits: Permits, reads: Reads
) -> None:
    with SqliteCatalog(tmp_path / "c.sqlite", log=LogBounds(rows=2)) as catalog:
        lister = CatalogLister(catalog, permits)
        bring(catalog, {"name": "a"})
        await lister.list_topics(QUESTION)
        bring(catalog, *({"name": f"t{number}"} for number in range(5)))
        assert len(names_of(await lister.list_topics(QUESTION))) == 6
        assert (len(reads.loaded), reads.moved) == (2, 0)
        lister.close()


async def test_properties_select_and_others_are_ignored_and_counted(
    catalog: SqliteCatalog, permits: Permits
) -> None:
    bring(
        catalog,
        {"name": "a", "partitions": 2, "properties": {"region": "eu", "team": "x"}},
        {"name": "b", "properties": {"region": "eu", "java": "8"}},
        {"name": "c"},
    )
    ignored: list[int] = []
    lister = CatalogLister(catalog, permits, property_keys=("region", "team"), on_ignored=ignored.append)

    async def ask(properties: dict[str, str]) -> list[str]:
        question = ListingRequest(NAMESPACE, properties=properties)
        answer = lister.list_now(question) or await lister.list_topics(question)
        return names_of(answer)

    assert await ask({"region": "eu"}) == ["a-partition-0", "a-partition-1", "b"]
    assert await ask({"region": "eu", "team": "x"}) == ["a-partition-0", "a-partition-1"]
    assert await ask({"region": "us"}) == []
    assert ignored == []
    assert await ask({"region": "eu", "java": "17", "os": "linux"}) == ["a-partition-0", "a-partition-1", "b"]
    assert await ask({"java": "8"}) == ["a-partition-0", "a-partition-1", "b", "c"]
    assert ignored == [2, 1]
    lister.close()


async def test_a_large_selection_is_made_in_a_thread_and_remembered(
    catalog: SqliteCatalog, lister: CatalogLister, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker_core.listing.property_values._QUICK", 0)
    bring(catalog, {"name": "a", "properties": {"region": "eu"}}, {"name": "b"})
    question = ListingRequest(NAMESPACE, properties={"region": "eu"})
    await lister.list_topics(QUESTION)
    assert lister.list_now(question) is None
    answer = await lister.list_topics(question)
    assert names_of(answer) == ["a"]
    again = present(lister.list_now(question))
    assert isinstance(answer.topics, Selection)
    assert part_of(of_type(again.topics, Selection)) is part_of(answer.topics)


async def test_topics_of_one_domain_are_listed_once_for_both_modes(
    catalog: SqliteCatalog, lister: CatalogLister, budget: PermitBudget, reads: Reads
) -> None:
    bring(catalog, {"name": "a"})
    everything = ListingRequest(NAMESPACE, Mode.ALL)
    one = await lister.list_topics(QUESTION)
    used = budget.acquired
    other = await lister.list_topics(everything)
    assert other.topics is one.topics
    assert budget.acquired == used
    assert reads.loaded == [Mode.PERSISTENT]

    catalog.create(topic("n", "non-persistent"))
    assert names_of(await lister.list_topics(everything)) == ["n", "a"]
    assert names_of(await lister.list_topics(QUESTION)) == ["a"]
    assert names_of(await lister.list_topics(ListingRequest(NAMESPACE, Mode.NON_PERSISTENT))) == ["n"]


async def test_many_that_ask_at_once_wait_for_one_read(
    catalog: SqliteCatalog, lister: CatalogLister, reads: Reads
) -> None:
    bring(catalog, {"name": "a"})
    reads.held = threading.Event()
    asking = [asyncio.create_task(lister.list_topics(QUESTION)) for _ in range(50)]
    await eventually(lambda: reads.loaded)
    asking[0].cancel()
    reads.held.set()
    answers = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(answers[0], asyncio.CancelledError), "who goes away ends nothing for the others"
    assert [names_of(answer) for answer in answers[1:] if not isinstance(answer, BaseException)] == [
        ["a"]
    ] * 49
    assert len(reads.loaded) == 1


async def test_who_asks_after_a_change_does_not_get_what_was_read_before_it(
    catalog: SqliteCatalog, lister: CatalogLister, reads: Reads
) -> None:
    bring(catalog, {"name": "a"})
    reads.held = threading.Event()
    early = asyncio.create_task(lister.list_topics(QUESTION))
    await eventually(lambda: reads.loaded)  # it has read version 1 and is held up
    catalog.create(topic("b"))
    late = asyncio.create_task(lister.list_topics(QUESTION))
    await asyncio.sleep(0)
    reads.held.set()
    assert names_of(await late) == ["a", "b"]
    assert names_of(await early) in (["a"], ["a", "b"])


async def test_a_failure_is_told_to_all_who_wait_and_forgotten(
    catalog: SqliteCatalog, lister: CatalogLister, reads: Reads
) -> None:
    bring(catalog, {"name": "a"})
    reads.fail = sqlite3.DatabaseError("database disk image is malformed")
    for answer in await asyncio.gather(
        *(lister.list_topics(QUESTION) for _ in range(3)), return_exceptions=True
    ):
        assert isinstance(answer, ListingFailed)
        assert answer.code is ServerError.MetadataError
        assert "Cannot read the catalogue: The catalogue" in answer.message
    reads.fail = None
    assert names_of(await lister.list_topics(QUESTION)) == ["a"]


async def test_another_file_in_its_place_is_seen_by_the_next_listing(
    catalog: SqliteCatalog, lister: CatalogLister, budget: PermitBudget
) -> None:
    bring(catalog, {"name": "ours"})
    old = await lister.list_topics(QUESTION)
    put_another(catalog, "theirs")
    assert lister.list_now(QUESTION) is None
    new = await lister.list_topics(QUESTION)
    assert names_of(new) == ["theirs"]
    assert new.version != old.version, "the same number, of another catalogue"


async def test_a_listing_that_the_shrink_guard_holds_keeps_no_permits(
    catalog: SqliteCatalog, permits: Permits, budget: PermitBudget
) -> None:
    guard = ShrinkGuard(ShrinkGuardSettings(min_topics=2))
    lister = CatalogLister(catalog, permits, guard=guard)
    bring(catalog, *({"name": f"topic-{number}"} for number in range(4)))
    await lister.list_topics(QUESTION)
    put_another(catalog, "left")
    with pytest.raises(ListingFailed, match="shrink-guard accept a/b"):
        await lister.list_topics(QUESTION)
    lister.close()
    await settled(budget, lambda acquired: acquired == 0)


async def test_a_catalogue_that_went_is_a_failure_not_an_empty_listing(
    catalog: SqliteCatalog, lister: CatalogLister
) -> None:
    bring(catalog, {"name": "a"})
    await lister.list_topics(QUESTION)
    catalog.path.unlink()
    assert lister.list_now(QUESTION) is None
    with pytest.raises(ListingFailed, match=r"There is no catalogue .*c\.sqlite"):
        await lister.list_topics(QUESTION)
    with pytest.raises(ListingFailed):
        await lister.list_topics(ListingRequest(NamespaceName("no", "where")))


async def test_a_copy_restored_into_the_open_file_is_read_where_the_number_is_the_same(
    catalog: SqliteCatalog, lister: CatalogLister, tmp_path: Path
) -> None:
    catalog.create(TopicName("persistent", NAMESPACE, "kept"))
    copy = sqlite3.connect(tmp_path / "copy.sqlite")
    with catalog.reading() as connection:
        connection.backup(copy)
    catalog.create(TopicName("persistent", NAMESPACE, "lost"))
    assert len((await lister.list_topics(QUESTION)).topics) == 2
    create_topics(tmp_path / "copy.sqlite", TopicName("persistent", NAMESPACE, "new"))
    into = sqlite3.connect(catalog.path)
    copy.backup(into)
    into.close()
    copy.close()
    listed = await lister.list_topics(QUESTION)
    assert sorted(name.rpartition("/")[2] for name in of_type(listed.topics, Listing).names.to_pylist()) == [
        "kept",
        "new",
    ]
