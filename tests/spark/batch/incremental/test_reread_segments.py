"""Kept segments are read whole: damaged ones are named, and those of a faulty writer are refused."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from broker_core.names import Mode
from broker_core_spark.batch.incremental.keep_segments import added_selectors
from broker_core_spark.batch.incremental.reread_segments import KeptSelectors, reread_segments
from broker_core_spark.batch.segments.tallies import read_tallies
from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format.canonical_question import CanonicalQuestion, required_selectors
from broker_core_spark.format.manifest import FileEntry, Manifest
from broker_core_spark.store import Store, open_store
from tests.support.generation_builder import build_generation
from tests.support.spark_catalogues import reread_all, selector_keys

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
    keys = selector_keys(QUESTIONS)
    numbers = [1, 2, *range(4, len(made.segments))]
    reread = reread_segments(store, made, numbers, KeptSelectors(keys, keys), "temporary/kept")
    assert not reread.damaged
    assert [result.entry for result in reread.segments] == [made.segments[number] for number in numbers]
    assert not any(result.new for result in reread.segments)
    # Neighbours have one tally a selector.
    assert len({block.order for block in reread.tallies}) == 2
    tallies = read_tallies(store, reread.tallies)
    assert sum(int(column["count"].sum()) for column in tallies.values()) > 10


def test_postings_of_other_questions_are_those_of_a_whole_build(store: Store, tmp_path: Path) -> None:
    """Added, removed and kept ones, dense and thin ones, in the order of their keys."""
    pick = random.Random(7)
    before = QUESTIONS
    for turn in range(5):
        chosen = [
            CanonicalQuestion.of("a/b", pick.choice(list(Mode)), pattern)
            for pattern in pick.sample(
                [".*7", "a/b/t1.*", None, ".*[0-4]", "a/b/t33", "a/b/t(1|2).", "none"], 4
            )
        ]
        now = [*chosen, *pick.sample(before, min(2, len(before)))]
        stores = open_store(str(tmp_path / f"full-{turn}")), store
        full, former = (
            build_generation(
                place, NAMES, asked, catalogue_id="c", versions=dict.fromkeys(NAMES, 1), segment_bytes=2048
            )
            for place, asked in zip(stores, (now, before), strict=True)
        )
        known, asked = required_selectors(before), required_selectors(now)
        added = {
            place: [(selector.key, selector) for selector in selectors]
            for place, selectors in added_selectors(known, asked).items()
        }
        selectors = KeptSelectors(selector_keys(before), selector_keys(now), added)
        reread = reread_segments(
            store, former, range(len(former.segments)), selectors, f"temporary/kept-{turn}"
        )
        assert tuple(result.entry for result in reread.segments) == full.segments
        assert any(result.new for result in reread.segments)
        assert all(
            stored(store, segment.postings) == stored(stores[0], segment.postings)
            for segment in full.segments
        )
        found = read_tallies(store, reread.tallies)
        expected = read_tallies(stores[0], reread_all(stores[0], full, now).tallies)
        assert found.keys() == expected.keys()
        assert all((found[place] == expected[place]).all() for place in found)
        before = now


def stored(store: Store, file: FileEntry) -> bytes | None:
    return store.get(file.name, file.size)


def test_damaged_files_are_named_and_the_others_kept(store: Store, made: Manifest, tmp_path: Path) -> None:
    changed, cut, gone = (entry.name for entry in made.segments[:3])
    content = (tmp_path / changed).read_bytes()
    (tmp_path / changed).write_bytes(content[:-30] + b"?" + content[-29:])
    (tmp_path / cut).write_bytes((tmp_path / cut).read_bytes()[:-1])
    (tmp_path / gone).unlink()
    lost = made.segments[3]
    (tmp_path / lost.postings.name).unlink()
    reread = reread_all(store, made, QUESTIONS)
    assert reread.damaged == {changed, cut, gone, lost.name}
    assert [result.entry for result in reread.segments] == list(made.segments[4:])


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
            reread_all(store, lie, QUESTIONS)
    with pytest.raises(InvalidGeneration, match="asked other patterns"):
        reread_all(store, made, QUESTIONS[:1])
