"""Runs are in one order through all segments, and segments begin at boundaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from broker_core import EncodedNames
from broker_core.names import Mode
from broker_core_spark.batch.write_manifest import write_manifest
from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format.canonical_question import CanonicalQuestion, required_selectors
from broker_core_spark.format.manifest import Manifest, SegmentEntry, manifest_name
from broker_core_spark.format.segment_boundaries import begins_segment
from broker_core_spark.format.segment_checks import SegmentChecks, check_first_names, last_place
from broker_core_spark.serving.opened.generation import Generation
from broker_core_spark.serving.opened.verify_and_map import SampleChecks, verify_and_map
from broker_core_spark.store import Store
from tests.support.generation_builder import build_generation, put_segment, stored_runs
from tests.support.generations import CATALOGUE, QUESTIONS, memory
from tests.support.narrowed import present
from tests.support.segment_writer import SegmentWriter

#: Names begin a segment about one time in ten.
TARGET = 300
NAMESPACES = ("a/a", "b/b", "c/c")
REQUESTED = [CanonicalQuestion.of(namespace, mode, None) for namespace in NAMESPACES for mode in Mode]

#: (namespace, domain, prefix of the names, number of names) of the runs of each segment.
Layout = Sequence[Sequence[tuple[str, str, str, int]]]
P, N = "persistent", "non-persistent"


def names_of(namespace: str, domain: str, head: str, count: int, *, first: bool) -> list[str]:
    """Ascending names. The first one begins a segment if ``first`` says so; the others begin none."""
    every = pa.array([f"{head}{number:05}" for number in range(2000)], pa.large_string())
    begins = begins_segment(namespace, domain, every, target=TARGET)
    start = int(np.flatnonzero(begins)[0]) if first else 0
    rest = [row for row in range(start, 2000) if not begins[row]]
    rows = [start, *rest[: count - 1]] if first else rest[:count]
    return [every[row].as_py() for row in rows]


def manifest_of(store: Store, layout: Layout) -> Manifest:
    """The manifest of such segments, unchecked."""
    entries: list[SegmentEntry] = []
    required = required_selectors(REQUESTED)
    for runs in layout:
        writer = SegmentWriter()
        for number, (namespace, domain, head, count) in enumerate(runs):
            names = EncodedNames.of(
                namespace,
                domain,
                names_of(namespace, domain, head, count, first=bool(entries) and not number),
            )
            selectors = required[namespace, domain]
            writer.add_run(names, selectors, [(one, (0, len(names))) for one in selectors])
        entries.append(put_segment(store, writer))
    sealed = write_manifest(
        store, catalogue_id="c", versions=dict.fromkeys(NAMESPACES, 1), segments=[], questions=REQUESTED
    )
    return replace(sealed, segments=tuple(entries), segment_bytes=TARGET)


RIGHT: Layout = [
    [("a/a", N, "a", 2), ("a/a", P, "a", 3), ("c/c", P, "a", 3)],
    [("c/c", P, "b", 3)],
]
INTERLEAVED: dict[str, Layout] = {
    "a namespace comes back": [
        [("a/a", P, "x", 1), ("c/c", P, "a", 3)],
        [("b/b", P, "a", 1)],
        [("c/c", P, "b", 3)],
    ],
    "a domain comes back": [
        [("a/a", N, "a", 2), ("a/a", P, "p", 2)],
        [("a/a", N, "b", 1)],
    ],
    "within a longer segment": [
        [("a/a", N, "a", 2), ("a/a", P, "p", 2), ("c/c", P, "a", 2)],
        [("a/a", P, "q", 2), ("b/b", P, "a", 1), ("c/c", P, "b", 2)],
    ],
    "at a later border": [
        [("a/a", P, "a", 2)],
        [("a/a", P, "b", 2), ("b/b", P, "b", 2), ("c/c", N, "a", 2)],
        [("b/b", P, "c", 2), ("c/c", N, "b", 1)],
    ],
}


def test_segments_in_order_are_opened() -> None:
    store = memory()
    manifest = manifest_of(store, RIGHT)
    store.put_new(manifest_name(manifest.id), manifest.data)
    answer = present(Generation.open(store, manifest.id).lookup(CanonicalQuestion.of("c/c", Mode.ALL, None)))
    assert answer.count == 6


@pytest.mark.parametrize("how", INTERLEAVED)
def test_segments_that_are_interleaved_are_refused_by_their_files(how: str) -> None:
    """The runs show it too, without a check of the manifest."""
    store = memory()
    manifest = manifest_of(store, INTERLEAVED[how])
    with pytest.raises(InvalidGeneration, match="are not behind those before it") as caught:
        verify_and_map(store, manifest, None, SampleChecks(seed=1))
    assert caught.value.file in {entry.name for entry in manifest.segments[1:]}


@pytest.mark.parametrize("how", INTERLEAVED)
def test_a_manifest_of_interleaved_runs_is_neither_made_nor_read(how: str) -> None:
    store = memory()
    manifest = manifest_of(store, INTERLEAVED[how])
    name = manifest_name(manifest.id)
    with pytest.raises(InvalidGeneration, match="runs of the segments are not in order") as caught:
        Manifest.parse(manifest.data, name)
    assert caught.value.file == name
    with pytest.raises(ValueError, match="runs of the segments are not in order"):
        write_manifest(
            store,
            catalogue_id="c",
            versions=dict.fromkeys(NAMESPACES, 1),
            segments=manifest.segments,
            questions=REQUESTED,
        )


def test_a_segment_that_reaches_behind_the_next_one_is_found_without_reading_that() -> None:
    store = memory()
    manifest = manifest_of(store, INTERLEAVED["a domain comes back"])
    checks = SegmentChecks(manifest, REQUESTED)
    entry = manifest.segments[0]
    runs = list(stored_runs(store, entry))
    (*_, run) = checks.runs(0, [run.postings for run in runs], runs)
    with pytest.raises(InvalidGeneration, match="not all in front of the first one of the next") as caught:
        checks.check_end(0, last_place(run))
    assert caught.value.file == entry.name
    checks.check_end(1, ("z/z", 1, b""))  # nothing follows the last segment


def test_first_names_that_begin_no_segment_are_found_in_the_manifest() -> None:
    made = build_generation(memory(), CATALOGUE, QUESTIONS, catalogue_id="c", segment_bytes=1024)
    check_first_names(made)
    with pytest.raises(InvalidGeneration, match="none that begins a segment") as caught:
        check_first_names(replace(made, segment_bytes=2**40))
    assert caught.value.file == made.segments[1].name
    long = replace(made.segments[1], first_local="x" * 100_000)
    with pytest.raises(InvalidGeneration, match="none that begins a segment"):
        check_first_names(replace(made, segments=(made.segments[0], long)))
