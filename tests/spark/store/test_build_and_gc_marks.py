"""A mark is a lease: it counts until its last sign of life is too old, by the store's time."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta

import pytest

from broker_core_spark.store import Store
from broker_core_spark.store.build_and_gc_marks import (
    GC_GRACE,
    SILENCE,
    activities,
    described_mark,
    live_marks,
    new_run,
    read_marks,
    sign_path,
    user_name,
    write_mark,
)
from tests.support.generations import memory


def live(store: Store, kind: str, own: str, later: timedelta = timedelta(0)) -> list[str]:
    """The runs of live marks, at a time after that of the own mark."""
    found = read_marks(store)
    now = next(mark.file.modified for mark in found if mark.file.path == own) + later
    return [mark.run for mark in live_marks(found, kind, own, now)]


@pytest.mark.parametrize(("kind", "lease"), [("build", SILENCE), ("gc", GC_GRACE)])
def test_a_mark_lives_as_long_as_its_lease(kind: str, lease: timedelta) -> None:
    store = memory()
    run = new_run()
    write_mark(store, kind, run)
    own = write_mark(store, "gc")
    assert live(store, kind, own) == [run]
    assert live(store, kind, own, lease - timedelta(seconds=5)) == [run]
    assert live(store, kind, own, lease + timedelta(seconds=5)) == []


def test_a_sign_of_life_renews_the_lease() -> None:
    store = memory()
    run = new_run()
    write_mark(store, "build", run)
    (before,) = read_marks(store)
    store.put_new(sign_path(run), b"")
    (mark,) = read_marks(store)
    assert mark.signed >= before.signed
    assert (mark.kind, mark.run, mark.file.path) == ("build", run, f"marks/build-{run}")


def test_a_mark_in_words() -> None:
    store = memory()
    write_mark(store, "build", "0123")
    store.put_new("marks/gc-4567", "\u20ac".encode())
    by_run = {mark.run: mark for mark in read_marks(store)}
    now = by_run["0123"].signed + timedelta(seconds=7)
    said = described_mark(store, by_run["0123"], now)
    assert said.startswith(f"run 0123 of {user_name()} on ")
    assert f"process {os.getpid()}, since {datetime.now(UTC).year}" in said
    assert said.endswith("; its last sign of life was 7 s ago")
    assert described_mark(store, by_run["4567"], now).startswith("run 4567; its last")
    assert {one["run"]: one["live"] for one in activities(store)} == {"0123": True, "4567": True}
