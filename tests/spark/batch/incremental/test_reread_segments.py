"""Kept segments are read whole: damaged ones are named, and those of a faulty writer are refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from broker_core.names import Mode
from broker_core_spark.batch.incremental.reread_segments import reread_segments
from broker_core_spark.batch.segments.tallies import read_tallies
from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.format.manifest import Manifest
from broker_core_spark.store import Store, open_store
from tests.support.generation_builder import build_generation

NAMES = {"a/b": {"persistent": [f"t{number}" for number in range(500)]}, "a/c": {"persistent": ["t7"]}}
QUESTIONS = [CanonicalQuestion.of("a/b", Mode.ALL, ".*7"), CanonicalQuestion.of("a/c", Mode.PERSISTENT, None)]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(str(tmp_path))


@pytest.fixture
def made(store: Store) -> Manifest:
    manifest = build_generation(
        store, NAMES, QUESTIONS, catalogue_id="c", versions=dict.fromkeys(NAMES, 1), segment_bytes=2048
    )
    assert len(manifest.segments) > 3
    return manifest


def test_what_is_kept_says_what_its_selectors_pick(store: Store, made: Manifest) -> None:
    results, blocks, damaged = reread_segments(store, made, QUESTIONS, made.segments[1:], "temporary/kept")
    assert not damaged
    assert [result.entry for result in results] == list(made.segments[1:])
    assert not any(result.new for result in results)
    assert set(blocks) <= {result.entry.name for result in results}
    tallies = read_tallies(store, [block for found in blocks.values() for block in found])
    assert sum(int(column["count"].sum()) for column in tallies.values()) > 10


def test_damaged_files_are_named_and_the_others_kept(store: Store, made: Manifest, tmp_path: Path) -> None:
    changed, cut, gone = (entry.name for entry in made.segments[:3])
    content = (tmp_path / changed).read_bytes()
    (tmp_path / changed).write_bytes(content[:-30] + b"?" + content[-29:])
    (tmp_path / cut).write_bytes((tmp_path / cut).read_bytes()[:-1])
    (tmp_path / gone).unlink()
    lost = made.segments[3]
    (tmp_path / lost.postings.name).unlink()
    results, _, damaged = reread_segments(store, made, QUESTIONS, made.segments, "temporary/kept")
    assert damaged == {changed, cut, gone, lost.name}
    assert [result.entry for result in results] == list(made.segments[4:])


def test_segments_that_are_not_what_the_manifest_says_are_refused(store: Store, made: Manifest) -> None:
    namespace, domain, count = made.segments[1].runs[0]
    lies = {
        "its runs are not those": replace(
            made,
            segments=(
                made.segments[0],
                replace(made.segments[1], runs=((namespace, domain, count - 1), *made.segments[1].runs[1:])),
                *made.segments[2:],
            ),
        ),
        "begins a segment, but there are names before it": replace(made, segment_bytes=512),
        "none that begins a segment": replace(made, segment_bytes=2**40),
    }
    for reason, lie in lies.items():
        with pytest.raises(InvalidGeneration, match=reason):
            reread_segments(store, lie, QUESTIONS, lie.segments, "temporary/kept")
    with pytest.raises(InvalidGeneration, match="asked other patterns"):
        reread_segments(store, made, QUESTIONS[:1], made.segments, "temporary/kept")
