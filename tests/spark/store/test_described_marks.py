"""Marks in words: their owner, and whether it lives."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from broker_core_spark.store.build_and_gc_marks import read_marks, write_mark
from broker_core_spark.store.described_marks import activities, described_mark
from broker_core_spark.store.mark_owner import MarkOwner
from tests.support.generations import memory


@pytest.mark.parametrize(
    ("alive", "said"),
    [(True, "it lives"), (False, "it has died"), (None, "its last sign of life was 90 s ago")],
)
def test_the_owner_is_asked(monkeypatch: pytest.MonkeyPatch, alive: bool | None, said: str) -> None:
    store = memory()
    write_mark(store, "build", "a1")
    monkeypatch.setattr(MarkOwner, "is_alive", lambda _: alive)
    (mark,) = read_marks(store)
    text = described_mark(store, mark, mark.signed + timedelta(seconds=90))
    assert text.startswith("run a1 of ")
    assert text.endswith(f"; {said}")


def test_a_mark_of_an_earlier_release_has_no_owner() -> None:
    store = memory()
    store.put_new("marks/build-b2", b"")
    (mark,) = read_marks(store)
    assert described_mark(store, mark, datetime.now(UTC)).startswith("run b2 of an earlier release, since ")


def test_builds_and_gc_are_shown_dead_or_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    store = memory()
    assert activities(store) == []
    write_mark(store, "gc", "c3")
    write_mark(store, "build", "d4")
    assert {(one["kind"], one["run"], one["live"]) for one in activities(store)} == {
        ("gc", "c3", True),
        ("build", "d4", True),
    }
    monkeypatch.setattr(MarkOwner, "is_alive", lambda _: False)
    assert [one["live"] for one in activities(store)] == [False, False]
