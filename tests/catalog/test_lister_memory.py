"""The memory of a lister: which snapshots it keeps, and under which permits."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

import pytest

from broker_core.catalog import catalog_lister as lister_module
from broker_core.catalog.catalog_lister import CatalogLister
from broker_core.catalog.store.sqlite_catalog import SqliteCatalog
from broker_core.errors import TooManyRequests
from broker_core.memory.permit_budget import PermitBudget
from broker_core.memory.permits import Permits
from broker_core.names import Mode, NamespaceName
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.plugin_api.listing_result import TopicListingResult
from tests.catalog.listers import (
    NAMESPACE,
    QUESTION,
    Reads,
    bring,
    kept_bytes,
    names_of,
    permits_of,
    settled,
    spaces,
    threads_let_go,
    topic,
)
from tests.support.eventually import eventually
from tests.support.narrowed import present


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
    await threads_let_go()  # what a thread still has frees nothing, so that another one would have to go
    assert lister.list_now(questions[0]) is not None
    await lister.list_topics(questions[3])
    assert [lister.list_now(question) is not None for question in questions] == [
        True,
        False,
        True,
        True,
    ]
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
    """Each hop to a thread costs more than reading the change: the loop makes a small one itself."""
    bring(catalog, *({"name": f"topic-{number}"} for number in range(100)))
    lister = CatalogLister(catalog, permits)
    await lister.list_topics(QUESTION)
    hops = []
    loop = asyncio.get_running_loop()
    in_executor = loop.run_in_executor

    def counted(executor: Executor | None, work: Callable[..., Any], *arguments: Any) -> Any:
        assert executor is not None, "the default executor is for files"
        hops.append(work)
        return in_executor(executor, work, *arguments)

    monkeypatch.setattr(loop, "run_in_executor", counted)
    catalog.create(topic("one"))
    assert len((await lister.list_topics(QUESTION)).topics) == 101
    assert len(hops) == 0
    for number in range(20):
        catalog.create(topic(f"many-{number}"))
    assert len((await lister.list_topics(QUESTION)).topics) == 121
    assert len(hops) == 1
    assert lister._at_once == 0
    lister._at_once = 4  # others have begun so
    catalog.create(topic("two"))
    assert len((await lister.list_topics(QUESTION)).topics) == 122
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
    assert names_of(await lister.list_topics(ListingRequest(NAMESPACE, Mode.NON_PERSISTENT))) == [
        "c",
        "n",
    ]
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
    permits.heap.try_acquire(permits.heap.available)  # nor may it count as memory of requests
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
    monkeypatch.setattr(lister_module, "SMALL", 0)  # so that each needs a place
    questions = spaces(catalog, 5, topics=100)
    permits = permits_of(400_000)
    lister = CatalogLister(catalog, permits)
    unkept = await lister._kept.unkept.acquire(lister._kept.unkept.maximum)
    everything = present(permits.snapshots.try_acquire(400_000))
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
