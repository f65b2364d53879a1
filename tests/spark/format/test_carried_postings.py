"""Postings that are carried over equal those of matching all names again."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from broker_core import EncodedNames
from broker_core_spark.format.carried_postings import MovedRows, carried_postings
from broker_core_spark.format.picked_words import Matches
from broker_core_spark.format.postings_collector import PostingsCollector
from broker_core_spark.format.postings_file import StoredPostings, read_postings
from broker_core_spark.format.postings_merge import merge_postings
from broker_core_spark.format.selector_keys import SelectorKeys

PLACE = ("a/b", "persistent")


def stored(names: EncodedNames, picked: dict[bytes, Matches]) -> StoredPostings:
    collected = PostingsCollector(names)
    for key, rows in picked.items():
        collected.add(key, rows)
    _, (made,) = collected.finish()
    words = np.concatenate([np.empty(0, "<u4"), *made.words])
    return StoredPostings(*PLACE, SelectorKeys.of(picked).digest, len(names), made.entries, words)


def test_rows_move_by_what_went_and_came_before_them() -> None:
    moved = MovedRows.of(5, np.array([0, 3]), np.array([0, 3, 5]))
    assert moved.to.tolist() == [-1, 1, 2, -1, 4]
    assert moved.came.tolist() == [0, 3, 5]
    assert moved.names == 6
    assert MovedRows.of(0, np.empty(0, np.int64), np.array([0, 0])).came.tolist() == [0, 1]


@pytest.mark.parametrize("at_once", [100, 1024 * 1024])
def test_carried_postings_equal_those_of_all_names(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    """Selectors of every kind and size, which lose and gain all, some or none of their names."""
    monkeypatch.setattr("broker_core_spark.format.carried_postings._UNPACKED", at_once)
    pick = random.Random(3)
    kinds = set()
    for turn in range(60):
        size = pick.choice([1, 30, 31, 200])
        before = sorted(pick.sample(range(1000), size))
        gone = sorted(pick.sample(range(size), pick.choice([0, 0, 1, min(size - 1, 20)])))
        left = [number for at, number in enumerate(before) if at not in gone]
        came = sorted(set(pick.sample(range(1000), pick.choice([0, 1, 30]))).difference(left))
        if not left and not came:
            continue
        names, new = (
            EncodedNames.of(*PLACE, [f"t{number:04}" for number in numbers])
            for numbers in (before, sorted([*left, *came]))
        )
        own = EncodedNames.of(*PLACE, [f"t{number:04}" for number in came])
        sets = [set(range(low, low + width)) for low in range(0, 1000, 90) for width in (1, 100, 1000)]
        sets += [set(pick.sample(range(1000), share)) for share in (0, 1, 5, 30, 500, 900, 999)]
        sets += [set(came), set(left), {*before}, set(before[::2])]
        keys = {bytes([turn, number] * 8): one for number, one in enumerate(sets)}

        def picked(numbers: list[int], keys: dict[bytes, set[int]] = keys) -> dict[bytes, Matches]:
            return {
                key: np.array([at for at, number in enumerate(numbers) if number in one], np.int64)
                for key, one in keys.items()
            }

        moved = MovedRows.of(size, np.array(gone, np.int64), np.searchsorted(before, came))
        gained = [(key, moved.came[rows]) for key, rows in picked(came).items()]
        former = stored(names, picked(before))
        kinds |= set(former.entries["kind"].tolist())
        selectors = {PLACE: SelectorKeys.of(keys)}
        runs = [(*PLACE, len(new))]
        parts, hashes = carried_postings(former, moved, gained, new)
        made = merge_postings(runs, parts, selectors)
        for part, again in zip(parts, carried_postings(former, moved, gained, hashes)[0], strict=True):
            assert (part.entries == again.entries).all()
            assert (part.words == again.words).all()
        whole = merge_postings(runs, [stored(new, picked(sorted([*left, *came])))], selectors)
        assert made.name == whole.name, turn
        read = read_postings(pa.py_buffer(b"".join(made.data)), made.name)
        assert read[0].names == len(new)
        spliced = names.with_changes(np.array(gone, np.int64), own, np.searchsorted(before, came))
        assert spliced.fields.equals(new.fields)
    assert kinds == {0, 1, 2}
