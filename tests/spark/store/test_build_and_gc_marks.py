"""A mark counts until it is older than the time of grace, by the store's time."""

from __future__ import annotations

from datetime import timedelta

from broker_core_spark.store.build_and_gc_marks import (
    BUILD_GRACE,
    GC_GRACE,
    live_marks,
    read_marks,
    write_mark,
)
from tests.support.generations import memory


def test_marks_die_of_age() -> None:
    store = memory()
    other = write_mark(store, "build")
    own = write_mark(store, "gc")
    found = read_marks(store)
    assert [mark.file.path for mark in live_marks(found, "build", own, BUILD_GRACE)] == [other]
    assert live_marks(found, "build", own, timedelta(0)) == []
    assert live_marks(found, "gc", own, BUILD_GRACE) == []
    assert GC_GRACE < BUILD_GRACE
