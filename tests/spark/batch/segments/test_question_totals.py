"""Counts and hashes of questions, added up from the entries of segments."""

from __future__ import annotations

from pathlib import Path

from broker_core.listing.listing_hash import topics_hash
from broker_core.names import Mode
from broker_core_spark.batch.segments.question_totals import question_totals
from broker_core_spark.batch.segments.tallies import read_tallies
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.store import open_store
from tests.support.generation_builder import build_generation
from tests.support.spark_catalogues import reread_all

NAMES = {
    "a/b": {
        "persistent": [f"t{number}" for number in range(500)],
        "non-persistent": [f"t{number}" for number in range(300)],
    },
    "a/c": {"persistent": ["t7"]},
}


def test_totals_are_those_of_the_names(tmp_path: Path) -> None:
    questions = [
        CanonicalQuestion.of("a/b", mode, pattern)
        for mode in Mode
        for pattern in (None, ".*7", "a/b/t1.*", "none")
    ]
    questions.append(CanonicalQuestion.of("a/c", Mode.ALL, ".*7"))
    store = open_store(str(tmp_path))
    manifest = build_generation(store, NAMES, questions, catalogue_id="static", segment_bytes=2048)
    assert len(manifest.segments) > 3
    tallies = read_tallies(store, reread_all(store, manifest, questions).tallies)
    totals = question_totals(questions, tallies)
    assert totals.matches == sum(total.count for total in totals) > 1000
    assert totals[3] == list(totals)[3]
    assert list(totals[2:5]) == list(totals)[2:5]
    for total in totals:
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
    assert list(question_totals([], tallies)) == []
    assert [(one.count, one.topics_hash) for one in question_totals(questions[:1], {})] == [(0, "00000000")]
