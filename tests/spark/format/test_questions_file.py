"""The questions file has one sorted line a question. Anything else is refused."""

from __future__ import annotations

import pytest

from broker_core.names import Mode
from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.format.manifest import FileEntry, Manifest
from broker_core_spark.format.questions_file import question_lines, read_questions


def test_lines_are_sorted_each_once_and_read_back() -> None:
    requested = [CanonicalQuestion.of("t/n", Mode.ALL, pattern) for pattern in ("b", "a", "a", None)]
    lines, count = question_lines(requested)
    assert (lines.count(b"\n"), count) == (3, 3)
    entry = FileEntry(f"questions/{'0' * 64}.jsonl", len(lines))
    found = read_questions(lines, Manifest("c", False, (), 8, {"t/n": 1}, count, entry, ()))
    assert set(found) == set(requested)
    assert lines == b"".join(question.line + b"\n" for question in found)


@pytest.mark.parametrize(
    ("lines", "wrong"),
    [
        (b"", "0 questions where 1"),
        (b"x\n", "at byte 0"),
        (CanonicalQuestion.of("t/n", Mode.ALL, "a").line, "not sorted"),
        (b"".join(CanonicalQuestion.of("t/n", Mode.ALL, one).line + b"\n" for one in "ba"), "not sorted"),
        (CanonicalQuestion.of("t/x", Mode.ALL, "a").line + b"\n", "no version"),
        (CanonicalQuestion.of("t/n", Mode.ALL, "a", {"k": "v"}).line + b"\n", "properties"),
    ],
)
def test_a_questions_file_that_is_none_is_refused(lines: bytes, wrong: str) -> None:
    entry = FileEntry(f"questions/{'0' * 64}.jsonl", len(lines))
    manifest = Manifest("c", False, (), 8, {"t/n": 1}, 1, entry, ())
    with pytest.raises(InvalidGeneration, match=wrong) as caught:
        read_questions(lines, manifest)
    assert caught.value.file == entry.name
