"""``gc`` removes what no kept generation needs, and nothing that a generation or a build needs."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker_core.names import Mode
from broker_core_spark.errors import InvalidGeneration, StoreFailed
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.format.manifest import Manifest, manifest_name
from broker_core_spark.format.segment_patch import PATCHES, patch_name
from broker_core_spark.serving.opened.generation import Generation
from broker_core_spark.store import Store, build_and_gc_marks, garbage_collection, open_store
from broker_core_spark.store.build_and_gc_marks import GC_GRACE, SILENCE, read_marks, write_mark
from broker_core_spark.store.build_records import (
    build_record_paths,
    learned_paths,
    write_build_record,
    write_learned,
)
from broker_core_spark.store.garbage_collection import collect_garbage
from broker_core_spark.store.published_pointers import current_pointer, readable_pointers
from broker_core_spark.store.publishing import BuildRun, begin_build, use_generation
from broker_core_spark.store.store import PROBE
from broker_core_spark.store.stored_manifest import read_manifest
from tests.support.generation_builder import build_generation
from tests.support.generations import memory
from tests.support.narrowed import present

AT_ONCE = timedelta(0)
QUESTION = CanonicalQuestion.of("t/n", Mode.PERSISTENT, "t/n/x.*")


def made(store: Store, number: int) -> Manifest:
    catalogue = {
        "t/m": {"persistent": [f"same-{i:03}" for i in range(100)]},
        "t/n": {"persistent": [f"x{number}-{i}" for i in range(5)]},
    }
    return build_generation(store, catalogue, [QUESTION], catalogue_id="c", segment_bytes=1024)


def publish(store: Store, number: int) -> Manifest:
    with begin_build(store) as build:
        manifest = made(store, number)
        build.publish(manifest)
        return manifest


def paths(store: Store) -> set[str]:
    folders = ("manifests", "questions", "segments", "postings", "pointers", "temporary", "marks")
    return {file.path for folder in folders for file in store.list(folder)}


def test_the_last_generations_stay_whole_and_nothing_else() -> None:
    store = memory()
    generations = [publish(store, number) for number in range(5)]
    patches = [{patch_name(entry.files) for entry in one.segments} for one in generations]
    for path in set().union(*patches):
        store.put_new(path, b"{}")
    done = collect_garbage(store, keep=2, grace=AT_ONCE)
    kept = generations[-2:]
    assert {file.path for file in store.list(PATCHES)} == patches[3] | patches[4]
    assert done.kept == (kept[1].id, kept[0].id)
    wanted = {name for one in kept for name in (manifest_name(one.id), *(file.name for file in one.files))}
    assert paths(store) == wanted | {"pointers/000000000004.json", "pointers/000000000005.json"}
    assert sum(file.size for file in done.removed) > 0
    for one in kept:
        answer = present(Generation.open(store, one.id).lookup(QUESTION))
        assert answer.count == 5
    assert collect_garbage(store, keep=2, grace=AT_ONCE).removed == ()


def test_the_last_learned_questions_stay() -> None:
    store = memory()
    for number in range(1, 6):
        publish(store, number)
        if number != 4:  # a build of fixed questions leaves none
            write_learned(store, number, b"{}")
    collect_garbage(store, keep=2, grace=AT_ONCE)
    assert [path[-10:] for path in learned_paths(store)] == ["0005.jsonl", "0003.jsonl"]


def test_records_of_builds_go_with_their_generations() -> None:
    store = memory()
    generations = [publish(store, number).id for number in range(3)]
    for generation in (*generations, "f" * 64):
        write_build_record(store, generation, {}, b"totals")
    collect_garbage(store, keep=2, grace=timedelta(0))
    kept = {path for generation in generations[1:] for path in build_record_paths(generation)}
    assert {file.path for file in store.list("builds")} == kept


def test_what_a_build_writes_before_its_mark_stays_for_a_while(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    publish(store, 1)
    early = [f"{beginning}0123" for beginning in (PROBE, "temporary/part-")]
    for path in (*early, "temporary/other"):
        store.put_new(path, b"")
    assert [file.path for file in collect_garbage(store, grace=AT_ONCE).removed] == ["temporary/other"]
    old = time.time() - SILENCE.total_seconds() - 1
    for path in early:
        os.utime(tmp_path / path, (old, old))
    assert {file.path for file in collect_garbage(store, grace=AT_ONCE).removed} == set(early)


def test_a_dry_run_removes_nothing() -> None:
    store = memory()
    for number in range(4):
        publish(store, number)
    before = paths(store)
    done = collect_garbage(store, keep=1, grace=AT_ONCE, dry_run=True)
    assert len(done.removed) > 6
    assert paths(store) == before


def test_what_is_young_stays() -> None:
    store = memory()
    for number in range(3):
        publish(store, number)
    made(store, 7)  # never published
    before = paths(store)
    assert collect_garbage(store, keep=1).removed == ()
    assert paths(store) == before


def test_what_a_killed_build_left_goes_when_it_is_old(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    kept = publish(store, 1)
    write_mark(store, "build")
    left = made(store, 2)
    (tmp_path / "temporary" / "part-1").write_bytes(b"half of a file")
    with pytest.raises(StoreFailed, match="a build is under way"):
        collect_garbage(store)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            os.utime(path, (time.time() - 90_000, time.time() - 90_000))
    done = collect_garbage(store)
    assert {file.path for file in done.removed} >= {manifest_name(left.id), "temporary/part-1"}
    assert done.kept == (kept.id,)
    assert read_marks(store) == []
    assert {file.name for file in kept.files} <= paths(store)


def test_nothing_is_removed_while_a_build_is_under_way() -> None:
    store = memory()
    for number in range(3):
        publish(store, number)
    with begin_build(store):
        before = paths(store)
        with pytest.raises(StoreFailed, match="nothing was removed"):
            collect_garbage(store, keep=1)
        assert paths(store) == before


def test_a_generation_that_is_used_again_is_kept() -> None:
    store = memory()
    generations = [publish(store, number) for number in range(4)]
    use_generation(store, generations[0].id)
    assert collect_garbage(store, keep=2, grace=AT_ONCE).kept == (generations[0].id, generations[3].id)
    assert [pointer.number for pointer in readable_pointers(store)] == [5, 4, 1]


def test_where_a_manifest_cannot_be_read_nothing_is_removed(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    publish(store, 1)
    second = publish(store, 2)
    (tmp_path / manifest_name(second.id)).write_bytes(b"{}")
    before = paths(store)
    with pytest.raises(InvalidGeneration, match="checksum"):
        collect_garbage(store, keep=1, grace=AT_ONCE)
    assert paths(store) == before


def test_a_pointer_that_cannot_be_read_keeps_every_generation_while_it_counts(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    generations = [publish(store, number) for number in range(3)]
    store.put_new("temporary/stage-1-1", b"half of a file")
    store.put_new("manifests/" + "0" * 64 + ".json", b"damaged")
    store.put_new("pointers/000000000099.json", b"{")
    done = collect_garbage(store, keep=1, grace=AT_ONCE)
    assert [file.path for file in done.removed] == [
        "pointers/000000000001.json",
        "pointers/000000000002.json",
        "temporary/stage-1-1",
    ]
    assert sorted(done.kept) == sorted(one.id for one in generations)
    assert len(done.unreadable) == 1
    assert "pointers/000000000099.json" in done.unreadable[0]
    for one in generations:
        assert Generation.open(store, one.id).manifest.topics == 105
    # It goes like any old pointer when enough newer ones are kept.
    use_generation(store, generations[0].id)
    done = collect_garbage(store, keep=1, grace=AT_ONCE)
    assert done.kept == (generations[0].id,)
    assert {file.path for file in store.list("pointers")} == {"pointers/000000000100.json"}
    assert collect_garbage(store, keep=1, grace=AT_ONCE).unreadable == ()


class SlowStore:
    """A store in which some methods take a part of a gc's time, by a clock that they move."""

    def __init__(self, store: Store, patch: pytest.MonkeyPatch, **parts: float) -> None:
        self._store, self._parts, self._now = store, parts, 0.0
        patch.setattr(garbage_collection, "time", SimpleNamespace(monotonic=lambda: self._now))

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)
        if name not in self._parts:
            return method

        def slow(*values: Any) -> Any:
            self._now += self._parts[name] * GC_GRACE.total_seconds()
            return method(*values)

        return slow


