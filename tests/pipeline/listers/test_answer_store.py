"""The store of plugins' answers: bounded, and charged for all that it holds."""

from __future__ import annotations

import asyncio
from typing import Any
from weakref import WeakValueDictionary

import hypothesis.strategies as st
from hypothesis import given

from broker_core.listing.listing import Listing
from broker_core.memory.permit_budget import PermitBudget
from broker_core.memory.permits import Leases
from broker_core.names import Mode, NamespaceName
from broker_core.pipeline.listers.answer_store import OVERHEAD, AnswerStore

NAMESPACE = NamespaceName("t", "n")
OTHER = NamespaceName("t", "other")


def listing(count: int = 3) -> Listing:
    return Listing.from_names(NAMESPACE, Mode.PERSISTENT, [f"persistent://t/n/t-{n}" for n in range(count)])


COUNTS = (0, 1, 100, 2000)


def test_a_listing_is_charged_once_however_many_hold_it() -> None:
    budget = PermitBudget(10**9)
    store, shared = AnswerStore(budget, Leases()), listing()
    size = shared.nbytes
    for key in "abc":
        assert store.put(key, NAMESPACE, key, shared)
    assert budget.acquired == size + 3 * OVERHEAD
    store.drop("b")
    assert store.put("a", NAMESPACE, "new", None, text=100)
    assert budget.acquired == size + 2 * OVERHEAD + 100
    assert (store.get("a"), store.get("b"), store.get("c")) == ("new", None, "c")
    del shared
    store.drop("c")
    assert budget.acquired == OVERHEAD + 100
    store.drop("a")
    store.drop("a")
    assert (budget.acquired, len(store)) == (0, 0)


def test_what_is_dropped_while_somebody_has_it_is_charged_until_he_lets_go() -> None:
    """A client that reads slowly holds its answer in memory, whatever the store does."""
    budget = PermitBudget(10**6)
    store, read = AnswerStore(budget, Leases()), listing(2000)
    size = read.nbytes
    assert store.put("q", NAMESPACE, 1, read)
    store.drop("q")
    assert budget.acquired == size
    assert store.put("again", NAMESPACE, 1, read)  # and is charged no second time
    assert budget.acquired == size + OVERHEAD
    store.drop("again")
    del read
    assert store.put("other", NAMESPACE, 1, None)
    assert budget.acquired == OVERHEAD


def test_what_made_room_may_have_held_the_listing_that_comes() -> None:
    budget = PermitBudget(120_000)
    store, shared = AnswerStore(budget, Leases()), listing(0)
    assert store.put(0, NAMESPACE, 0, shared)
    assert store.put(2, NAMESPACE, 2, None, text=25_178)
    assert store.put(1, NAMESPACE, 1, shared, text=25_575)
    assert budget.acquired == shared.nbytes + sum(OVERHEAD + text for text in (25_178, 25_575)[-len(store) :])
    assert budget.acquired <= 60_000


def test_readers_leave_no_room_and_no_more_is_dropped_than_could_make_some() -> None:
    budget, leases = PermitBudget(10**6), Leases()
    store = AnswerStore(budget, leases)
    others = budget.try_acquire(10**6 - 4 * (listing(500).nbytes + OVERHEAD))
    assert others is not None
    read = [listing(500) for _ in range(3)]
    for number, each in enumerate(read):
        assert store.put(number, NAMESPACE, number, each)
    assert not store.put(
        "two", NAMESPACE, 1, listing(1000)
    )  # one of these was dropped, and its reader has it still
    assert [store.get(number) for number in range(3)] == [None, 1, 2]
    del read, each
    assert store.put("one", NAMESPACE, 1, listing(500))
    assert [store.get(number) for number in range(3)] == [None, 1, 2]


async def test_who_queues_empties_nothing() -> None:
    budget = PermitBudget(10**6)
    store = AnswerStore(budget, Leases())
    for number in range(5):
        assert store.put(number, NAMESPACE, number, listing(100))
    waiting = asyncio.create_task(budget.acquire(10**6))
    await asyncio.sleep(0)
    before = budget.acquired
    assert not store.put("new", NAMESPACE, 1, listing(2000)), "its small part alone would pass the demand"
    assert budget.acquired == before
    assert [store.get(number) for number in range(5)] == [0, 1, 2, 3, 4]
    waiting.cancel()


def test_the_text_of_keys_counts() -> None:
    store = AnswerStore(PermitBudget(200_000), Leases())
    assert not store.put("q", NAMESPACE, 1, None, text=100_001)
    for number in range(100):
        assert store.put(number, NAMESPACE, number, None, text=20_000)
    assert len(store) == 4


