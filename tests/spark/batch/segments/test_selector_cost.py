"""Patterns that cost more are known by their texts."""

from __future__ import annotations

from broker_core.names import Mode
from broker_core_spark.batch.segments.selector_cost import namespace_costs, pattern_seconds
from broker_core_spark.format.canonical_question import CanonicalQuestion, required_selectors
from tests.support.one_test import in_one_test

CHEAP = [None, "a/b/orders-.*", "a/b/orders", r"a/b/orders\.eu-.*"]
WITH_A_CLUE = [".*orders.*", ".*-eu-.*[13]", "a/b/(orders|users)-.*", "a/b/[ou].*-daily"]
WITHOUT = [".*[13579].{8}", ".*1.*2.*", "(?i:.*orders.*)", ".*a?b?"]


@in_one_test("cheap", CHEAP)
@in_one_test("middle", WITH_A_CLUE)
@in_one_test("dear", WITHOUT)
def test_three_kinds_of_patterns(cheap: str | None, middle: str, dear: str) -> None:
    assert 3 * pattern_seconds(cheap) < pattern_seconds(middle) < pattern_seconds(dear) / 10


def test_a_namespace_costs_what_its_patterns_do() -> None:
    questions = [CanonicalQuestion.of("a/b", Mode.PERSISTENT, pattern) for pattern in WITHOUT + CHEAP]
    questions += [CanonicalQuestion.of("a/b", Mode.NON_PERSISTENT, None)]
    questions += [CanonicalQuestion.of("a/c", Mode.ALL, pattern) for pattern in CHEAP]
    costs = namespace_costs(required_selectors(questions))
    assert {name: cost.selectors for name, cost in costs.items()} == {"a/b": 8, "a/c": 4}
    assert costs["a/b"].seconds > 100 * costs["a/c"].seconds
