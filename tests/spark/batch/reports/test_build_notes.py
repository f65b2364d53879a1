"""Lines about what a build refused, ignored or left out: bounded, and none of what there is nothing of."""

from __future__ import annotations

import numpy as np

from broker_core_spark.batch.questions.load_questions import questions_of_rows
from broker_core_spark.batch.reports.build_notes import build_notes, empty_property_notes
from broker_core_spark.batch.segments.question_totals import QuestionTotals


def test_a_build_that_took_everything_has_none() -> None:
    loaded = questions_of_rows([("here", {"namespace": "a/b", "pattern": "x"})])
    assert build_notes(loaded, (), rows_left_out=0, not_compared="", full_because="") == ()


def test_many_refused_patterns_are_counted() -> None:
    refused = [("here", {"namespace": "a/b", "pattern": f"(?={number})"}) for number in range(22)]
    unknown = [("here", {"namespace": name, "pattern": "x"}) for name in ("no/where", "a/none")]
    more = [("here", {"namespace": "a/b", "properties": {"k": "v"}})]
    loaded = questions_of_rows([*refused, *unknown, *more], property_keys=["zone"])
    left_out = [question for question in loaded.questions if question.namespace != "a/b"]
    notes = build_notes(loaded, left_out, rows_left_out=1, not_compared="torn", full_because="new keys")
    assert notes[:2] == (
        "built in full: new keys",
        "ignored: the property 'k' of 1 question selects nothing; those that do are zone (--strict refuses)",
    )
    assert notes[2].startswith("refused: a/b '(?=0)': RE2 refuses it")
    assert notes[-4:] == (
        "refused: 2 more patterns",
        "the gates could not compare with what is published: torn",
        "left out: 1 row of the catalogue (--where)",
        "left out: 2 questions of a/none ...: the catalogue has no such namespace",
    )
    assert len(notes) == 2 + 20 + 4


def test_a_property_whose_questions_are_all_empty_is_named() -> None:
    loaded = questions_of_rows(
        [
            ("here", {"namespace": "a/b", "properties": properties})
            for properties in ({}, {"zone": "1"}, {"team": "x"}, {"team": "x", "zone": "2"}, {"team": "y"})
        ],
        property_keys=["team", "zone"],
    )
    has_topics = [
        dict(one.selector.properties) in ({}, {"team": "y"}) for one in loaded.questions
    ]  # a question without properties says nothing about them
    totals = QuestionTotals(loaded.questions, np.array(has_topics, np.int64), np.zeros(5, np.uint32))
    (note,) = empty_property_notes(totals)
    assert note.startswith("empty: 2 questions by the property 'zone' without a topic")
    assert empty_property_notes(QuestionTotals(loaded.questions, np.ones(5, np.int64), totals.crcs)) == ()