@pytest.mark.parametrize("slow", ["put_new", "get", "list"])
def test_where_reading_takes_the_time_of_a_gc_nothing_is_removed(
    slow: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = memory()
    for number in range(4):
        publish(store, number)
    before = paths(store)
    with monkeypatch.context() as patch, pytest.raises(StoreFailed, match=r"0:10:00.*nothing was removed"):
        collect_garbage(cast(Store, SlowStore(store, patch, **{slow: 0.5})), keep=2, grace=AT_ONCE)
    assert paths(store) == before
    assert read_marks(store) == []


def test_what_reading_took_is_not_there_for_deleting(monkeypatch: pytest.MonkeyPatch) -> None:
    store = memory()
    for number in range(4):
        publish(store, number)
    unneeded = collect_garbage(store, keep=1, grace=AT_ONCE, dry_run=True).removed
    with monkeypatch.context() as patch:
        slow = SlowStore(store, patch, put_new=0.3, delete=0.1)
        done = collect_garbage(cast(Store, slow), keep=1, grace=AT_ONCE)
    assert done.removed == unneeded[:2]
    assert done.left == len(unneeded) - 2
    again = collect_garbage(store, keep=1, grace=AT_ONCE)
    assert (again.removed, again.left) == (unneeded[2:], 0)


def test_an_empty_store_stays_empty(tmp_path: Path) -> None:
    done = collect_garbage(open_store(str(tmp_path / "nothing")), grace=AT_ONCE)
    assert (done.removed, done.kept) == ((), ())
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(ValueError, match="at least one"):
        collect_garbage(memory(), keep=0)


def test_publishers_and_gc_at_once_never_leave_a_hole(tmp_path: Path) -> None:
    """A published generation is whole at any time: builds share files that each gc would remove."""
    store = open_store(str(tmp_path))
    publish(store, 0)

    def publisher(seed: int) -> int:
        random = Random(seed)
        for _ in range(4):
            publish(store, random.randrange(4))
        return 4

    def collector(_: int) -> int:
        done = 0
        for _ in range(12):
            try:
                # Files may go at once. Marks are younger than ten minutes and count.
                collect_garbage(store, keep=1, grace=timedelta(hours=1))
                done += 1
            except StoreFailed:
                continue  # a build is under way
        return done

    for path in tmp_path.rglob("*"):
        if path.is_file():
            os.utime(path, (time.time() - 90_000, time.time() - 90_000))
    with ThreadPoolExecutor(4) as threads:
        publishers = [threads.submit(publisher, seed) for seed in range(2)]
        collectors = [threads.submit(collector, seed) for seed in range(2)]
        assert [future.result() for future in publishers] == [4, 4]
        for future in collectors:
            future.result()
    now = present(current_pointer(store))
    manifest = read_manifest(store, now.generation)
    assert {file.name for file in manifest.files} <= paths(store)
    assert Generation.open(store, now.generation).lookup(QUESTION) is not None
    assert read_marks(store) == []


def test_a_build_that_gave_no_sign_for_long_is_dead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its mark, its signs and what it staged go at once; other young files stay."""
    store = open_store(str(tmp_path))
    kept = publish(store, 1)
    run = BuildRun()
    write_mark(store, "build", run.id)
    for path in (f"{run.staged}-run-1", f"marks/sign-{run.id}", "temporary/stage-another-1"):
        store.put_new(path, b"")
    left = made(store, 2)
    with pytest.raises(StoreFailed, match=rf"run {run.id} of .*; its last sign of life was \d+ s ago"):
        collect_garbage(store)
    monkeypatch.setattr(build_and_gc_marks, "SILENCE", AT_ONCE)
    gone = {f"marks/build-{run.id}", f"marks/sign-{run.id}", f"{run.staged}-run-1"}
    assert {file.path for file in collect_garbage(store, dry_run=True).removed} == gone
    assert gone <= paths(store)
    done = collect_garbage(store)
    assert ({file.path for file in done.removed}, done.kept) == (gone, (kept.id,))
    assert {manifest_name(left.id), "temporary/stage-another-1"} <= paths(store)
    assert read_marks(store) == []
