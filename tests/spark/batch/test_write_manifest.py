"""The manifest is written last, of parts that fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from broker_core.names import Mode
from broker_core_spark.batch.write_manifest import write_manifest
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.format.manifest import FileEntry, SegmentEntry, manifest_name
from broker_core_spark.format.questions_file import question_lines
from tests.support.generations import memory

SEGMENTS = [
    SegmentEntry(
        f"segments/{digit * 64}.seg",
        10,
        digit,
        (("t/n", "persistent", 1),),
        FileEntry(f"postings/{digit * 64}.post", 10),
    )
    for digit in ("b", "a")
]


def test_the_same_parts_in_any_order_are_the_same_generation() -> None:
    questions = [CanonicalQuestion.of("t/n", Mode.ALL, pattern) for pattern in ("b", "a", "a", None)]
    store = memory()
    made = [
        write_manifest(store, catalogue_id="c", versions=versions, segments=segments, questions=requested)
        for versions, segments, requested in (
            ({"t/n": 1, "t/m": 2}, SEGMENTS, questions),
            ({"t/m": 2, "t/n": 1}, SEGMENTS[::-1], questions[::-1]),
        )
    ]
    assert made[0].id == made[1].id
    assert made[0].question_count == 3
    assert store.get(manifest_name(made[0].id), 10_000) == made[0].data
    lines, count = question_lines(questions)
    assert store.get(made[0].questions.name, 10_000) == lines
    assert (lines.count(b"\n"), count) == (3, 3)
    assert lines.splitlines() == sorted(lines.splitlines())


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"versions": {"t/m": 1}, "segments": []}, "t/n, which the catalogue does not have"),
        ({"versions": {"t/n": None}}, "static"),
        ({"static": True}, "static"),
        ({"segments": [SEGMENTS[0], SEGMENTS[0]]}, "not in order"),
        (
            {"questions": [CanonicalQuestion.of("t/n", Mode.ALL, None, {"k": "v"})]},
            "none of the property keys",
        ),
        (
            {"segments": [replace(SEGMENTS[0], name="segments/x.seg")]},
            "no file of a generation",
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused_and_nothing_is_written(change: dict[str, Any], wrong: str) -> None:
    store = memory()
    parts: dict[str, Any] = {
        "catalogue_id": "c",
        "versions": {"t/n": 1},
        "segments": SEGMENTS,
        "questions": [CanonicalQuestion.of("t/n", Mode.ALL, "a")],
    }
    with pytest.raises(ValueError, match=wrong):
        write_manifest(store, **(parts | change))
    assert not list(store.list("manifests"))
