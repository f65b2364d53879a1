"""Answers with a version are built once; memory is bounded, least recently used first."""

from __future__ import annotations

import pytest

from broker_core.listing.listing import Listing
from broker_core.memory.leases import Leases
from broker_core.memory.permit_budget import PermitBudget
from broker_core.names import Mode, NamespaceName
from broker_core.pipeline.remembered.answer_store import OVERHEAD, AnswerStore
from broker_core.pipeline.remembered.listings_by_result_version import ListingsByResultVersion

NAMESPACE = NamespaceName("t", "n")


def listing(count: int = 3, namespace: NamespaceName = NAMESPACE) -> Listing:
    names = [f"persistent://{namespace}/topic-{number}" for number in range(count)]
    return Listing.from_names(namespace, Mode.PERSISTENT, names)


SIZE = listing().nbytes + OVERHEAD


def kept(room_for: int) -> tuple[ListingsByResultVersion, PermitBudget]:
    budget = PermitBudget(2 * room_for * SIZE)
    return ListingsByResultVersion(AnswerStore(budget, Leases())), budget


def test_the_same_question_at_the_same_version_is_the_same_listing() -> None:
    answers, budget = kept(2)
    first = listing()
    assert answers.put("q", "v1", first, 5)
    assert answers.get("q", "v1") == (first, 5)
    assert answers.get("q", "v2") is None
    assert answers.get("other", "v1") is None
    assert budget.acquired == SIZE


@pytest.mark.parametrize("version", ["v2", 2, 0, ""])
def test_a_newer_version_takes_the_place_of_the_older(version: str | int) -> None:
    answers, budget = kept(2)
    answers.put("q", "v1", listing(), 3)
    newer = listing()
    answers.put("q", version, newer, 3)
    assert answers.get("q", version) == (newer, 3)
    assert answers.get("q", "v1") is None
    assert budget.acquired == SIZE


def test_the_least_used_makes_room() -> None:
    answers, budget = kept(3)
    for key in "abc":
        answers.put(key, 1, listing(), 3)
    assert answers.get("a", 1)
    answers.put("d", 1, listing(), 3)
    assert [key for key in "abcd" if answers.get(key, 1)] == ["a", "c", "d"]
    assert budget.acquired == 3 * SIZE


def test_a_half_is_left_to_snapshots_and_what_does_not_fit_is_not_kept() -> None:
    answers, budget = kept(2)
    assert not answers.put("large", 1, listing(20_000), 3)
    assert answers.put("a", 1, listing(), 3)
    assert answers.put("b", 1, listing(), 3)
    assert answers.put("c", 1, listing(), 3)
    assert budget.acquired == 2 * SIZE == budget.maximum // 2


def test_others_may_have_taken_the_budget() -> None:
    answers, budget = kept(3)
    answers.put("a", 1, listing(), 3)
    snapshots = budget.try_acquire(budget.available)
    assert snapshots is not None
    assert answers.put("b", 1, listing(), 3)  # in the place of the first
    assert answers.get("a", 1) is None
    answers.forget(NAMESPACE)
    taken = budget.try_acquire(budget.available)
    assert taken is not None
    assert not answers.put("c", 1, listing(), 3)
    taken.release()
    assert budget.acquired == snapshots.count


def test_what_changed_is_forgotten() -> None:
    answers, budget = kept(5)
    other = NamespaceName("t", "other")
    answers.put("a", 1, listing(), 3)
    answers.put("b", 1, listing(namespace=other), 3)
    answers.put("c", 1, listing(), 3)
    answers.forget(NAMESPACE)
    assert [key for key in "abc" if answers.get(key, 1)] == ["b"]
    answers.forget(other)
    assert budget.acquired == 0


def test_without_a_limit_all_are_kept() -> None:
    answers = ListingsByResultVersion(AnswerStore(PermitBudget(0), Leases()))
    for number in range(50):
        assert answers.put(number, 1, listing(), 3)
    assert all(answers.get(number, 1) for number in range(50))
