"""Equal catalogues give equal bytes, and a small change touches few of them."""

from __future__ import annotations

import pytest

from broker_core.errors import InvalidPattern
from broker_core.names import Mode
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.format.manifest import Manifest
from tests.support.generation_builder import build_generation
from tests.support.generations import CATALOGUE, QUESTIONS, memory

LARGE = {"t/n": {"persistent": [f"orders-{i:05}" for i in range(5000)]}, "t/m": {"persistent": ["a", "b"]}}
REQUESTED = [
    CanonicalQuestion.of("t/n", Mode.PERSISTENT, ".*7"),
    CanonicalQuestion.of("t/m", Mode.ALL, "t/m/a"),
]


def built(catalogue: dict[str, dict[str, list[str]]], requested: list[CanonicalQuestion]) -> Manifest:
    return build_generation(memory(), catalogue, requested, catalogue_id="c", segment_bytes=16 * 1024)


def test_the_same_catalogue_in_any_order_gives_the_same_generation() -> None:
    first = build_generation(memory(), CATALOGUE, QUESTIONS, catalogue_id="c")
    turned = {
        namespace: {domain: names[::-1] for domain, names in reversed(domains.items())}
        for namespace, domains in reversed(list(CATALOGUE.items()))
    }
    assert build_generation(memory(), turned, QUESTIONS[::-1], catalogue_id="c").data == first.data


def test_a_name_more_touches_one_segment() -> None:
    before = built(LARGE, REQUESTED)
    more = LARGE | {"t/n": {"persistent": [*LARGE["t/n"]["persistent"], "orders-02500x"]}}
    after = built(more, REQUESTED)
    assert len(before.segments) > 5
    assert len(set(after.segments) - set(before.segments)) == 1
    assert after.topics == before.topics + 1


def test_a_pattern_more_touches_the_segments_of_its_namespace() -> None:
    before = built(LARGE, REQUESTED)
    after = built(LARGE, [*REQUESTED, CanonicalQuestion.of("t/m", Mode.PERSISTENT, "t/m/b")])
    assert len(set(after.segments) - set(before.segments)) == 1


def test_a_catalogue_without_versions_is_static() -> None:
    made = build_generation(memory(), CATALOGUE, [], catalogue_id="c")
    assert made.static
    assert dict(made.namespaces) == dict.fromkeys(CATALOGUE)
    versions = {namespace: number for number, namespace in enumerate(CATALOGUE)}
    assert not build_generation(memory(), CATALOGUE, [], catalogue_id="c", versions=versions).static


def test_a_pattern_that_re2_does_not_run_is_refused() -> None:
    with pytest.raises(InvalidPattern):
        build_generation(
            memory(), CATALOGUE, [CanonicalQuestion.of("t/n", Mode.ALL, "(?!x)")], catalogue_id="c"
        )
