"""What is held of plugins' answers: bounded whatever is put in, and charged for all that it holds."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from broker_core.listing import Listing
from broker_core.names import Mode, NamespaceName
from broker_core.permits import PermitBudget
from broker_core.pipeline.answer_store import OVERHEAD, AnswerStore

NAMESPACE = NamespaceName("t", "n")
OTHER = NamespaceName("t", "other")


def listing(count: int = 3) -> Listing:
    return Listing.from_names(NAMESPACE, Mode.PERSISTENT, [f"persistent://t/n/t-{n}" for n in range(count)])


LISTINGS = [listing(count) for count in (0, 1, 100, 2000)]


def test_a_listing_is_charged_once_however_many_hold_it() -> None:
    budget = PermitBudget(10**9)
    store, shared = AnswerStore(budget), listing()
    for key in "abc":
        assert store.put(key, NAMESPACE, key, shared)
    assert budget.acquired == shared.nbytes + 3 * OVERHEAD
    store.drop("b")
    assert store.put("a", NAMESPACE, "new", None, text=100)
    assert budget.acquired == shared.nbytes + 2 * OVERHEAD + 100
    assert (store.get("a"), store.get("b"), store.get("c")) == ("new", None, "c")
    store.drop("c")
    assert budget.acquired == OVERHEAD + 100
    store.drop("a")
    store.drop("a")
    assert (budget.acquired, len(store)) == (0, 0)


def test_the_text_of_keys_counts() -> None:
    store = AnswerStore(PermitBudget(200_000))
    assert not store.put("q", NAMESPACE, 1, None, text=100_001)
    for number in range(100):
        assert store.put(number, NAMESPACE, number, None, text=20_000)
    assert len(store) == 4


def test_keys_are_found_by_namespace() -> None:
    store = AnswerStore(PermitBudget(0))
    store.put("a", NAMESPACE, 1, None)
    store.put("b", OTHER, 1, None)
    store.put("a", OTHER, 1, None)
    assert (store.keys(NAMESPACE), store.keys(OTHER)) == ([], ["b", "a"])
    assert store.keys(NamespaceName("x", "y")) == []


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
    store = AnswerStore(budget)
    text: dict[int, tuple[int, Listing | None]] = {}
    others = None
    for step in steps:
        match step:
            case ("put", key, which, size):
                chosen = None if which < 0 else LISTINGS[which]
                put = store.put(key, NAMESPACE, key, chosen, text=size)
                text[key] = size, chosen
                assert put is (store.get(key) is not None)
            case ("get", key):
                store.get(key)
            case ("drop", key):
                store.drop(key)
            case ("others", size):
                if others is not None:
                    others.release()
                others = budget.try_acquire(min(size, budget.available)) if budget.available else None
        there = [key for key in range(10) if key in store.keys(NAMESPACE)]
        assert len(there) == len(store)
        listings = {id(text[key][1]): text[key][1] for key in there}
        held = sum(each.nbytes for each in listings.values() if each is not None)
        held += sum(OVERHEAD + text[key][0] for key in there)
        assert budget.acquired - (0 if others is None else others.count) == held <= maximum // 2
