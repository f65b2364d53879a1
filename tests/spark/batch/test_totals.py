"""Counts and hashes of questions from the tallies of segments, and reading tallies back from files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from broker_core.names import Mode
from broker_core.topics_hash import topics_hash
from broker_core_spark.batch.segment_task import SegmentResult
from broker_core_spark.batch.totals import read_tallies, total_of_questions
from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format.build import build_generation
from broker_core_spark.format.question import Question
from broker_core_spark.store import open_store

NAMES = {
    "a/b": {
        "persistent": [f"t{number}" for number in range(500)],
        "non-persistent": [f"t{number}" for number in range(300)],
    },
    "a/c": {"persistent": ["t7"]},
}


def test_totals_are_those_of_the_names(tmp_path: Path) -> None:
    questions = [
        Question.of("a/b", mode, pattern) for mode in Mode for pattern in (None, ".*7", "a/b/t1.*", "none")
    ]
    questions.append(Question.of("a/c", Mode.ALL, ".*7"))
    store = open_store(str(tmp_path))
    manifest = build_generation(store, NAMES, questions, catalogue_id="static", segment_bytes=2048)
    assert len(manifest.segments) > 3
    results = [SegmentResult.parse(read_tallies(store, entry).to_bytes()) for entry in manifest.segments]
    for total in total_of_questions(questions, results):
        question = total.question
        matching = [
            f"{domain}://{question.namespace}/{name}"
            for domain in question.domains
            for name in NAMES[question.namespace].get(domain, [])
            if {None: True, ".*7": name.endswith("7"), "a/b/t1.*": name.startswith("t1"), "none": False}[
                question.selector.pattern
            ]
        ]
        assert (total.count, total.topics_hash) == (len(matching), topics_hash(matching)), question
    assert total_of_questions([], results) == []
    assert [total.count for total in total_of_questions(questions[:1], [])] == [0]


def test_a_file_that_is_another_one_is_refused(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    manifest = build_generation(store, NAMES, [], catalogue_id="static", segment_bytes=2048)
    entry = manifest.segments[0]
    with pytest.raises(InvalidGeneration, match="its runs are not"):
        read_tallies(store, replace(entry, runs=tuple((name, domain, 1) for name, domain, _ in entry.runs)))
    path = tmp_path / entry.name
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(InvalidGeneration, match="its end"):
        read_tallies(store, entry)
