"""Shares of topics: their sum stays within the total, whatever the order of topics that come and go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core.consumer.prefetch_budget import PrefetchBudget


@given(st.integers(1, 5000), st.lists(st.booleans(), max_size=200))
def test_all_topics_stay_within_the_total(total: int, steps: list[bool]) -> None:
    budget = PrefetchBudget(total)
    sizes: list[int] = []
    for comes in steps:
        if comes:
            sizes.append(budget.grant(len(sizes) + 1))
            assert sizes[-1] >= 1
        elif sizes:
            budget.give_back(sizes.pop(len(sizes) // 2))
        assert budget.granted == sum(sizes)
        # Once there is nothing left, each has one.
        assert sum(sizes) <= total + sizes.count(1)


def test_the_first_topics_take_a_half_and_later_ones_what_is_left() -> None:
    budget = PrefetchBudget(10_000)
    assert [budget.grant(1_000) for _ in range(1_000)] == [5] * 1_000
    assert budget.granted == 5_000
    assert budget.grant(1_001) == 4


def test_a_topic_gets_no_more_than_the_official_client_has() -> None:
    assert PrefetchBudget(1_000_000).grant(2) == 1000


def test_a_size_fits_within_half_and_twice_its_share() -> None:
    budget = PrefetchBudget(1_000)
    assert budget.share(10) == 50
    assert [budget.fits(size, 10) for size in (24, 25, 50, 100, 101)] == [False, True, True, True, False]


def test_a_full_budget_has_nothing_larger_to_offer() -> None:
    budget = PrefetchBudget(100)
    for _ in range(2):
        budget.grant(1)
    assert budget.granted == 100
    assert budget.fits(1, 10)


def test_there_is_room_for_a_message() -> None:
    with pytest.raises(ValueError, match="1 message"):
        PrefetchBudget(0)
