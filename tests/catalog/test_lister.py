from __future__ import annotations

import asyncio
import gc
import io
import json
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from broker_core.catalog import lister as lister_module
from broker_core.catalog.lister import CatalogLister
from broker_core.catalog.snapshots.load_snapshot import load_snapshot
from broker_core.catalog.snapshots.name_changes import NameChanges, read_name_changes
from broker_core.catalog.snapshots.snapshot import Snapshot
from broker_core.catalog.store.namespace_change import LogBounds
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.catalog.topic_files.import_file import import_topics
from broker_core.errors import ListingFailed, ServerError, TooManyRequests
from broker_core.listing.listing import Listing, Selection, part_of
from broker_core.memory.permit_budget import PermitBudget
from broker_core.memory.permits import Permits
from broker_core.names import Mode, NamespaceName, TopicName
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.plugin_api.listing_result import DefaultLister, TopicListingResult
from broker_core.settings import LimitsSettings
from tests.support.eventually import eventually

NAMESPACE = NamespaceName("a", "b")
QUESTION = ListingRequest(NAMESPACE)
MB = 1024 * 1024


def permits_of(snapshots: int, timeout: float = 60.0) -> Permits:
    return Permits(LimitsSettings(snapshots=snapshots, permit_timeout=timeout))


@pytest.fixture
def permits() -> Permits:
    return permits_of(100 * MB)


@pytest.fixture
def budget(permits: Permits) -> PermitBudget:
    return permits.snapshots


@pytest.fixture
async def lister(catalog: SqliteCatalog, permits: Permits) -> AsyncIterator[CatalogLister]:
    made = CatalogLister(catalog, permits, property_keys=("region", "team"))
    yield made
    made.close()


