"""A mark counts until it is older than the time of grace, by the clock of the store."""

from __future__ import annotations

from datetime import timedelta

from broker_core_spark.store.activity_marks import GC_GRACE, GRACE, alive, make_mark, marks
from tests.support.generations import memory


def test_marks_die_of_age() -> None:
    store = memory()
    other = make_mark(store, "build")
    own = make_mark(store, "gc")
    found = marks(store)
    assert [mark.file.path for mark in alive(found, "build", own, GRACE)] == [other]
    assert alive(found, "build", own, timedelta(0)) == []
    assert alive(found, "gc", own, GRACE) == []
    assert GC_GRACE < GRACE
