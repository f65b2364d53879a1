"""Runs that are collected together have the postings of each alone, in the order of keys, however rows are packed."""

from __future__ import annotations

from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_core import EncodedNames
from broker_core_spark.format import postings_collector
from broker_core_spark.format.picked_words import Matches, unpacked, word_counts
from broker_core_spark.format.postings_collector import PostingsCollector

COUNT = 90
NAMES = EncodedNames.of("a/b", "persistent", [f"t{number:03}" for number in range(COUNT)])
KEYS = [bytes([255 - number]) * 16 for number in range(9)]
PICKED = st.one_of(
    st.tuples(st.integers(0, COUNT), st.integers(0, COUNT)).map(lambda ends: (min(ends), max(ends))),
    st.sets(st.integers(0, COUNT - 1)).map(lambda rows: np.array(sorted(rows), np.uint32)),
    st.sets(st.integers(0, COUNT - 1), min_size=60).map(lambda rows: np.array(sorted(rows), np.int64)),
)
BOUNDS = st.sets(st.integers(1, COUNT - 1), max_size=7).map(lambda inner: [0, *sorted(inner), COUNT])


def rows_of(picked: Matches) -> list[int]:
    rows: list[int] = list(range(*picked)) if isinstance(picked, tuple) else picked.tolist()
    return rows


@given(
    BOUNDS,
    st.lists(PICKED, max_size=len(KEYS)),
    st.sampled_from([1, 100, 262_144]),
    st.sampled_from([0, 1024]),
)
def test_each_run_has_what_selectors_pick_of_it(
    bounds: list[int], picked: list[Matches], waiting: int, long: int
) -> None:
    collected = PostingsCollector(NAMES, bounds)
    with patch.multiple(postings_collector, _WAITING=waiting, _LONG=long):
        for key, one in zip(KEYS, picked, strict=False):
            collected.add(key, one)
        totals, runs = collected.finish()
        found = list(runs)
    wanted = {key: rows_of(one) for key, one in zip(KEYS, picked, strict=False) if rows_of(one)}
    whole = {
        bytes(entry["key"]): (int(entry["count"]), int(entry["crc"]), int(entry["joined"]))
        for entry in totals
    }
    assert whole == {key: (len(rows), *NAMES.crc(np.array(rows))) for key, rows in wanted.items()}
    assert len(found) == len(bounds) - 1
    for run, (low, high) in zip(found, pairwise(bounds), strict=True):
        own = {key: [row - low for row in rows if low <= row < high] for key, rows in sorted(wanted.items())}
        own = {key: rows for key, rows in own.items() if rows}
        assert run.names == high - low
        assert [bytes(key) for key in run.entries["key"]] == list(own)
        words = np.concatenate([np.empty(0, "<u4"), *run.words])
        assert len(words) == word_counts(run.entries, run.names).sum()
        for entry, rows in zip(run.entries, own.values(), strict=True):
            assert rows_of(unpacked(entry, words, run.names)) == rows
            crc = NAMES.slice(low, high).crc(np.array(rows))
            assert (int(entry["count"]), int(entry["crc"]), int(entry["joined"])) == (len(rows), *crc)


def test_a_selector_that_comes_twice_is_refused() -> None:
    postings = PostingsCollector(NAMES)
    postings.add(KEYS[0], (0, 1))
    with pytest.raises(ValueError, match="come twice"):
        postings.add(KEYS[0], (0, 1))


@pytest.mark.parametrize(
    ("picked", "wrong"),
    [
        ((0, COUNT + 1), "a range from 0 to 91"),
        ((2, 1), "a range from 2 to 1"),
        (np.array([COUNT]), "row numbers from 90 to 90 of 90 names"),
        (np.array([0, COUNT]), "row numbers from 0 to 90"),
        (np.array([-1, 1]), "row numbers from -1"),
        (np.array([1, 1]), "ascending integers"),
        (np.array([2, 0]), "ascending integers"),
        (np.array([0.0, 2.0]), "ascending integers"),
    ],
)
def test_matches_that_are_no_rows_are_refused(picked: Matches, wrong: str) -> None:
    postings = PostingsCollector(NAMES)
    with pytest.raises(ValueError, match=wrong):
        postings.add(KEYS[0], picked)
