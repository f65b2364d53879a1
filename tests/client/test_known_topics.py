"""What an answer changes, compared with a model of one counter a topic."""

from __future__ import annotations

import tracemalloc

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from broker_core.client.known_topics import KnownTopics

_NAMES = st.sets(st.sampled_from("abcdefgh"))


class _Model:
    """A counter for each topic: how many answers in a row were without it."""

    def __init__(self, confirmations: int) -> None:
        self.confirmations = confirmations
        self.absences: dict[str, int] = {}
        self.last: set[str] = set()

    def after(self, listed: set[str] | None) -> tuple[set[str], set[str]]:
        now = self.last if listed is None else listed
        added = now - self.absences.keys()
        removed = set()
        for name in list(self.absences):
            self.absences[name] = 0 if name in now else self.absences[name] + 1
            if self.absences[name] >= self.confirmations:
                removed.add(name)
                del self.absences[name]
        self.absences |= dict.fromkeys(now, 0)
        self.last = now
        return added, removed

    def told(self, listed: set[str], gone: set[str]) -> tuple[set[str], set[str]]:
        removed, added = gone & self.absences.keys() - listed, listed - self.absences.keys()
        for name in removed:
            del self.absences[name]
        self.absences |= dict.fromkeys(listed, 0)
        self.last = listed
        return added, removed


@given(st.integers(1, 4), _NAMES, st.lists(st.none() | _NAMES | st.tuples(_NAMES, _NAMES), max_size=30))
def test_answers_and_updates_change_what_the_model_says(
    confirmations: int, first: set[str], steps: list[set[str] | tuple[set[str], set[str]] | None]
) -> None:
    """An update says what came, and what went now or before."""
    model, known = _Model(confirmations), KnownTopics()
    for step in [first, *steps]:
        assert set(known.listed.to_pylist()) == model.last
        if isinstance(step, tuple):
            came, gone = step
            listed = (model.last - gone) | came
            wanted_added, wanted_removed = model.told(listed, gone)
            known, added, removed = known.updated(
                pa.array(sorted(listed), pa.large_string()), pa.array(sorted(gone), pa.large_string())
            )
        else:
            wanted_added, wanted_removed = model.after(step)
            column = None if step is None else pa.array(sorted(step), pa.large_string())
            known, added, removed = known.after(column, confirmations)
        assert sorted(added.to_pylist()) == sorted(wanted_added)
        assert sorted(removed.to_pylist()) == sorted(wanted_removed)
        assert sorted(known.names.to_pylist()) == sorted(model.absences)
        missing = {name: count for names, count in known.missing for name in names.to_pylist()}
        assert missing == {name: count for name, count in model.absences.items() if count}


def test_no_topic_is_an_object() -> None:
    names = pa.array(
        [f"persistent://public/default/{number}" for number in range(200_000)], pa.large_string()
    )
    known, added, removed = KnownTopics().after(names, 2)
    tracemalloc.start()
    try:
        known, added, removed = known.after(names.slice(1), 2)
        known, added, removed = known.after(names, 2)
        known, added, removed = known.after(None, 2)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (len(known.names), len(added), len(removed)) == (200_000, 0, 0)
    assert most < 1_000_000  # bytes: names alone would take ten times that
