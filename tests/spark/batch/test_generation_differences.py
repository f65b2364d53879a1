"""Differences between generations: questions that came and went, and other topics."""

from __future__ import annotations

import numpy as np

from broker_core.names import Mode
from broker_core_spark.batch.generation_differences import UNKNOWN, differences_to, totals_file
from broker_core_spark.batch.publish_gates import PublishedBefore
from broker_core_spark.batch.segments.question_totals import QuestionTotals
from broker_core_spark.format.canonical_question import CanonicalQuestion


def _totals(rows: dict[str, tuple[int, int]]) -> QuestionTotals:
    questions = [CanonicalQuestion.of("a/b", Mode.ALL, pattern) for pattern in rows]
    counts, crcs = zip(*rows.values(), strict=True)
    return QuestionTotals(questions, np.array(counts, np.int64), np.array(crcs, np.uint32))


BEFORE = _totals({"same": (2, 5), "more": (2, 5), "fewer": (2, 5), "other": (2, 5), "gone": (2, 5)})
NOW = _totals({"more": (3, 6), "same": (2, 5), "fewer": (1, 7), "other": (2, 8), "new": (4, 9)})
PUBLISHED = PublishedBefore("f" * 64, frozenset(question.line for question in BEFORE.questions), {})


def test_each_kind_of_difference() -> None:
    found = differences_to(PUBLISHED, NOW, totals_file(BEFORE))
    assert found.added.tolist() == [False, False, False, False, True]
    assert found.counts_before.tolist() == [2, 2, 2, 2, UNKNOWN]
    assert found.changed.tolist() == [True, False, True, True, False]
    assert [question.selector.pattern for question in found.removed] == ["gone"]
    assert found.record(NOW.counts) == {
        "generation": "f" * 64,
        "added": 1,
        "removed": 1,
        "compared": True,
        "changed": 3,
        "with_more_topics": 1,
        "with_fewer_topics": 1,
    }


def test_without_totals_only_questions_are_compared() -> None:
    for data in (None, b"no table", totals_file(BEFORE)[:-9]):
        found = differences_to(PUBLISHED, NOW, data)
        assert not found.compared
        assert found.record(NOW.counts) | {"added": 1, "removed": 1, "changed": 0} == found.record(NOW.counts)


def test_a_damaged_line_is_no_removed_question() -> None:
    before = PublishedBefore("f" * 64, frozenset([b"{", b"{}"]), {})
    assert differences_to(before, NOW, None).removed == ()
