"""A mark counts while its owner may be alive, by the store's time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from broker_core_spark.store import Store
from broker_core_spark.store.build_and_gc_marks import (
    BUILD_GRACE,
    GC_GRACE,
    SILENCE,
    live_marks,
    mark_owner,
    new_run,
    read_marks,
    sign_path,
    write_mark,
)
from broker_core_spark.store.mark_owner import MarkOwner
from tests.support.generations import memory


def live(store: Store, kind: str, own: str, grace: timedelta, later: timedelta = timedelta(0)) -> list[str]:
    """The runs of live marks, at a time after that of the own mark."""
    found = read_marks(store)
    now = next(mark.file.modified for mark in found if mark.file.path == own) + later
    return [mark.run for mark in live_marks(store, found, kind, own, grace, now)]


def test_a_mark_without_an_owner_dies_of_age() -> None:
    store = memory()
    store.put_new("marks/build-0123456789ab", b"")  # as of earlier releases
    own = write_mark(store, "gc")
    assert live(store, "build", own, BUILD_GRACE) == ["0123456789ab"]
    assert live(store, "build", own, timedelta(0)) == []
    assert live(store, "gc", own, BUILD_GRACE) == []
    assert SILENCE < GC_GRACE < BUILD_GRACE


def test_a_mark_tells_its_owner_and_dies_without_signs_of_life() -> None:
    store = memory()
    run = new_run()
    write_mark(store, "build", run)
    own = write_mark(store, "gc")
    (mark,) = (mark for mark in read_marks(store) if mark.kind == "build")
    owner = mark_owner(store, mark)
    assert owner is not None
    assert owner.run == mark.run == run
    # Its age counts for nothing, only its silence.
    assert live(store, "build", own, timedelta(0)) == [run]
    assert live(store, "build", own, BUILD_GRACE, SILENCE) == []
    before = mark.signed
    store.put_new(sign_path(run, 7), b"")
    (mark,) = (mark for mark in read_marks(store) if mark.kind == "build")
    assert mark.signed >= before
    assert mark.file.path == f"marks/build-{run}"


@pytest.mark.parametrize("kind", ["build", "gc"])
def test_a_mark_whose_process_has_ended_counts_for_nothing(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    store = memory()
    write_mark(store, kind)
    own = write_mark(store, "gc")
    assert len(live(store, kind, own, BUILD_GRACE)) == 1
    monkeypatch.setattr(MarkOwner, "is_alive", lambda _: False)
    assert live(store, kind, own, BUILD_GRACE) == []
