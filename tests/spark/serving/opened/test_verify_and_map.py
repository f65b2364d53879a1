"""Files of a generation are verified before any answer, and a refused one is named."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from broker_core import EncodedNames
from broker_core.names import Mode
from broker_core.patterns import compile_pattern
from broker_core_spark.batch.write_manifest import write_manifest
from broker_core_spark.errors import InvalidGeneration, NoSuchGeneration, StoreFailed
from broker_core_spark.format.canonical_question import CanonicalQuestion, NameSelector
from broker_core_spark.format.manifest import Manifest, SegmentEntry, manifest_name
from broker_core_spark.format.picked_words import Matches
from broker_core_spark.serving.opened.generation import Generation
from broker_core_spark.serving.opened.verify_and_map import SampleChecks, verify_and_map
from broker_core_spark.store import Store, open_store
from tests.support.generation_builder import build_generation, put_segment
from tests.support.generations import CATALOGUE, QUESTIONS, memory
from tests.support.narrowed import present
from tests.support.segment_writer import SegmentWriter

REQUESTED = NameSelector("t/n/a.*")
#: Segments of so few bytes may begin with any name.
EVERYWHERE = 1


def segment(
    store: Store,
    names: list[str],
    requested: Iterable[NameSelector] = (REQUESTED,),
    picked: Matches | None = None,
) -> SegmentEntry:
    """A segment in the store: names of t/n, and what :data:`ASKED` picks (all that begin with an a)."""
    column = EncodedNames.of("t/n", "persistent", names)
    rows = (
        np.flatnonzero([name.startswith("a") for name in column.names.to_pylist()])
        if picked is None
        else picked
    )
    requested = list(requested)
    writer = SegmentWriter()
    writer.add_run(column, requested, [(REQUESTED, rows)] if REQUESTED in requested else [])
    return put_segment(store, writer)


def opened(store: Store, segments: list[SegmentEntry], pattern: str | None = REQUESTED.pattern) -> Generation:
    questions = [CanonicalQuestion.of("t/n", Mode.PERSISTENT, pattern)]
    made = write_manifest(
        store,
        catalogue_id="c",
        versions={"t/n": 1},
        segments=segments,
        questions=questions,
        segment_bytes=EVERYWHERE,
    )
    return Generation.open(store, made.id, checks=SampleChecks(seed=1))


def test_segments_that_fit_are_opened() -> None:
    store = memory()
    generation = opened(store, [segment(store, ["a1", "a2"]), segment(store, ["b1", "c1"])])
    answer = present(generation.lookup(CanonicalQuestion.of("t/n", Mode.PERSISTENT, REQUESTED.pattern)))
    assert answer.selection.names.to_pylist() == ["persistent://t/n/a1", "persistent://t/n/a2"]


def test_segments_that_overlap_are_refused() -> None:
    store = memory()
    with pytest.raises(InvalidGeneration, match="not behind those before"):
        opened(store, [segment(store, ["a1", "c1"]), segment(store, ["b1", "d1"])])


def test_a_segment_that_was_asked_something_else_is_refused() -> None:
    for requested in ((), (REQUESTED, NameSelector("t/n/b.*"))):
        store = memory()
        with pytest.raises(InvalidGeneration, match="asked other patterns"):
            opened(store, [segment(store, ["a1"], requested)])
    store = memory()
    with pytest.raises(InvalidGeneration, match="asked other patterns"):
        opened(store, [segment(store, ["a1"])], "t/n/b.*")


def test_postings_that_the_pattern_does_not_pick_are_refused() -> None:
    store = memory()
    with pytest.raises(InvalidGeneration, match="does not match it"):
        opened(store, [segment(store, ["a1", "b1"], picked=(1, 2))])


def test_runs_other_than_the_manifest_s_are_refused() -> None:
    store = memory()
    made = segment(store, ["a1", "b1"])
    for runs in (
        (("t/n", "persistent", 3),),
        (("t/n", "persistent", 2), ("t/n-1", "persistent", 1)),
    ):
        entry = replace(made, runs=runs)
        manifest = write_manifest(
            store,
            catalogue_id="c",
            versions={"t/n": 1, "t/n-1": 1},
            segments=[entry],
            questions=[CanonicalQuestion.of("t/n", Mode.PERSISTENT, REQUESTED.pattern)],
        )
        with pytest.raises(InvalidGeneration, match="runs") as caught:
            Generation.open(store, manifest.id)
        assert caught.value.file == made.name


def lying(manifest: Manifest, number: int, **parts: Any) -> Manifest:
    """The manifest with a changed entry of one segment."""
    segments = list(manifest.segments)
    segments[number] = replace(segments[number], **parts)
    return replace(manifest, segments=tuple(segments))


@pytest.mark.parametrize("number", [0, 1, -1])
@pytest.mark.parametrize("how", ["before", "behind"])
def test_a_first_name_that_the_manifest_does_not_have_is_refused(number: int, how: str) -> None:
    store = memory()
    made = build_generation(store, CATALOGUE, QUESTIONS, catalogue_id="c", segment_bytes=1024)
    entry = made.segments[number]
    local = entry.first_local[:-1] if how == "before" else entry.first_local + "!"
    manifest = lying(made, number, first_local=local)
    manifest.check()  # the manifest alone does not show it
    with pytest.raises(InvalidGeneration, match="its first name") as caught:
        verify_and_map(store, manifest, None, SampleChecks())
    assert caught.value.file == entry.name


def test_segments_that_begin_elsewhere_than_the_format_says_are_refused() -> None:
    """A segment that a full build would not make is refused."""
    store = memory()
    made = build_generation(store, CATALOGUE, QUESTIONS, catalogue_id="c", segment_bytes=1024)
    with pytest.raises(InvalidGeneration, match="none that begins a segment") as caught:
        verify_and_map(store, replace(made, segment_bytes=2**40), None, SampleChecks())
    assert caught.value.file == made.segments[1].name
    whole = build_generation(store, CATALOGUE, QUESTIONS, catalogue_id="c", segment_bytes=2**40)
    assert len(whole.segments) == 1
    with pytest.raises(InvalidGeneration, match="begins a segment, but there are names before it"):
        verify_and_map(store, replace(whole, segment_bytes=EVERYWHERE), None, SampleChecks())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


@pytest.fixture
def made(folder: Path) -> Manifest:
    return build_generation(
        open_store(str(folder)), CATALOGUE, QUESTIONS, catalogue_id="c", segment_bytes=2048
    )


def damage(path: Path, content: bytes) -> None:
    path.chmod(0o644)
    path.write_bytes(content)


@pytest.mark.parametrize("kind", ["manifest", "questions", "segment"])
@pytest.mark.parametrize("how", ["flipped", "truncated", "longer", "empty", "foreign", "swapped", "gone"])
def test_a_damaged_file_is_refused_by_its_name(folder: Path, made: Manifest, kind: str, how: str) -> None:
    names = {
        "manifest": manifest_name(made.id),
        "questions": made.questions.name,
        "segment": made.segments[-1].name,
    }
    path = folder / names[kind]
    content = path.read_bytes()
    middle = len(content) // 2
    contents = {
        "flipped": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
        "truncated": content[:-1],
        "longer": content + b"\0",
        "empty": b"",
        "foreign": b"PAR1" + content[4:],
        "swapped": (folder / made.segments[0].name).read_bytes(),
    }
    if how == "gone":
        path.unlink()
    else:
        damage(path, contents[how])
    with pytest.raises((InvalidGeneration, NoSuchGeneration, StoreFailed)) as caught:
        Generation.open(open_store(str(folder)), made.id)
    assert (
        made.id[:12] in str(caught.value)
        if how == "gone" and kind == "manifest"
        else names[kind] in str(caught.value)
    )


def test_a_file_that_changes_after_opening_changes_nothing(folder: Path, made: Manifest) -> None:
    generation = Generation.open(open_store(str(folder)), made.id)
    bodies = [
        bytes(answer.selection.body()) for answer in map(generation.lookup, QUESTIONS) if answer is not None
    ]
    for entry in made.files:
        damage(folder / entry.name, b"")
    again = [
        bytes(answer.selection.body()) for answer in map(generation.lookup, QUESTIONS) if answer is not None
    ]
    assert again == bodies
    assert len(bodies) == len(QUESTIONS)


def test_without_room_for_the_private_copy_the_folder_is_named(
    made: Manifest, folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(StoreFailed, match="cannot keep a private copy"):
        verify_and_map(open_store(str(folder)), made, str(tmp_path / "nothing"), SampleChecks())


class _Fetched:
    """A store that counts what is fetched from it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.names: list[str] = []

    def fetch(self, name: str, size: int) -> Iterator[bytes]:
        self.names.append(name)
        return self._store.fetch(name, size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def swapped(pick: random.Random) -> tuple[dict[str, dict[str, list[str]]], list[CanonicalQuestion]]:
    names = {
        "a/large": {
            "persistent": [f"orders-{number}" for number in pick.sample(range(900), 600)],
            "non-persistent": ["np-7"][: pick.randrange(2)],
        },
        "b/tiny": {"persistent": [f"t{number}" for number in range(pick.randrange(3))]},
    }
    patterns = [None, ".*7", "a/large/orders-1.*", ".*[02468]", "b/tiny/t0", "none"]
    requested = [
        CanonicalQuestion.of(namespace, mode, pattern)
        for namespace in names
        for mode in Mode
        for pattern in patterns
    ]
    return names, requested


def test_a_swap_fetches_what_is_new_and_answers_as_a_whole_generation() -> None:
    """Random chains of changes of names and questions: each generation is opened upon the one before."""
    pick = random.Random(4)
    store = memory()
    names, requested = swapped(pick)
    before: Generation | None = None
    kept = 0
    for turn in range(12):
        if turn % 3:
            orders = names["a/large"]["persistent"]
            for _ in range(turn % 4):
                orders[pick.randrange(len(orders))] = f"orders-{pick.randrange(10_000)}-{turn}"
            names["b/tiny"]["persistent"] = [f"t{number}" for number in range(pick.randrange(4))]
        questions = pick.sample(requested, len(requested) - 1) if turn > 5 else requested
        made = build_generation(
            store, names, questions, catalogue_id="c", versions=dict.fromkeys(names, turn), segment_bytes=1280
        )
        counted = _Fetched(store)
        generation = Generation.open(
            cast(Store, counted), made.id, checks=SampleChecks(seed=turn, again=0), before=before
        )
        known = set() if before is None else set(before.manifest.segments)
        new = [entry for entry in made.segments if entry not in known]
        assert sorted(counted.names) == sorted(
            [made.questions.name, *(file for entry in new for file in (entry.name, entry.postings.name))]
        )
        kept += len(made.segments) - len(new)
        whole = Generation.open(store, made.id, checks=SampleChecks(seed=turn))
        for question in questions:
            one, other = generation.lookup(question), whole.lookup(question)
            assert one is not None and other is not None  # noqa: PT018
            assert (one.count, one.topics_hash) == (other.count, other.topics_hash)
            assert one.selection.names.equals(other.selection.names)
            one.verify(
                None if question.selector.pattern is None else compile_pattern(question.selector.pattern)
            )
            assert one.fault is None
        before = generation
    assert kept > 50


def test_what_is_kept_is_checked_against_the_new_manifest_and_now_and_then_against_the_store() -> None:
    store = memory()
    names, requested = swapped(random.Random(1))

    def made(questions: list[CanonicalQuestion], version: int, **more: Any) -> Manifest:
        return build_generation(
            store, names, questions, catalogue_id="c", versions=dict.fromkeys(names, version), **more
        )

    first = made(requested, 1, segment_bytes=1280)
    generation = Generation.open(store, first.id)
    assert len(first.segments) > 3

    def opened_upon(manifest: Manifest, again: float = 0) -> Generation:
        store.put_new(manifest_name(manifest.id), manifest.data)
        return Generation.open(store, manifest.id, checks=SampleChecks(again=again), before=generation)

    same = replace(first, namespaces=dict.fromkeys(names, 2))
    assert opened_upon(same).manifest.topics == first.topics
    fewer = [question for question in requested if question.selector.pattern != ".*7"]
    others = made(fewer, 3, segment_bytes=1280)
    lies = {
        "asked other patterns": replace(first, questions=others.questions, question_count=len(fewer)),
        "none that begins a segment": replace(first, segment_bytes=2**40),
    }
    for reason, lie in lies.items():
        with pytest.raises(InvalidGeneration, match=reason):
            opened_upon(lie)
    # Damage of a file that nobody fetches is harmless here, and found by the share that is fetched again.
    damaged = first.segments[2].postings
    store.replace(damaged.name, b"?" * damaged.size)
    assert opened_upon(replace(first, namespaces=dict.fromkeys(names, 4))).manifest.topics == first.topics
    with pytest.raises(InvalidGeneration, match="its checksum"):
        opened_upon(replace(first, namespaces=dict.fromkeys(names, 5)), again=1)
