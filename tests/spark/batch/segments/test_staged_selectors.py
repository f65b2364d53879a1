"""A task reads the selectors of its namespaces, with their keys."""

from __future__ import annotations

from broker_core.names import Mode
from broker_core_spark.batch.segments.staged_selectors import stage_selectors
from broker_core_spark.format.canonical_question import CanonicalQuestion, required_selectors
from broker_core_spark.format.selector_keys import NOTHING_ASKED, SelectorKeys
from tests.support.generations import memory

QUESTIONS = [
    CanonicalQuestion.of(namespace, mode, pattern, properties)
    for namespace in ("a/b", "a/c")
    for mode in (Mode.PERSISTENT, Mode.ALL)
    for pattern in (None, "a/b/ü.*", *(f".*{number}" for number in range(50)))
    for properties in ({}, {"k": "v", "j": '"'})
]


def test_each_place_has_its_selectors_with_their_keys() -> None:
    store, required = memory(), required_selectors(QUESTIONS)
    staged = stage_selectors(store, "temporary/selectors", required)
    for place, selectors in required.items():
        assert staged.read(store, place) == [(selector.key, selector) for selector in selectors]
        assert staged.keys(store, place) == SelectorKeys.of(selector.key for selector in selectors)


def test_a_namespace_that_nobody_asks_about_has_none() -> None:
    store = memory()
    staged = stage_selectors(store, "temporary/selectors", required_selectors(QUESTIONS))
    assert staged.read(store, ("a/d", "persistent")) == []
    assert staged.keys(store, ("a/d", "persistent")) == NOTHING_ASKED
    some = staged.between(b"a/c\x01", b"a/d\x02")
    assert set(some.places) == {("a/c", "non-persistent"), ("a/c", "persistent")}
