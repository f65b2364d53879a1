"""What was asked how often: exact while there is room, bounded always."""

from __future__ import annotations

from collections import Counter

import hypothesis.strategies as st
import pytest
from hypothesis import given

from broker_core.names import Mode
from broker_core.questions import QuestionCounter


def ask(counter: QuestionCounter, pattern: str | None, times: int = 1, **properties: str) -> None:
    for _ in range(times):
        counter.record("t/n", Mode.PERSISTENT, pattern, properties, 0.5)


def test_questions_are_counted_most_asked_first() -> None:
    counter = QuestionCounter()
    ask(counter, "rare")
    ask(counter, "often", 3)
    ask(counter, None, 2)
    ask(counter, "often", region="eu", team="a")
    ask(counter, "often", team="a", region="eu")
    assert [(each.topics_pattern, each.properties, each.count) for each in counter.most_asked()] == [
        ("often", (), 3),
        (None, (), 2),
        ("often", (("region", "eu"), ("team", "a")), 2),
        ("rare", (), 1),
    ]
    first = counter.most_asked(1)[0]
    assert (first.namespace, first.mode, first.error, first.seconds) == ("t/n", Mode.PERSISTENT, 0, 1.5)


def test_modes_and_namespaces_are_different_questions() -> None:
    counter = QuestionCounter()
    for namespace in ("t/a", "t/b"):
        for mode in Mode:
            counter.record(namespace, mode, None, {}, 0)
    assert len(counter.most_asked()) == 6


def test_of_equal_counts_the_dearer_comes_first() -> None:
    counter = QuestionCounter()
    counter.record("t/n", Mode.ALL, "cheap", {}, 0.1)
    counter.record("t/n", Mode.ALL, "dear", {}, 9.0)
    assert [each.topics_pattern for each in counter.most_asked()] == ["dear", "cheap"]


def test_memory_is_bounded_by_number_and_by_text() -> None:
    counter = QuestionCounter(capacity=8, max_text=20)
    ask(counter, "x" * 21)
    ask(counter, "x" * 15, region="0123456")
    assert counter.most_asked() == []
    for number in range(1000):
        ask(counter, f"question-{number}")
    assert len(counter.most_asked()) <= 8


@pytest.mark.parametrize("capacity", [4, 16])
@given(asked=st.lists(st.integers(0, 40), max_size=300))
def test_a_count_is_right_but_for_its_error(capacity: int, asked: list[int]) -> None:
    """Space-Saving's promise, also where room is made in batches."""
    counter = QuestionCounter(capacity=capacity)
    for number in asked:
        ask(counter, str(number))
    true = Counter(str(number) for number in asked)
    found = counter.most_asked()
    assert len(found) <= capacity
    for each in found:
        assert each.topics_pattern is not None
        assert each.count - each.error <= true[each.topics_pattern] <= each.count
