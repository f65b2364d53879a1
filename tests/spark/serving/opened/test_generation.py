"""A generation answers as matching name by name does: names, order, hash and count."""

from __future__ import annotations

import gc
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker_core.errors import InvalidPattern
from broker_core.names import Mode, TopicName
from broker_core.patterns import compile_pattern
from broker_core_spark.errors import NoSuchGeneration
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.serving.opened import generation as module
from broker_core_spark.serving.opened.generation import Generation
from broker_core_spark.serving.opened.verify_and_map import SampleChecks
from tests.support.generation_builder import build_generation
from tests.support.generations import (
    CATALOGUE,
    PATTERNS,
    QUESTIONS,
    catalogues,
    expected,
    memory,
    questions_about,
    questions_of,
)
from tests.support.narrowed import present
from tests.support.regexes import regexes
from tests.support.topics import assert_listing, assert_selection, visible


def test_every_question_has_its_answer() -> None:
    store = memory()
    made = build_generation(store, CATALOGUE, QUESTIONS, catalogue_id="c", segment_bytes=1024)
    assert len(made.segments) >= 3
    generation = Generation.open(store, made.id)
    assert generation.manifest == made
    assert questions_of(generation) == sorted(QUESTIONS, key=lambda question: question.line)
    for question in QUESTIONS:
        answer = present(generation.lookup(question))
        names = expected(CATALOGUE, question)
        assert_selection(answer.selection, names)
        assert answer.count == len(names)
        assert answer.topics_hash == answer.selection.topics_hash


def test_a_namespace_of_several_segments_is_indexed_when_it_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ENTRIES_AT_ONCE", 5)
    store = memory()
    made = build_generation(store, CATALOGUE, QUESTIONS, catalogue_id="c", segment_bytes=1024)
    generation = Generation.open(store, made.id)
    both = CanonicalQuestion.of("t/n", Mode.ALL, None)
    large = ("t/n", "persistent")
    assert (generation.unindexed(both), generation.indexed) == (
        [large],
        {},
    )  # the other one is in one segment
    assert generation.unindexed(CanonicalQuestion.of("t/n", Mode.ALL, "no row of the patterns")) == []
    generation.index([large, ("t/n", "non-persistent"), ("t/n", "elsewhere")])
    assert generation.unindexed(both) == []
    picking = [one for one in questions_about(["t/n"], PATTERNS) if expected(CATALOGUE, one)]
    entries = sum(one.mode == Mode.PERSISTENT for one in picking)
    assert entries > 5  # those of several stretches
    assert generation.indexed == {large: 48 * entries}
    assert Generation.open(store, made.id, before=generation).indexed == generation.indexed
    for question in QUESTIONS:
        answer = present(generation.lookup(question))
        assert (answer.count, answer.topics_hash) == (len(answer.selection), answer.selection.topics_hash)
        assert_selection(answer.selection, expected(CATALOGUE, question))


def test_what_was_not_asked_has_no_answer() -> None:
    store = memory()
    made = build_generation(
        store, CATALOGUE, QUESTIONS[:5], catalogue_id="c", versions=dict.fromkeys(CATALOGUE, 7)
    )
    generation = Generation.open(store, made.id)
    assert generation.lookup(CanonicalQuestion.of("t/n", Mode.ALL, "unknown")) is None
    assert generation.lookup(CanonicalQuestion.of("x/y", Mode.ALL, None)) is None
    assert generation.lookup(CanonicalQuestion.of("t/n", Mode.ALL, None, {"k": "v"})) is None
    with pytest.raises(NoSuchGeneration):
        Generation.open(store, "0" * 64)


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("namespace", sorted(CATALOGUE))
def test_the_listing_of_a_namespace_has_all_of_it(namespace: str, mode: Mode) -> None:
    store = memory()
    question = CanonicalQuestion.of(namespace, mode, None)
    made = build_generation(store, CATALOGUE, [question], catalogue_id="c", segment_bytes=1024)
    answer = present(Generation.open(store, made.id).lookup(question))
    names = visible(
        f"{domain}://{namespace}/{name}"
        for domain, local in CATALOGUE[namespace].items()
        if mode.lists(domain)
        for name in local
    )
    assert_listing(answer.selection.listing, names)


