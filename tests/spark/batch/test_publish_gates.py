"""Gates before publishing: numbers of both sides in the message, and what opens them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from broker_core_spark.batch import publish_gates
from broker_core_spark.batch.publish_gates import (
    HadBefore,
    PublishGates,
    PublishRefused,
    check_questions,
    check_topics,
    had_before,
    published_before,
)
from broker_core_spark.batch.questions.load_questions import LoadedQuestions, questions_of_rows
from broker_core_spark.format.manifest import Manifest
from broker_core_spark.store import Store
from broker_core_spark.store.publishing import begin_build, use_generation
from tests.support.generation_builder import build_generation
from tests.support.generations import memory
from tests.support.narrowed import present


def rows_of(*names: str, count: int = 1, namespace: str = "t/n") -> list[dict[str, Any]]:
    return [{"namespace": namespace, "pattern": name, "count": count} for name in names]


def loaded_of(rows: Sequence[dict[str, Any]], max_length: int | None = None) -> LoadedQuestions:
    return questions_of_rows([("here", row) for row in rows], max_length=max_length)


def had_of(store: Store, loaded: LoadedQuestions, now: datetime | None = None) -> tuple[HadBefore, ...]:
    return had_before(store, published_before(store)[0], loaded, now)


def generation(
    store: Store, rows: Sequence[dict[str, Any]], topics: int, *, others: int = 0, anew: bool = False
) -> Manifest:
    catalogue = {
        "t/n": {"persistent": [f"t-{number}" for number in range(topics)]},
        "t/others": {"persistent": [f"t-{number}" for number in range(others)]},
    }
    with begin_build(store) as build:
        manifest = build_generation(store, catalogue, loaded_of(rows).questions, catalogue_id="c")
        build.publish(manifest, anew=anew)
    return manifest


@pytest.fixture
def store() -> Store:
    return memory()


def refusal(
    gates: PublishGates,
    store: Store,
    rows: Sequence[dict[str, Any]],
    *,
    without: str | None = None,
    max_length: int | None = None,
    now: datetime | None = None,
) -> str:
    """Why the questions of rows, apart from those of a namespace, are refused; an empty text if they are not."""
    loaded = loaded_of(rows, max_length)
    before = had_of(store, loaded, now)
    known = [question for question in loaded.questions if question.namespace != without]
    try:
        check_questions(gates, before, known, loaded)
    except PublishRefused as error:
        return str(error)
    return ""


NUMBERED = [f"q{number}" for number in range(10)]


def test_the_first_generation_has_the_least_number_of_questions(store: Store) -> None:
    assert published_before(store) == (None, "")
    assert refusal(PublishGates(), store, rows_of("a")) == ""
    assert refusal(PublishGates(), store, []) == (
        "not published: 0 questions: at least 1 (min_questions). --allow-shrink publishes it"
    )
    assert refusal(PublishGates(min_questions=0), store, []) == ""
    assert "3 questions: at least 4" in refusal(PublishGates(min_questions=4), store, rows_of("a", "b", "c"))


def test_a_loss_of_questions_names_both_sides(store: Store) -> None:
    manifest = generation(store, rows_of(*NUMBERED), 3)
    assert refusal(PublishGates(max_coverage_loss=1), store, rows_of(*NUMBERED[:5])) == ""
    said = refusal(PublishGates(), store, rows_of(*NUMBERED[:4]))
    assert f"4 questions, and generation {manifest.id[:12]} has 10: a loss of 60.0%, at most 50.0%" in said
    assert said.endswith(" The published generation stays; --allow-shrink publishes it")
    assert refusal(PublishGates(max_question_loss=0.6), store, rows_of(*NUMBERED[:4])) == ""
    assert refusal(PublishGates(allow_shrink=True), store, []) == ""
    nothing = refusal(PublishGates(), store, [])
    assert (
        f"0 questions, and generation {manifest.id[:12]} has 10: at least 1 (min_questions); 0 que" in nothing
    )


def test_a_loss_of_coverage_is_measured_by_what_is_asked_now(store: Store) -> None:
    generation(store, rows_of("often", "rare"), 3)
    rows = [*rows_of("rare", "new"), *rows_of("often", count=18)]
    assert refusal(PublishGates(), store, rows) == ""
    # The namespace of most questions has gone.
    others = [*rows, *rows_of("a", "b", count=40, namespace="t/others")]
    assert refusal(PublishGates(), store, others, without="t/others") == ""  # it was not covered before
    both = generation(store, [*rows_of("often", "rare"), *rows_of("a", "b", namespace="t/others")], 3)
    said = refusal(PublishGates(), store, others, without="t/others")
    assert f"20.0% of what is asked is covered, and generation {both.id[:12]} covers 99.0%" in said
    assert "at most 20 points less (max_coverage_loss)" in said
    assert refusal(PublishGates(max_coverage_loss=0.8), store, others, without="t/others") == ""


def test_refused_patterns_are_not_covered(store: Store) -> None:
    generation(store, rows_of("a", "b"), 3)
    rows = [*rows_of("a"), *rows_of("(?!x)", count=9), *rows_of("b", count=10)]
    assert refusal(PublishGates(max_question_loss=1), store, rows) == ""
    worse = [*rows_of("a"), *rows_of("(?!x)", count=9)]
    assert refusal(PublishGates(max_question_loss=1), store, worse) == ""  # before, it was none either


def topic_refusal(gates: PublishGates, store: Store, manifest: Manifest, rows: Any) -> str:
    loaded = loaded_of(rows)
    try:
        check_topics(gates, had_of(store, loaded), loaded, manifest.segments)
    except PublishRefused as error:
        return str(error)
    return ""


def test_a_loss_just_above_the_most_reads_as_more() -> None:
    (said,) = publish_gates._loss("topic", "", 1000, 2001, 0.5, HadBefore("g", 0, 2001, 0))
    assert "has 2,001: a loss of 50.1%, at most 50.0%" in said


def test_a_loss_of_topics_is_that_of_the_namespaces_of_the_questions(store: Store) -> None:
    rows, both = rows_of("a"), [*rows_of("a"), *rows_of("a", namespace="t/others")]
    first = generation(store, both, 10, others=90)
    less = generation(memory(), both, 4, others=90)
    said = topic_refusal(PublishGates(), store, less, rows)
    assert f"4 topics in the namespaces of the questions, and generation {first.id[:12]} has 10: " in said
    assert "a loss of 60.0%, at most 50.0% (max_topic_loss)" in said
    assert topic_refusal(PublishGates(), store, less, both) == ""  # 94 of 100
    assert topic_refusal(PublishGates(), store, generation(memory(), rows, 10), rows) == ""
    assert topic_refusal(PublishGates(), memory(), less, rows) == ""
    for gates in (PublishGates(max_topic_loss=0.6), PublishGates(allow_shrink=True)):
        assert topic_refusal(gates, store, less, rows) == ""


def test_a_pattern_that_is_refused_by_now_is_a_loss_of_coverage(store: Store) -> None:
    long = ["x" * 40 + str(number) for number in range(3)]
    rows = [*rows_of("a", "b", "c", "d", "e", "f", "g"), *rows_of(*long, count=300)]
    manifest = generation(store, rows, 3)
    assert refusal(PublishGates(), store, rows) == ""
    said = refusal(PublishGates(), store, rows, max_length=30)
    assert f"0.8% of what is asked is covered, and generation {manifest.id[:12]} covers 100.0%" in said
    # Learned questions of the build before count as those of a source do.
    learned = {**rows[-1], "last_asked": "2026-03-01T10:15:00Z"}
    loaded = questions_of_rows([("here", rows[0])], max_length=30, kept=[("there", learned)])
    assert loaded.total_times == 301
    (had,) = had_of(store, loaded)
    assert had.times == 301


def test_many_small_losses_are_compared_with_the_best_of_the_day(store: Store) -> None:
    rows = rows_of(*(f"q{number}" for number in range(20)))
    gates = PublishGates(max_coverage_loss=1)
    best = generation(store, rows, 20)
    assert refusal(gates, store, rows[:11]) == ""
    less = generation(store, rows[:11], 11)
    said = refusal(gates, store, rows[:6])
    assert f"6 questions, and generation {best.id[:12]} has 20: a loss of 70.0%" in said
    fewer = generation(memory(), rows, 8)
    assert f"generation {best.id[:12]} has 20: a loss of 60.0%" in topic_refusal(gates, store, fewer, rows)
    # After a day only the last one counts, and after a choice of the operator what follows it.
    later = datetime.now(UTC) + timedelta(hours=25)
    assert refusal(gates, store, rows[:6], now=later) == ""
    assert f"generation {less.id[:12]} has 11" in refusal(gates, store, rows[:5], now=later)
    generation(store, rows[:11], 12, anew=True)
    assert refusal(gates, store, rows[:6]) == ""
    generation(store, rows, 20)
    assert refusal(gates, store, rows[:6]) != ""
    use_generation(store, less.id)
    assert refusal(gates, store, rows[:6]) == ""
    assert refusal(gates, store, rows[:5]) != ""


def test_what_gc_removed_is_not_compared_with_and_of_many_some_are(store: Store) -> None:
    rows = rows_of(*(f"q{number}" for number in range(60)))
    made = [generation(store, rows[: 60 - number], 3) for number in range(50)]
    loaded = loaded_of(rows)
    found = had_of(store, loaded)
    assert [found[0].questions, max(one.questions for one in found)] == [11, 60]
    assert len(found) <= 25
    store.delete(made[0].entry.name)
    assert max(one.questions for one in had_of(store, loaded)) < 60


def test_a_generation_that_cannot_be_read_is_not_compared(store: Store) -> None:
    manifest = generation(store, rows_of(*NUMBERED), 3)
    before = present(published_before(store)[0])
    assert (len(before.lines), before.topics) == (10, {("t/n", "persistent"): 3})
    name = f"generation {before.generation[:12]}"
    store.delete(manifest.questions.name)
    reason = f"{name} cannot be read: {manifest.questions.name} is not in the store"
    assert published_before(store) == (None, reason)
    store.delete(manifest.entry.name)
    found, reason = published_before(store)
    assert found is None
    assert reason.startswith(f"{name} cannot be read: ")


def test_a_generation_of_another_format_is_not_compared(store: Store) -> None:
    data = b'{"format":"broker-core listing generation","version":1}\n'
    generation = hashlib.sha256(data).hexdigest()
    store.put_new(f"manifests/{generation}.json", data)
    when = "2026-03-01T10:15:00+00:00"
    store.put_new(f"pointers/{1:012}.json", json.dumps({"generation": generation, "when": when}).encode())
    found, reason = published_before(store)
    assert found is None
    start = f"generation {generation[:12]} cannot be read: format version 1: only 2 is known here"
    assert reason.startswith(start)


def test_a_pointer_that_cannot_be_read_names_nothing_to_compare_with(store: Store) -> None:
    store.put_new(f"pointers/{1:012}.json", b"torn")
    found, reason = published_before(store)
    assert found is None
    assert reason.startswith("no pointer can be read: pointers/000000000001.json: ")
    manifest = generation(store, rows_of("a"), 3)
    found, reason = published_before(store)
    assert (present(found).generation, reason) == (manifest.id, "")  # a torn one before it is no matter
    for number in (8, 9):
        store.put_new(f"pointers/{number:012}.json", b"torn")
    found, reason = published_before(store)
    older = present(found)
    assert older.generation == manifest.id
    assert reason.startswith("pointers/000000000009.json: it is no pointer")
    assert reason.endswith(
        f"; they compared with generation {older.generation[:12]}, the newest that a pointer names"
    )
