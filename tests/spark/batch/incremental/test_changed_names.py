"""The changes of a stretch's names, found in each way, are those that sets of names have."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from broker_core import EncodedNames
from broker_core_spark.batch.incremental import changed_names
from broker_core_spark.batch.incremental.changed_names import NameChanges, run_changes
from broker_core_spark.batch.staging.order_keys import name_of_key, order_key
from broker_core_spark.batch.staging.sorted_runs import keyed_names
from broker_core_spark.format.postings_file import StoredPostings
from broker_core_spark.format.segment_layout import ENTRY
from broker_core_spark.format.segment_reader import SegmentRun

PLACES = [("a/b", "non-persistent"), ("a/b", "persistent"), ("a/c", "persistent")]
Key = bytes


def keys_of(place: tuple[str, str], names: list[str]) -> list[Key]:
    found: list[Key] = order_key(*place, pa.array(names, pa.large_string())).to_pylist()
    return found


def run_of(place: tuple[str, str], keys: list[Key]) -> SegmentRun:
    names = EncodedNames.of(*place, [name_of_key(key)[2] for key in keys], ordered=True)
    postings = StoredPostings(*place, "", len(names), np.empty(0, ENTRY), np.empty(0, "<u4"))
    return SegmentRun("names", "postings", names, postings)


def pieces_of(keys: list[Key], cut: int) -> list[list[SegmentRun]]:
    """Two pieces of sorted keys, each with its runs."""
    places = {key: name_of_key(key)[:2] for key in keys}
    return [
        [run_of(place, own) for place in PLACES if (own := [key for key in part if places[key] == place])]
        for part in (keys[:cut], keys[cut:])
    ]


@pytest.mark.parametrize("way", ["known", "compared", "with properties"])
def test_changes_are_those_of_sets_of_names(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    monkeypatch.setattr(changed_names, "_COMPARED", 7)
    pick = random.Random(4)
    alphabet = ["", "é", "\ue000", "\U0010ffff"]
    every = [
        key
        for place in PLACES
        for key in keys_of(place, [f"t{pick.choice(alphabet)}{number}" for number in range(60)])
    ]
    for _ in range(20):
        monkeypatch.setattr(changed_names, "_KEYED", pick.choice([20, 100]))
        before = sorted(pick.sample(every, 90))
        now = sorted(
            {*pick.sample(before, pick.choice([60, 88, 90])), *pick.sample(every, pick.choice([0, 1, 40]))}
        )
        staged, keys = list(now), None
        if way == "known":
            changed = set(before) ^ set(now) | set(pick.sample(now, 3))
            keys = tuple(sorted(changed | set(pick.sample(every, 2))))
            staged = [key for key in now if key in keys]
        texts = tuple(
            pa.array([key.hex() for key in staged], pa.large_string())
            for _ in range(way == "with properties")
        )
        changes = NameChanges(keys, keyed_names(pa.array(staged, pa.large_binary()), texts))
        pieces = pieces_of(before, 40)
        made: list[Key] = []
        for number, parts in enumerate(run_changes([before[0], before[40]], pieces, changes)):
            first = len(made)
            for part in parts:
                former = (
                    [] if part.former is None else keys_of(part.place, part.former.names.names.to_pylist())
                )
                own = [key for row, key in enumerate(former) if row not in set(part.gone.tolist())]
                for key, row in zip(part.came["key"].to_pylist(), part.before.tolist(), strict=True):
                    assert row == sum(known < key for known in former) + (key in former)
                    own.append(key)
                made += sorted(own)
                assert part.size == len(own)
                if way == "with properties":
                    assert part.properties[0].to_pylist() == [key.hex() for key in sorted(own)]
                else:
                    assert part.properties == ()
            differs = made[first:] != (before[40:] if number else before[:40])
            assert any(part.changes for part in parts) is differs or keys
        assert made == now


def test_without_changes_nothing_is_compared() -> None:
    assert NameChanges().none
    staged = keyed_names(pa.array([b"a/b\x011t"], pa.large_binary()))
    assert not NameChanges(None, staged).none
    assert not NameChanges(None, staged, digest="digest", before="other").none
    assert NameChanges(None, staged, digest="digest", before="digest").none