@settings(max_examples=25, deadline=None)
@given(
    catalogues(),
    st.lists(regexes().map(lambda regex: regex.text), max_size=4),
    st.sampled_from([64, 256, 2**20]),
)
def test_random_catalogues_and_patterns(
    catalogue: dict[str, dict[str, list[str]]], patterns: list[str], target: int
) -> None:
    usable = [text for text in patterns if "://" not in text and is_usable(text)]
    questions = questions_about(catalogue, [*usable, None, ".*a.*", "t/n/a"])
    store = memory()
    made = build_generation(store, catalogue, questions, catalogue_id="c", segment_bytes=target)
    generation = Generation.open(store, made.id)
    for question in questions:
        answer = present(generation.lookup(question))
        assert_selection(answer.selection, expected(catalogue, question))


def is_usable(text: str) -> bool:
    try:
        return compile_pattern(text).supported
    except InvalidPattern:
        return False


def test_few_listings_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LISTINGS_BYTES", 4200)
    monkeypatch.setattr(module, "SELECTIONS_BYTES", 3000)
    store = memory()
    generation = Generation.open(store, build_generation(store, CATALOGUE, QUESTIONS, catalogue_id="c").id)
    same = [CanonicalQuestion.of("t/n", Mode.ALL, pattern) for pattern in PATTERNS[:2]]
    one, other = (present(generation.lookup(question)).selection for question in same)
    assert one.listing is other.listing
    for question in QUESTIONS:
        answer = present(generation.lookup(question))
        assert answer.selection.names.to_pylist() == expected(CATALOGUE, question)
        again = present(generation.lookup(question))
        assert again.selection is answer.selection


def test_properties_pick_too() -> None:
    full = [f"persistent://t/n/orders-{i:03}" for i in range(60)]
    properties = {name: {"tier": "gold" if i % 3 else "lead", "region": "eu"} for i, name in enumerate(full)}
    properties["persistent://t/n/a"] = {"tier": "gold"}
    questions = [
        CanonicalQuestion.of("t/n", mode, pattern, wanted)
        for mode in Mode
        for pattern in PATTERNS
        for wanted in ({}, {"tier": "gold"}, {"tier": "lead", "region": "eu"}, {"region": "us"})
    ]
    store = memory()
    made = build_generation(
        store,
        CATALOGUE,
        questions,
        catalogue_id="c",
        properties=properties,
        property_keys=["tier", "region"],
        segment_bytes=1024,
    )
    generation = Generation.open(store, made.id)
    for question in questions:
        answer = present(generation.lookup(question))
        names = expected(CATALOGUE, question, properties)
        assert answer.selection.names.to_pylist() == names
        assert (answer.count, answer.selection.topics_hash) == (len(names), answer.topics_hash)
    partitions = expected(
        CATALOGUE, CanonicalQuestion.of("t/n", Mode.ALL, "t/n/a", {"tier": "gold"}), properties
    )
    assert [TopicName.parse(name).partition for name in partitions] == [0, 10, 2]


def test_a_registered_question_costs_next_to_no_memory() -> None:
    """Questions are mapped: each takes less than 200 bytes of memory."""
    catalogue = {"t/n": {"persistent": [f"x{i:04}" for i in range(200)]}}
    store = memory()
    few, many = (
        build_generation(
            store,
            catalogue,
            [CanonicalQuestion.of("t/n", Mode.PERSISTENT, f"t/n/x{i:04}") for i in range(count)],
            catalogue_id="c",
        )
        for count in (400, 2400)
    )
    held = []
    for made in (few, many):
        gc.collect()
        tracemalloc.start()
        generation = Generation.open(store, made.id, checks=SampleChecks(rematched=0))
        gc.collect()
        held.append(tracemalloc.get_traced_memory()[0])
        tracemalloc.stop()
        assert generation.manifest.question_count in (400, 2400)
    assert (held[1] - held[0]) / 2000 < 50