class Reads:
    """Counts the snapshots that are read anew or moved, and may hold them up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.loaded: list[Mode] = []
        self.moved = 0
        self.held: threading.Event | None = None
        self.fail: Exception | None = None
        load, move = load_snapshot, Snapshot.moved

        def loading(
            connection: sqlite3.Connection, namespace: NamespaceName, mode: Mode, keys: Any
        ) -> Snapshot:
            if self.fail is not None:
                raise self.fail
            self.loaded.append(mode)
            snapshot = load(connection, namespace, mode, keys)
            if self.held is not None:
                assert self.held.wait(10)
            return snapshot

        def moving(snapshot: Snapshot, *arguments: Any) -> Snapshot:
            self.moved += 1
            return move(snapshot, *arguments)

        monkeypatch.setattr(lister_module, "load_snapshot", loading)
        monkeypatch.setattr(Snapshot, "moved", moving)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    return Reads(monkeypatch)


def topic(local: str, domain: str = "persistent") -> TopicName:
    return TopicName(domain, NAMESPACE, local)


def bring(catalog: SqliteCatalog, *lines: object, namespace: NamespaceName = NAMESPACE) -> None:
    import_topics(catalog, namespace, io.BytesIO("\n".join(json.dumps(line) for line in lines).encode()))


def names_of(result: TopicListingResult) -> list[str]:
    topics = result.topics
    assert isinstance(topics, Listing | Selection)
    return [str(name).rpartition("/")[2] for name in topics.names.to_pylist()]


async def test_changes_are_read_once_also_where_the_move_needs_more_permits(
    catalog: SqliteCatalog, lister: CatalogLister, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog.create(topic("a"))
    catalog.create(topic("b"))
    await lister.list_topics(ListingRequest(NAMESPACE))
    read: list[int] = []

    def reading(*arguments: Any, **keywords: Any) -> Any:
        changes = read_name_changes(*arguments, **keywords)
        assert isinstance(changes, NameChanges)
        read.append(len(changes))
        return changes

    monkeypatch.setattr(lister_module, "read_name_changes", reading)
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
    again = lister.list_now(QUESTION)
    assert again is not None
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
    with SqliteCatalog(catalog.path) as other_process:
        other_process.create(topic("b"))
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
    monkeypatch.setattr("broker_core.listing.select_by_properties._QUICK", 0)
    bring(catalog, {"name": "a", "properties": {"region": "eu"}}, {"name": "b"})
    question = ListingRequest(NAMESPACE, properties={"region": "eu"})
    await lister.list_topics(QUESTION)
    assert lister.list_now(question) is None
    answer = await lister.list_topics(question)
    assert names_of(answer) == ["a"]
    again = lister.list_now(question)
    assert again is not None
    assert isinstance(answer.topics, Selection)
    assert isinstance(again.topics, Selection)
    assert part_of(again.topics) is part_of(answer.topics)


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
    other = catalog.path.with_name("other.sqlite")
    with SqliteCatalog(other) as made:
        made.create(topic("theirs"))
        connection = made.connect()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
    for leftover in catalog.path.parent.glob("c.sqlite-*"):
        leftover.unlink()
    other.rename(catalog.path)

    assert lister.list_now(QUESTION) is None
    new = await lister.list_topics(QUESTION)
    assert names_of(new) == ["theirs"]
    assert new.version != old.version, "the same number, of another catalogue"


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


# -- memory


async def settled(budget: PermitBudget, expected: Callable[[int], bool]) -> None:
    def at_last() -> bool:
        gc.collect()
        return expected(budget.acquired)

    await eventually(at_last)


def spaces(catalog: SqliteCatalog, count: int, topics: int = 10) -> list[ListingRequest]:
    questions = []
    for number in range(count):
        namespace = NamespaceName("many", f"n{number}")
        bring(catalog, *({"name": f"topic-{index}"} for index in range(topics)), namespace=namespace)
        questions.append(ListingRequest(namespace))
    return questions


def kept_bytes(lister: CatalogLister) -> int:
    (kept,) = lister._kept._kept.values()
    return kept.snapshot.nbytes


async def test_least_used_snapshots_make_room(catalog: SqliteCatalog, reads: Reads) -> None:
    questions = spaces(catalog, 4)
    probe = CatalogLister(catalog, (unlimited := permits_of(0)))
    await probe.list_topics(questions[0])
    size = kept_bytes(probe)
    probe.close()
    await settled(unlimited.snapshots, lambda acquired: acquired == 0)

    permits = permits_of(size * 3 + size // 2)
    budget = permits.snapshots
    lister = CatalogLister(catalog, permits)
    for question in questions[:3]:
        await lister.list_topics(question)
    assert lister.list_now(questions[0]) is not None
    await lister.list_topics(questions[3])
    assert [lister.list_now(question) is not None for question in questions] == [True, False, True, True]
    assert budget.acquired <= budget.maximum
    lister.close()
    await settled(budget, lambda acquired: acquired == 0)


async def test_what_a_request_still_has_is_counted_until_it_lets_go(
    catalog: SqliteCatalog, lister: CatalogLister, budget: PermitBudget
) -> None:
    bring(catalog, *({"name": f"topic-{number}"} for number in range(100)))
    pinned: TopicListingResult | None = await lister.list_topics(QUESTION)
    one = budget.acquired
    assert one > 0
    catalog.create(topic("new"))
    await lister.list_topics(QUESTION)
    assert budget.acquired >= 2 * one, "the old listing and the new one"
    assert pinned is not None
    del pinned
    await settled(budget, lambda acquired: acquired < 2 * one)


async def test_a_change_is_made_in_one_go_where_there_is_room(
    catalog: SqliteCatalog, permits: Permits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each hop to a thread costs more than reading the change."""
    bring(catalog, *({"name": f"topic-{number}"} for number in range(100)))
    lister = CatalogLister(catalog, permits)
    await lister.list_topics(QUESTION)
    hops = []
    to_thread = asyncio.to_thread

    async def counted(work: Callable[..., Any], *arguments: Any) -> Any:
        hops.append(work)
        return await to_thread(work, *arguments)

    monkeypatch.setattr(asyncio, "to_thread", counted)
    catalog.create(topic("one"))
    assert len((await lister.list_topics(QUESTION)).topics) == 101
    assert len(hops) == 1
    assert lister._at_once == 0
    lister._at_once = 4  # others have begun so
    catalog.create(topic("two"))
    assert len((await lister.list_topics(QUESTION)).topics) == 102
    assert len(hops) == 3
    lister.close()


