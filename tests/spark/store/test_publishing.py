"""No publisher at the same time is lost, the last one is served, and an older generation can be served again."""

from __future__ import annotations

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from broker_core.names import Mode
from broker_core_spark.errors import InvalidGeneration, NoSuchGeneration, StoreFailed
from broker_core_spark.format.canonical_question import CanonicalQuestion
from broker_core_spark.format.manifest import Manifest
from broker_core_spark.store import Store, open_store, publishing
from broker_core_spark.store.build_and_gc_marks import GC_GRACE, read_marks, sign_path, write_mark
from broker_core_spark.store.published_pointers import (
    PublishedPointer,
    current_pointer,
    find_generation,
    previous_generation,
    readable_pointers,
)
from broker_core_spark.store.publishing import BuildRun, begin_build, use_generation
from broker_core_spark.store.store import FileData
from tests.support.eventually import eventually_sync
from tests.support.generation_builder import build_generation
from tests.support.generations import memory


def made(store: Store, number: int) -> Manifest:
    catalogue = {"t/n": {"persistent": [f"x{i}" for i in range(number)]}}
    return build_generation(store, catalogue, [CanonicalQuestion.of("t/n", Mode.ALL, None)], catalogue_id="c")


def publish(store: Store, number: int) -> PublishedPointer:
    with begin_build(store) as build:
        return build.publish(made(store, number))


def test_an_older_generation_is_served_again() -> None:
    store = memory()
    first, second = publish(store, 1), publish(store, 2)
    assert previous_generation(store) == first.generation
    back = use_generation(store, first.generation[:8])
    assert (back.number, back.generation) == (3, first.generation)
    assert current_pointer(store) == back
    assert previous_generation(store) == second.generation
    assert find_generation(store, second.generation) == second.generation


def test_a_generation_that_is_none_is_not_used() -> None:
    store = memory()
    with pytest.raises(NoSuchGeneration, match="no other generation"):
        previous_generation(store)
    publish(store, 1)
    for start in ("abc", "zzzz", "", "0" * 64, "../x"):
        with pytest.raises(NoSuchGeneration):
            use_generation(store, start)
    assert len(list(readable_pointers(store))) == 1
    for name in ("abcd" + "0" * 60, "abcd" + "1" * 60):
        store.put_new(f"manifests/{name}.json", b"")
    with pytest.raises(NoSuchGeneration, match="2 generations begin with abcd"):
        find_generation(store, "abcd")


def test_publishers_at_once_get_a_number_each() -> None:
    store = memory()
    generations = [made(store, number) for number in range(1, 9)]

    def one(manifest: Manifest) -> PublishedPointer:
        with begin_build(store) as build:
            return build.publish(manifest)

    with ThreadPoolExecutor(8) as threads:
        published = list(threads.map(one, generations))
    assert sorted(pointer.number for pointer in published) == list(range(1, 9))
    assert sorted(readable_pointers(store), key=lambda pointer: pointer.number) == sorted(
        published, key=lambda pointer: pointer.number
    )


@pytest.mark.parametrize("gone", ["segment", "questions", "manifest"])
def test_a_generation_with_a_hole_is_not_published(gone: str) -> None:
    store = memory()
    manifest = made(store, 3)
    path = {
        "segment": manifest.segments[0].name,
        "questions": manifest.questions.name,
        "manifest": f"manifests/{manifest.id}.json",
    }[gone]
    with begin_build(store) as build:
        store.delete(path)
        with pytest.raises(InvalidGeneration, match="not in the store: not published"):
            build.publish(manifest)
        store.put_new(path, b"other")
        with pytest.raises(InvalidGeneration, match="it has 5 bytes"):
            build.publish(manifest)
    assert current_pointer(store) is None


def test_a_build_whose_mark_has_gone_or_whose_time_is_over_is_not_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = memory()
    with begin_build(store) as build:
        for mark in read_marks(store):
            store.delete(mark.file.path)
        with pytest.raises(StoreFailed, match="mark of this build has gone"):
            build.publish(made(store, 1))
    monkeypatch.setattr(publishing, "SILENCE", timedelta(0))
    with (
        begin_build(store) as build,
        pytest.raises(StoreFailed, match="no sign of life for 0 seconds: not published"),
    ):
        build.publish(made(store, 1))
    assert current_pointer(store) is None


def test_signs_of_life_are_a_file_beside_the_mark_and_go_with_it() -> None:
    store = memory()
    run = BuildRun()
    with begin_build(store, run=run) as build:
        assert sorted(file.path for file in store.list("marks")) == [f"marks/build-{run.id}"]
        for _ in range(2):
            build.sign()
            assert sorted(file.path for file in store.list("marks")) == [
                f"marks/build-{run.id}",
                f"marks/sign-{run.id}",
            ]
        assert run.published is None
        assert build.publish(made(store, 1)) == run.published
        store.delete(f"marks/build-{run.id}")
        build.sign()  # brings no mark back
        with pytest.raises(StoreFailed, match="mark of this build has gone"):
            build.publish(made(store, 1))
    assert list(store.list("marks")) == []


