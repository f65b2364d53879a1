"""Rows of matches: of all kinds of postings and all modes, in batches of bounded size."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from broker_core.names import Mode
from broker_core_spark.batch.matches import match_rows
from broker_core_spark.batch.matches.match_rows import MATCH_SCHEMA, asked_columns, match_batches
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.format.segment_layout import KIND_BITS, KIND_RANGE, KIND_ROWS
from broker_core_spark.format.segment_reader import Segment
from broker_core_spark.store import open_store
from broker_core_spark.store.verified_files import fetch_verified
from tests.support.generation_builder import build_generation

WHEN = datetime(2026, 3, 1, 10, 15, tzinfo=UTC)
PATTERNS = (None, "a/b/t-0.*", ".*[02468]", ".*-77", ".*(03|77)", "nothing")


def names_of(pattern: str | None, names: list[str]) -> list[str]:
    """What a pattern of this test picks."""
    import re2

    return [name for name in names if pattern is None or re2.fullmatch(pattern, f"a/b/{name}")]


@pytest.mark.parametrize("most", [1, 7, 100_000])
def test_every_kind_of_postings_and_every_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(match_rows, "_ROWS", most)
    names = {
        domain: [f"t-{number:04}" for number in range(size)]
        for domain, size in (("persistent", 1000), ("non-persistent", 30))
    }
    questions = [CanonicalQuestion.of("a/b", mode, pattern) for mode in Mode for pattern in PATTERNS]
    store = open_store(str(tmp_path))
    manifest = build_generation(
        store, {"a/b": names}, questions, catalogue_id="id", versions={"a/b": 1}, segment_bytes=4096
    )
    lines = [question.line for question in questions]
    lines += [CanonicalQuestion.of("a/c", Mode.ALL, ".*").line]
    asked = asked_columns(lines, {"a/b"})
    assert set(asked) == {("a/b", mode) for mode in Mode}
    found: list[dict[str, Any]] = []
    kinds: set[int] = set()
    for entry in manifest.segments:
        data, postings = (fetch_verified(store, file, None) for file in (entry, entry.postings))
        for run in Segment.open(data, entry.name, postings, entry.postings.name).runs():
            kinds |= set(run.entries["kind"].tolist())
            for batch in match_batches(run, asked, "some-id", WHEN):
                assert 0 < batch.num_rows <= most
                assert batch.schema.equals(MATCH_SCHEMA)
                found += batch.to_pylist()
    assert kinds == {KIND_RANGE, KIND_ROWS, KIND_BITS}
    expected = sorted(
        (mode.name, pattern or "", f"{domain}://a/b/{name}")
        for mode in Mode
        for pattern in PATTERNS
        for domain, known in names.items()
        if mode.lists(domain)
        for name in names_of(pattern, known)
    )
    assert sorted((row["mode"], row["pattern"] or "", row["topic"]) for row in found) == expected
    assert {(row["namespace"], row["generation"], row["published"]) for row in found} == {
        ("a/b", "some-id", WHEN)
    }


def test_long_patterns_make_small_batches() -> None:
    question = CanonicalQuestion.of("a/b", Mode.ALL, "x" * 1_000_000, {"k": "v"})
    columns = asked_columns([question.line], {"a/b"})["a/b", Mode.ALL]
    assert 1 <= columns.rows <= 33
    assert columns.properties.to_pylist() == [[("k", "v")]]
    assert columns.keys == pa.array([question.selector.key], pa.binary(16))