def test_keys_are_found_by_namespace() -> None:
    store = AnswerStore(PermitBudget(0), Leases())
    store.put("a", NAMESPACE, 1, None)
    store.put("b", OTHER, 1, None)
    store.put("a", OTHER, 1, None)
    assert (store.keys(NAMESPACE), store.keys(OTHER)) == ([], ["b", "a"])
    assert store.keys(NamespaceName("x", "y")) == []


SIZE = listing().nbytes + OVERHEAD


def test_the_least_used_makes_room() -> None:
    budget = PermitBudget(6 * SIZE)
    store = AnswerStore(budget, Leases())
    for key in "abc":
        store.put(key, NAMESPACE, key, listing())
    assert store.get("a")
    store.put("d", NAMESPACE, "d", listing())
    assert [key for key in "abcd" if store.get(key)] == ["a", "c", "d"]
    assert budget.acquired == 3 * SIZE
    store.put("d", NAMESPACE, "newer", listing())
    assert (store.get("d"), budget.acquired) == ("newer", 3 * SIZE)


def test_a_half_is_left_to_snapshots_and_what_does_not_fit_is_not_kept() -> None:
    budget = PermitBudget(4 * SIZE)
    store = AnswerStore(budget, Leases())
    assert not store.put("large", NAMESPACE, 1, listing(20_000))
    for key in "abc":
        assert store.put(key, NAMESPACE, 1, listing())
    assert budget.acquired == 2 * SIZE == budget.maximum // 2


def test_others_may_have_taken_the_budget() -> None:
    budget = PermitBudget(6 * SIZE)
    store = AnswerStore(budget, Leases())
    store.put("a", NAMESPACE, 1, listing())
    snapshots = budget.try_acquire(budget.available)
    assert snapshots is not None
    assert store.put("b", NAMESPACE, 1, listing())  # in the place of the first
    assert store.get("a") is None
    store.drop("b")
    taken = budget.try_acquire(budget.available)
    assert taken is not None
    assert not store.put("c", NAMESPACE, 1, listing())
    taken.release()
    assert budget.acquired == snapshots.count


def test_a_change_drops_what_is_kept_at_a_version() -> None:
    """The last good answers stay: they replace failures, whatever has changed."""
    store = AnswerStore(PermitBudget(0), Leases())
    kinds = ("kept", "version", "masked", "last", "last hash")
    for kind in kinds:
        store.put((kind, "q"), NAMESPACE, 1, None)
        store.put((kind, "other"), OTHER, 1, None)
    store.forget(NAMESPACE)
    assert [kind for kind in kinds if store.get((kind, "q"))] == ["last", "last hash"]
    assert len(store.keys(OTHER)) == 5
    store.forget(None)
    assert set(store.keys(None)) == {(kind, each) for kind in kinds[3:] for each in ("other", "q")}


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.integers(0, 9), st.integers(-1, 3), st.integers(0, 30_000)),
        st.tuples(st.just("get"), st.integers(0, 9)),
        st.tuples(st.just("drop"), st.integers(0, 9)),
        st.tuples(st.just("others"), st.integers(0, 60_000)),
    ),
    max_size=60,
)


@given(steps=STEPS, maximum=st.sampled_from([1, 30_000, 120_000, 10**7]))
def test_what_is_charged_is_what_is_held(steps: list[Any], maximum: int) -> None:
    """Whatever happens: never more than half of the budget, and the permits are those of what is there."""
    budget = PermitBudget(maximum)
    leases = Leases()
    store = AnswerStore(budget, leases)
    listings: WeakValueDictionary[int, Listing] = WeakValueDictionary()  # the store alone keeps them
    text: dict[int, tuple[int, int]] = {}
    others = None
    for step in steps:
        match step:
            case ("put", key, which, size):
                chosen = listings.get(which)
                if chosen is None and which >= 0:
                    chosen = listings[which] = listing(COUNTS[which])
                put = store.put(key, NAMESPACE, key, chosen, text=size)
                del chosen
                text[key] = size, which
                assert put is (store.get(key) is not None)
            case ("get", key):
                store.get(key)
            case ("drop", key):
                store.drop(key)
            case ("others", size):
                if others is not None:
                    others.release()
                others = budget.try_acquire(min(size, budget.available)) if budget.available else None
        leases.settle()  # of one that was refused, and of which nobody has the listing any more
        there = [key for key in range(10) if key in store.keys(NAMESPACE)]
        assert len(there) == len(store)
        held = sum(listings[which].nbytes for which in {text[key][1] for key in there} if which >= 0)
        held += sum(OVERHEAD + text[key][0] for key in there)
        assert budget.acquired - (0 if others is None else others.count) == held <= maximum // 2
