"""Counts of frequent questions: exact while there is room, bounded always."""

from __future__ import annotations

from collections import Counter
from sys import getsizeof

import hypothesis.strategies as st
import pytest
from hypothesis import given

from broker_core.names import Mode
from broker_core.pipeline.reports.finished_listings import QuestionCounter
from broker_core.servers.http.frequent_questions import question_lines
from tests.support.narrowed import present


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
    assert [(each.topics_pattern, each.properties, each.count) for each in counter.most_frequent()] == [
        ("often", (), 3),
        (None, (), 2),
        ("often", (("region", "eu"), ("team", "a")), 2),
        ("rare", (), 1),
    ]
    first = counter.most_frequent(1)[0]
    assert (first.namespace, first.mode, first.error, first.seconds) == ("t/n", Mode.PERSISTENT, 0, 1.5)


def test_modes_and_namespaces_are_different_questions() -> None:
    counter = QuestionCounter()
    for namespace in ("t/a", "t/b"):
        for mode in Mode:
            counter.record(namespace, mode, None, {}, 0)
    assert len(counter.most_frequent()) == 6


def test_of_equal_counts_the_dearer_comes_first() -> None:
    counter = QuestionCounter()
    counter.record("t/n", Mode.ALL, "cheap", {}, 0.1)
    counter.record("t/n", Mode.ALL, "dear", {}, 9.0)
    assert [each.topics_pattern for each in counter.most_frequent()] == ["dear", "cheap"]


def test_memory_is_bounded_by_number_and_by_text() -> None:
    counter = QuestionCounter(capacity=8, max_text=20)
    ask(counter, "x" * 21)
    ask(counter, "x" * 15, region="0123456")
    assert counter.most_frequent() == []
    for number in range(1000):
        ask(counter, f"question-{number}")
    assert len(counter.most_frequent()) <= 8


def test_hostile_text_cannot_fill_the_memory() -> None:
    """Long patterns of wide characters, in long namespaces, with many properties: fewer fit."""
    counter = QuestionCounter()
    ask(counter, "often", 1000)
    for number in range(6000):
        counter.record(
            "t/" + "n" * 200, Mode.ALL, f"{number:06}" + "\U0001f600" * 900, {"k" * 50: f"{number}"}, 1e-3
        )
    found = counter.most_frequent()
    texts = [each.topics_pattern for each in found if each.topics_pattern]
    assert sum(getsizeof(text) for text in texts) < counter._bytes <= counter.max_bytes
    assert found[0].topics_pattern == "often"
    assert len(found) > 100
    assert sum(map(len, question_lines(found))) < 16 * counter.max_bytes


def test_what_is_counted_of_the_text_is_let_go_with_it() -> None:
    counter = QuestionCounter(capacity=8)
    ask(counter, "a")
    one = counter._bytes
    for number in range(100):
        ask(counter, f"{number % 10}")
    assert counter._bytes == one * len(counter.most_frequent())
    tiny = QuestionCounter(max_bytes=10)
    ask(tiny, "a")
    assert (tiny._bytes, tiny.most_frequent()) == (0, [])


@pytest.mark.parametrize("capacity", [4, 16])
@given(asked=st.lists(st.integers(0, 40), max_size=300))
def test_a_count_is_right_but_for_its_error(capacity: int, asked: list[int]) -> None:
    """Space-Saving's promise, also if room is made in batches."""
    counter = QuestionCounter(capacity=capacity)
    for number in asked:
        ask(counter, str(number))
    true = Counter(str(number) for number in asked)
    found = counter.most_frequent()
    assert len(found) <= capacity
    for each in found:
        assert each.count - each.error <= true[present(each.topics_pattern)] <= each.count
