"""Learned questions from one build to the next: kept while they are young, the most recent ones if there are many."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from broker_core.names import Mode
from broker_core_spark.batch.build_errors import InvalidPatterns
from broker_core_spark.batch.questions import learned_questions
from broker_core_spark.batch.questions.learned_questions import kept_rows, leave_learned, oldest_kept
from broker_core_spark.batch.questions.load_questions import LoadedQuestions, questions_of_rows
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.store import Store
from broker_core_spark.store.build_records import write_learned
from tests.support.generations import memory
from tests.support.narrowed import of_type

#: When the tests were read: up to some hours ago.
NOW = datetime.now(UTC).replace(microsecond=0)


def row(pattern: str, *, days: float | None = None, **more: Any) -> tuple[str, dict[str, Any]]:
    """A row of ``days`` ago, or one that nobody learned."""
    requested = {} if days is None else {"last_asked": (NOW - timedelta(days=days)).isoformat()}
    return pattern, {"namespace": "t/n", "pattern": pattern, **requested, **more}


def patterns(loaded: LoadedQuestions) -> list[str | None]:
    return [question.selector.pattern for question in loaded.questions]


def loaded_of(
    store: Store, *rows: tuple[str, dict[str, Any]], days: float = 30, **more: Any
) -> LoadedQuestions:
    seconds = days * 86400
    return questions_of_rows(rows, kept=kept_rows(store), oldest=oldest_kept(seconds), **more)


def built(store: Store, number: int, *rows: tuple[str, dict[str, Any]], **more: Any) -> LoadedQuestions:
    """What a build loads and leaves."""
    loaded = loaded_of(store, *rows, **more)
    leave_learned(store, number, loaded)
    return loaded


def test_a_restarted_broker_loses_nothing_until_it_is_too_old() -> None:
    store = memory()
    first = built(store, 1, row("a", days=1, count=7), row("b", days=20), row("always"))
    assert (patterns(first), first.kept, first.total_times) == (["a", "always", "b"], 0, 9)
    # The broker knows one question, and one that is new. What was not learned has no row any more.
    second = built(store, 2, row("b", days=0), row("c", days=0))
    assert patterns(second) == ["a", "b", "c"]
    assert (second.kept, second.rows, second.duplicates) == (1, 2, 0)
    assert second.times[CanonicalQuestion.of("t/n", Mode.PERSISTENT, "a")] == 7
    assert second.learned[CanonicalQuestion.of("t/n", Mode.PERSISTENT, "b")] == NOW
    third = built(store, 3)
    assert (patterns(third), third.kept) == (["a", "b", "c"], 3)
    assert patterns(loaded_of(store, days=0.5)) == ["b", "c"]
    assert patterns(loaded_of(store, row("x", days=0), days=0.5)) == ["b", "c", "x"]


def test_a_row_that_was_asked_too_long_ago_is_left_out() -> None:
    store = memory()
    loaded = loaded_of(store, row("old", days=31), row("young", days=29), row("young"), row("fixed"))
    assert patterns(loaded) == ["fixed", "young"]
    assert (loaded.forgotten, loaded.duplicates, loaded.rows) == (1, 1, 4)
    assert patterns(questions_of_rows([row("old", days=400)], oldest=oldest_kept(0))) == ["old"]


def test_what_is_kept_is_checked_as_what_is_given() -> None:
    store = memory()
    built(store, 1, row("long-one", days=1), row("x", days=1, properties={"k": "1"}), property_keys=("k",))
    assert patterns(loaded_of(store, max_length=3, property_keys=("k",))) == ["x"]
    (question,) = loaded_of(store, max_length=3, property_keys=()).questions
    assert question.selector.properties == ()
    with pytest.raises(
        InvalidPatterns, match=r"learned/000000000001\.jsonl .*, line \d: .*pass --property-key k,"
    ):
        loaded_of(store, property_keys=None)
    write_learned(store, 2, b"{torn")
    with pytest.raises(
        InvalidPatterns, match=r"learned/000000000002\.jsonl \(.*deleted.*\), line 1: not an object"
    ):
        loaded_of(store)


def test_of_many_the_last_ones_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learned_questions, "MOST_LEARNED", 3)
    store = memory()
    built(store, 1, *(row(f"q{day}", days=day) for day in range(6)), row("q-often", days=2, count=9))
    assert [json.loads(json.dumps(found))["pattern"] for _, found in kept_rows(store)] == [
        "q0",
        "q1",
        "q-often",
    ]


def test_a_clock_that_is_ahead_keeps_nothing_for_ever() -> None:
    store = memory()
    built(store, 1, row("ahead", days=-4000))
    ((_, found),) = kept_rows(store)
    assert datetime.fromisoformat(of_type(found, dict)["last_asked"]) <= datetime.now(UTC)


def test_without_learned_questions_nothing_is_left() -> None:
    store = memory()
    built(store, 1, row("fixed"))
    assert list(store.list("learned")) == []