async def test_a_mode_of_one_domain_is_a_part_of_the_other(
    catalog: SqliteCatalog, lister: CatalogLister, budget: PermitBudget, reads: Reads
) -> None:
    bring(catalog, {"name": "a"}, {"name": "non-persistent://a/b/n"})
    everything = await lister.list_topics(ListingRequest(NAMESPACE, Mode.ALL))
    catalog.create(topic("b"))
    for mode, expected in (
        (Mode.ALL, ["n", "a", "b"]),
        (Mode.PERSISTENT, ["a", "b"]),
        (Mode.NON_PERSISTENT, ["n"]),
    ):
        assert names_of(await lister.list_topics(ListingRequest(NAMESPACE, mode))) == expected
    assert names_of(everything) == ["n", "a"]
    assert (reads.loaded, reads.moved) == ([Mode.ALL], 1)
    before = budget.acquired
    catalog.create(topic("c", "non-persistent"))
    assert names_of(await lister.list_topics(ListingRequest(NAMESPACE, Mode.NON_PERSISTENT))) == ["c", "n"]
    assert names_of(await lister.list_topics(QUESTION)) == ["a", "b"]
    assert reads.loaded == [Mode.ALL]
    assert budget.acquired >= before


async def test_an_old_listing_goes_by_itself(
    catalog: SqliteCatalog, lister: CatalogLister, budget: PermitBudget
) -> None:
    bring(catalog, *({"name": f"topic-{number}", "properties": {"region": "eu"}} for number in range(100)))
    gc.collect()
    gc.disable()
    try:
        for number in range(20):
            for properties in ({}, {"region": "eu"}):
                question = ListingRequest(NAMESPACE, properties=properties)
                answer = lister.list_now(question) or await lister.list_topics(question)
                assert len(answer.topics) == 100 + number * (not properties)
                del answer
            catalog.create(topic(f"new-{number}"))
        first = kept_bytes(lister)
        await eventually(lambda: budget.acquired <= first + 100_000, what="only one listing in memory")
    finally:
        gc.enable()


