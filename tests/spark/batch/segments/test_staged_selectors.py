"""A task reads the selectors of its namespaces and its group, and groups have each selector once."""

from __future__ import annotations

import pytest

from broker_core.names import Mode
from broker_core_spark.batch.segments.staged_selectors import stage_selectors
from broker_core_spark.format.canonical_question import CanonicalQuestion, required_selectors
from broker_core_spark.format.selector_keys import SelectorKeys
from tests.support.generations import memory

QUESTIONS = [
    CanonicalQuestion.of(namespace, mode, pattern, properties)
    for namespace in ("a/b", "a/c")
    for mode in (Mode.PERSISTENT, Mode.ALL)
    for pattern in (None, "a/b/ü.*", *(f".*{number}" for number in range(50)))
    for properties in ({}, {"k": "v", "j": '"'})
]


@pytest.mark.parametrize("groups", [1, 2, 7, 500])
def test_groups_have_each_selector_once_with_its_key(groups: int) -> None:
    store, required = memory(), required_selectors(QUESTIONS)
    staged = stage_selectors(store, "temporary/selectors", required)
    for place, selectors in required.items():
        read = [staged.read(store, place, group, groups) for group in range(groups)]
        keys = SelectorKeys.of(selector.key for selector in selectors)
        assert all(every == keys for _, every in read)
        assert staged.keys(store)[place] == keys
        found = [pair for own, _ in read for pair in own]
        assert found == [(selector.key, selector) for selector in selectors]
    if groups == 7:
        sizes = [len(staged.read(store, ("a/b", "persistent"), group, 7)[0]) for group in range(7)]
        assert max(sizes) < 3 * min(sizes)


def test_a_namespace_that_nobody_asks_about_has_none() -> None:
    store = memory()
    staged = stage_selectors(store, "temporary/selectors", required_selectors(QUESTIONS))
    assert staged.read(store, ("a/d", "persistent"))[0] == []
    assert staged.keys(store).keys() == required_selectors(QUESTIONS).keys()
    some = staged.between(b"a/c\x01", b"a/d\x02")
    assert set(some.places) == {("a/c", "non-persistent"), ("a/c", "persistent")}
    assert some.keys(store) == {place: staged.keys(store)[place] for place in some.places}
    assert staged.of([]).keys(store) == {}
