"""A mark is a lease: it counts until its last sign of life is too old, by the store's time."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from broker_core_spark.store import open_store
from broker_core_spark.store.build_and_gc_marks import (
    GC_GRACE,
    SILENCE,
    activities,
    described_mark,
    new_run,
    read_marks,
    sign_path,
    user_name,
    write_mark,
)
from tests.support.generations import memory


@pytest.mark.parametrize(("kind", "lease"), [("build", SILENCE), ("gc", GC_GRACE)])
def test_a_mark_lives_as_long_as_its_lease_by_the_time_of_the_own_mark(
    tmp_path: Path, kind: str, lease: timedelta
) -> None:
    store = open_store(str(tmp_path))
    run, own = new_run(), new_run()
    written, later = write_mark(store, kind, run), write_mark(store, "gc", own)
    for seconds, live in ((0, True), (-5, True), (5, False)):
        silent = lease.total_seconds() + seconds if seconds else 0
        os.utime(tmp_path / written, (10**9, 10**9))
        os.utime(tmp_path / later, (10**9 + silent, 10**9 + silent))
        (mark,) = (mark for mark in read_marks(store, own) if mark.run == run)
        assert (mark.silent, mark.is_live) == (timedelta(seconds=silent), live)


def test_a_sign_of_life_renews_the_lease(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    run = new_run()
    written = write_mark(store, "build", run)
    os.utime(tmp_path / written, (10**9, 10**9))
    assert [mark.is_live for mark in read_marks(store)] == [False]
    store.put_new(sign_path(run), b"")
    (mark,) = read_marks(store)
    assert mark.is_live
    assert mark.silent < timedelta(minutes=1)
    assert (mark.kind, mark.run, mark.file.path) == ("build", run, written)


def test_a_mark_in_words() -> None:
    store = memory()
    write_mark(store, "build", "0123")
    store.put_new("marks/gc-4567", "\u20ac".encode())
    by_run = {mark.run: replace(mark, silent=timedelta(seconds=7)) for mark in read_marks(store)}
    said = described_mark(store, by_run["0123"])
    assert said.startswith(f"run 0123 of {user_name()} on ")
    assert f"process {os.getpid()}, since {datetime.now(UTC).year}" in said
    assert said.endswith("; its last sign of life was 7 s ago")
    assert described_mark(store, by_run["4567"]).startswith("run 4567; its last")
    assert {one["run"]: one["live"] for one in activities(store)} == {"0123": True, "4567": True}