async def test_what_clients_hold_stands_in_nobodys_way_until_all_is_held(
    catalog: SqliteCatalog, reads: Reads
) -> None:
    questions = spaces(catalog, 3, topics=100)
    probe = CatalogLister(catalog, permits_of(0))
    await probe.list_topics(questions[0])
    size = kept_bytes(probe)
    probe.close()

    permits = permits_of(size * 3 // 2)
    lister = CatalogLister(catalog, permits)
    unkept = lister._kept.unkept
    pinned: TopicListingResult | None = await lister.list_topics(questions[0])
    other: TopicListingResult | None = await lister.list_topics(questions[1])
    assert other is not None
    assert len(other.topics) == 100
    assert lister.list_now(questions[1]) is None, "it is served and not kept"
    assert unkept.acquired == unkept.maximum
    loaded = len(reads.loaded)
    again: TopicListingResult | None = await lister.list_topics(questions[1])
    assert again is not None
    assert again.topics is other.topics, "it is shared as long as somebody has it"
    assert len(reads.loaded) == loaded
    unkept.timeout = 0.05
    with pytest.raises(TooManyRequests, match="snapshot memory"):
        await lister.list_topics(questions[2])
    unkept.timeout = 60
    waiting = asyncio.create_task(lister.list_topics(questions[2]))
    await eventually(lambda: unkept.queue_size)
    del other, again
    assert len((await waiting).topics) == 100
    del pinned
    gc.collect()
    assert len((await lister.list_topics(questions[2])).topics) == 100
    assert lister.list_now(questions[2]) is not None, "there is room again, and it is kept"
    lister.close()


async def test_a_small_namespace_is_listed_beside_a_large_one_that_a_client_reads(
    catalog: SqliteCatalog, reads: Reads
) -> None:
    """The large one changes while a client still reads it: both are served, and nobody waits for that client."""
    bring(catalog, *({"name": f"topic-{number:06d}"} for number in range(5000)))
    small = spaces(catalog, 1, topics=5)[0]
    probe = CatalogLister(catalog, permits_of(0))
    await probe.list_topics(QUESTION)
    permits = permits_of(kept_bytes(probe) * 3 // 2)
    probe.close()
    lister = CatalogLister(catalog, permits)
    read = await lister.list_topics(QUESTION)
    for number in range(3):
        catalog.create(topic(f"new-{number}"))
        changed: TopicListingResult | None = await lister.list_topics(QUESTION)
        assert changed is not None
        assert len(changed.topics) == 5001 + number
        assert len((await lister.list_topics(small)).topics) == 5
        del changed
    assert lister.list_now(small) is not None
    assert len(read.topics) == 5000
    assert permits.snapshots.queue_size == 0
    lister.close()


async def test_nobody_waits_for_permits_in_a_place_of_those_that_are_read(
    catalog: SqliteCatalog, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lister_module, "_SMALL", 0)  # so that each needs a place
    questions = spaces(catalog, 5, topics=100)
    permits = permits_of(400_000)
    lister = CatalogLister(catalog, permits)
    unkept = await lister._kept.unkept.acquire(lister._kept.unkept.maximum)
    everything = permits.snapshots.try_acquire(400_000)
    assert everything is not None
    waiting = [asyncio.create_task(lister.list_topics(question)) for question in questions[:4]]
    await eventually(lambda: lister._kept.unkept.queue_size == 4)
    everything.release()
    assert len((await lister.list_topics(questions[4])).topics) == 100
    unkept.release()
    assert [len(answer.topics) for answer in await asyncio.gather(*waiting)] == [100] * 4
    lister.close()


async def test_a_namespace_that_does_not_fit_still_lists_one_at_a_time(
    catalog: SqliteCatalog, reads: Reads
) -> None:
    small, large = spaces(catalog, 1)[0], QUESTION
    bring(catalog, *({"name": f"topic-{number:06d}"} for number in range(5000)))
    another = ListingRequest(NamespaceName("large", "too"))
    bring(catalog, *({"name": f"topic-{number:06d}"} for number in range(5000)), namespace=another.namespace)
    lister = CatalogLister(catalog, permits_of(200_000))
    await lister.list_topics(small)
    first: TopicListingResult | None = await lister.list_topics(large)
    assert first is not None
    assert len(first.topics) == 5000
    assert lister.list_now(large) is None, "it is not kept"
    assert lister.list_now(small) is not None, "and throws nobody out"
    loaded = len(reads.loaded)
    shared: list[TopicListingResult] = [await lister.list_topics(large) for _ in range(5)]
    assert all(answer.topics is first.topics for answer in shared)
    waiting = asyncio.create_task(lister.list_topics(another))
    await eventually(lambda: lister._kept.unkept.queue_size)
    assert len(reads.loaded) == loaded, "the last one is still in memory"
    del first, shared
    assert len((await waiting).topics) == 5000
    assert len(reads.loaded) == loaded + 1
    del waiting
    catalog.create(topic("one-more"))
    assert len((await lister.list_topics(large)).topics) == 5001
    lister.close()


async def test_a_namespace_that_shrank_is_kept_again(catalog: SqliteCatalog, reads: Reads) -> None:
    bring(catalog, *({"name": f"topic-{number:06d}"} for number in range(3000)))
    lister = CatalogLister(catalog, permits_of(400_000))
    assert len((await lister.list_topics(QUESTION)).topics) == 3000
    with catalog.changing(NAMESPACE) as (connection, change):
        connection.execute("DELETE FROM topics WHERE base > 'topic-000009'")
        change.leave_gap()
    assert len((await lister.list_topics(QUESTION)).topics) == 10
    assert lister.list_now(QUESTION) is not None
    lister.close()


async def test_closing_twice_is_once(catalog: SqliteCatalog, permits: Permits, budget: PermitBudget) -> None:
    lister = CatalogLister(catalog, permits)
    bring(catalog, {"name": "a"})
    await lister.list_topics(QUESTION)
    lister.close()
    lister.close()
    assert lister.list_now(QUESTION) is None
    await settled(budget, lambda acquired: acquired == 0)


async def test_a_copy_restored_into_the_open_file_is_read_where_the_number_is_the_same(
    catalog: SqliteCatalog, lister: CatalogLister, tmp_path: Path
) -> None:
    catalog.create(TopicName("persistent", NAMESPACE, "kept"))
    copy = sqlite3.connect(tmp_path / "copy.sqlite")
    with catalog.reading() as connection:
        connection.backup(copy)
    catalog.create(TopicName("persistent", NAMESPACE, "lost"))
    assert len((await lister.list_topics(QUESTION)).topics) == 2
    with SqliteCatalog(tmp_path / "copy.sqlite") as other:
        other.create(TopicName("persistent", NAMESPACE, "new"))
    into = sqlite3.connect(catalog.path)
    copy.backup(into)
    into.close()
    copy.close()
    listed = await lister.list_topics(QUESTION)
    assert isinstance(listed.topics, Listing)
    assert sorted(name.rpartition("/")[2] for name in listed.topics.names.to_pylist()) == ["kept", "new"]