def test_the_thread_gives_signs_and_outlives_a_store_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    store = memory()
    monkeypatch.setattr(publishing, "_SIGN", 0.001)
    away = threading.Event()
    replace = store.replace

    def put(path: str, data: FileData) -> None:
        if not away.is_set():
            away.set()
            raise StoreFailed("the store is away")
        replace(path, data)

    monkeypatch.setattr(store, "replace", put)
    with begin_build(store):
        eventually_sync(lambda: any(file.path.startswith("marks/sign-") for file in store.list("marks")))
        assert away.is_set()


def test_a_build_is_not_published_while_a_gc_may_have_taken_it_for_dead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = memory()
    monkeypatch.setattr(publishing, "_PATIENCE", 0.0)
    with begin_build(store) as build:
        mark = write_mark(store, "gc")
        with pytest.raises(StoreFailed, match="gc is under way there: not published"):
            build.publish(made(store, 1))
        store.delete(mark)
        assert build.publish(made(store, 1)).number == 1


def test_staged_files_go_with_their_run_alone() -> None:
    store = memory()
    run, other = BuildRun(), BuildRun()
    store.put_new(f"{run.staged}-1", b"")
    store.put_new(f"{other.staged}-1", b"")
    run.remove_staged(store)
    assert [file.path for file in store.list("temporary")] == [f"{other.staged}-1"]


def test_a_store_that_is_away_at_the_end_of_a_failed_build_is_asked_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = memory()
    requested: list[str] = []

    def away(path: str, *_: object) -> None:
        requested.append(path)
        raise StoreFailed("away")

    with pytest.raises(ValueError, match="its own fault"), begin_build(store) as build:
        for name in ("delete", "get"):
            monkeypatch.setattr(store, name, away)
        raise ValueError("its own fault")
    assert requested == [f"marks/build-{build.run.id}"]


def test_a_build_that_fails_leaves_no_mark() -> None:
    store = memory()
    with pytest.raises(RuntimeError, match="the job"), begin_build(store):
        raise RuntimeError("the job")
    assert read_marks(store) == []


def test_a_build_does_not_begin_while_gc_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    store = memory()
    mark = write_mark(store, "gc")
    with monkeypatch.context() as patch:
        patch.setattr(publishing, "_PATIENCE", 0.0)
        with pytest.raises(StoreFailed, match="gc is under way there: try again"), begin_build(store):
            pass
    assert [one.kind for one in read_marks(store)] == ["gc"]

    def ends(_: float) -> None:
        assert sorted(one.kind for one in read_marks(store)) == ["build", "gc"]
        store.delete(mark)

    monkeypatch.setattr(time, "sleep", ends)
    with begin_build(store):
        assert [one.kind for one in read_marks(store)] == ["build"]


def test_a_gc_that_died_during_a_build_does_not_hold_it_up(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    with begin_build(store) as build:
        mark = write_mark(store, "gc")
        later = time.time() + GC_GRACE.total_seconds() + 60
        os.utime(tmp_path / mark, (later, later))
        build.sign()
        os.utime(tmp_path / sign_path(build.run.id), (2 * later - time.time(),) * 2)
        assert build.publish(made(store, 1)).number == 1


def test_a_generation_with_a_damaged_file_is_published_only_where_the_build_knows_the_file() -> None:
    store = memory()
    manifest = made(store, 3)
    segment = manifest.segments[0]
    data = bytearray(store.get(segment.name, segment.size) or b"")
    data[30] ^= 1
    store.replace(segment.name, bytes(data))
    with begin_build(store) as build:
        with pytest.raises(InvalidGeneration, match=r"checksum.*not published") as caught:
            build.publish(manifest)
        assert caught.value.file == segment.name
        # Files that the build wrote or read are not read again.
        assert build.publish(manifest, verified={segment.name}).number == 1
        # Writing the generation again repairs it.
        assert made(store, 3) == manifest
        assert build.publish(manifest).number == 2
    store.replace(manifest.questions.name, b"x" * manifest.questions.size)
    with pytest.raises(InvalidGeneration, match=r"checksum.*not published"):
        use_generation(store, manifest.id)


def test_a_number_of_any_width_is_followed_by_the_next() -> None:
    store = memory()
    publish(store, 1)
    store.put_new("pointers/999999999999.json", b"foreign")
    store.put_new("pointers/0999999999999.json", b"no way to write a number")
    second = publish(store, 2)
    assert second.path == "pointers/1000000000000.json"
    assert current_pointer(store) == second
    store.put_new(f"pointers/{'9' * 18}.json", b"foreign")
    with pytest.raises(
        StoreFailed, match=r"pointers/9{18}\.json is there, and no number is higher: not published"
    ):
        publish(store, 3)


def test_a_number_that_something_else_has_is_passed_over(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    publish(store, 1)
    os.mkfifo(tmp_path / "pointers" / "000000000002.json")
    assert publish(store, 2).number == 3
