"""A patch makes the successor of a segment byte for byte, or nothing."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pyarrow as pa
import pytest

from broker_core import EncodedNames
from broker_core.names import Mode
from broker_core_spark.errors import InvalidGeneration
from broker_core_spark.format import segment_patch
from broker_core_spark.format.canonical_question import CanonicalQuestion, required_selectors
from broker_core_spark.format.carried_postings import carried_postings
from broker_core_spark.format.manifest import SegmentEntry
from broker_core_spark.format.postings_file import StoredPostings
from broker_core_spark.format.segment_layout import ENTRY, bit_words
from broker_core_spark.format.segment_patch import (
    RunPatch,
    SegmentPatch,
    patch_limit,
    patch_name,
    patched_segment,
)
from broker_core_spark.format.selector_keys import NO_SELECTORS, SelectorKeys, split_keys
from tests.support.generation_builder import build_generation, matches_of, stored_runs
from tests.support.generations import memory

PLACE = ("t/n", "persistent")
REQUESTED = [
    CanonicalQuestion.of("t/n", Mode.PERSISTENT, pattern) for pattern in (None, "t/n/a.*", ".*7", "none")
]
SELECTORS = required_selectors(REQUESTED)[PLACE]
KEYS = {PLACE: SelectorKeys.of(selector.key for selector in SELECTORS)}


class Pair:
    """A segment of names t/n and its successor, and the patch between them."""

    def __init__(self, before: list[str], now: list[str]) -> None:
        store = memory()
        entries = [
            build_generation(store, {"t/n": {"persistent": names}}, REQUESTED, catalogue_id="c").segments[0]
            for names in (before, now)
        ]
        self.former, self.successor = entries
        (run,) = stored_runs(store, self.former)
        self.runs = {PLACE: (run.names, run.postings)}
        self.wanted = [store.get(file.name, file.size) for file in (self.successor, self.successor.postings)]
        names = run.names.names.to_pylist()
        came = EncodedNames.of(*PLACE, sorted(set(now) - set(before)))
        picked = []
        for selector, rows in matches_of(came, SELECTORS, {}):
            chosen = np.arange(*rows) if isinstance(rows, tuple) else rows
            if len(chosen):
                picked.append((selector.key, chosen))
        gone = np.array([at for at, name in enumerate(names) if name not in now], np.int64)
        self.run = RunPatch(came, gone, np.searchsorted(names, came.names.to_pylist()), picked)
        self.run, _ = self.run.postings(self.runs[PLACE][1], self.run.names(self.runs[PLACE][0]))
        self.patch = self.between(self.run)

    def between(self, run: RunPatch) -> SegmentPatch:
        patch = SegmentPatch((self.former.name, self.former.postings.name), (run.record(),))
        assert run.least_size <= len(patch.data)
        return patch

    def made(self, data: bytes, successor: SegmentEntry | None = None) -> bytes:
        """The postings that a patch of these bytes makes."""
        _, file = patched_segment([SegmentPatch.parse(data)], successor or self.successor, self.runs, KEYS)
        return b"".join(file.data)


def pair() -> Pair:
    names = [f"{letter}{number:02}" for letter in "abc" for number in range(40)]
    now = [*(name for name in names if name[1:] not in ("03", "17")), "a20-new", "b7", "zz"]
    return Pair(names, now)


def test_a_patch_makes_the_files_of_the_successor() -> None:
    one = pair()
    assert len(one.patch.data) <= patch_limit(one.successor)
    assert SegmentPatch.between(one.former, one.successor, [one.run]) == one.patch
    assert one.made(one.patch.data) == one.wanted[1]
    made, _ = patched_segment([one.patch], one.successor, one.runs, KEYS)
    assert bytes(made[0][1].data[-1]).endswith(b"/zz")
    for before, now in ((["a"], ["b"]), (["a", "b"], ["b"]), (["b"], ["a", "b", "c7"])):
        small = Pair(before, now)
        assert small.made(small.patch.data) == small.wanted[1]


def test_a_patch_that_is_no_small_part_of_the_files_is_not_made() -> None:
    one = pair()
    rows = np.zeros(patch_limit(one.successor) // 2 + 1, np.int64)
    large = replace(one.run, picked=[(bytes(16), rows)])
    assert SegmentPatch.between(one.former, one.successor, [large]) is None


def test_postings_of_added_selectors_take_the_place_of_what_was_carried() -> None:
    one = pair()
    names = one.run.names(one.runs[PLACE][0])
    _, (carried, again) = one.run.postings(one.runs[PLACE][1])
    whole = one.made(one.patch.data)
    keys = frozenset(split_keys(again.entries["key"])[:1])
    entries = again.entries[:1].copy()
    words = int(entries["count"][0]) if entries["kind"][0] == 1 else 0
    added = StoredPostings(*PLACE, NO_SELECTORS.digest, len(names), entries, again.words[:words])
    patch = one.between(replace(one.run, added=added, dropped=keys))
    assert one.made(patch.data) == whole
    with pytest.raises(InvalidGeneration, match="same selector"):
        one.made(one.between(replace(one.run, added=added)).data)
    assert carried.names == len(names)


def test_another_successor_is_not_made() -> None:
    one = pair()
    others = {
        "the names": replace(one.successor, name=one.former.name),
        "the postings": replace(one.successor, postings=one.former.postings),
    }
    for what, other in others.items():
        with pytest.raises(InvalidGeneration, match=f"{what} that it makes have another checksum") as caught:
            one.made(one.patch.data, other)
        assert caught.value.file == patch_name(other.files)
    assert len({patch_name(entry.files) for entry in (one.successor, *others.values())}) == 3


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"former":["a"],"runs":[]}', b"\xff", b"[" * 100_000])
def test_what_is_no_patch_is_said(data: bytes) -> None:
    with pytest.raises(ValueError, match="it is no patch"):
        SegmentPatch.parse(data)


def test_hostile_patches_make_the_successor_or_nothing() -> None:
    """Any value of a patch is replaced by one of another type, sign or size."""
    one = pair()
    pick = random.Random(5)
    values: list[Any] = [
        None,
        -1,
        0,
        2**31,
        2**64,
        1.5,
        True,
        "",
        "x",
        "\ud800",
        [],
        [-1],
        [10**6],
        {},
        ["é"],
        "00",
    ]
    refused = 0

    def changed(value: Any) -> Any:
        if isinstance(value, dict) and value and pick.random() < 0.8:
            key = pick.choice(sorted(value))
            return value | {key: changed(value[key])}
        if isinstance(value, list) and value and pick.random() < 0.8:
            at = pick.randrange(len(value))
            return [*value[:at], changed(value[at]), *value[at + 1 :]]
        return pick.choice(values)

    record = json.loads(one.patch.data)
    record["runs"][0] |= {"added": ["", ""], "dropped": []}
    for _ in range(600):
        runs = changed(record["runs"])
        patch = SegmentPatch(one.patch.former, tuple(runs) if isinstance(runs, list) else (runs,))
        try:
            _, file = patched_segment([patch], one.successor, one.runs, KEYS)
        except InvalidGeneration:
            refused += 1
            continue
        assert b"".join(file.data) == one.wanted[1]
    assert refused > 300


def test_a_run_patch_that_cannot_be_is_refused() -> None:
    came = EncodedNames.of(*PLACE, ["x"])
    rows = np.array([0])
    for patch in (
        RunPatch(came, rows, np.array([4]), []),
        RunPatch(came, np.array([0, 0]), rows, []),
        RunPatch(came, rows, np.array([0, 0]), []),
        RunPatch(came, rows, rows, [(b"short", rows)]),
        RunPatch(came, rows, rows, [(bytes(16), np.array([1]))]),
    ):
        with pytest.raises(ValueError, match=r"row|place|key"):
            patch.check(3)
    assert pa.array(came.names).to_pylist() == ["x"]


def test_patches_that_follow_each_other_make_the_last_segment() -> None:
    names = [f"{letter}{number:02}" for letter in "abc" for number in range(40)]
    middle = [*(name for name in names if name[1:] not in ("03", "17")), "a20-new", "zz"]
    first, last = Pair(names, middle), Pair(middle, [*middle[3:], "b7", "zzz"])
    made, file = patched_segment([first.patch, last.patch], last.successor, first.runs, KEYS)
    assert b"".join(file.data) == last.wanted[1]
    assert bytes(made[0][1].data[-1]).endswith(b"/zzz")
    for wrong in ([last.patch], [last.patch, first.patch], [first.patch]):
        with pytest.raises(InvalidGeneration):
            patched_segment(wrong, last.successor, first.runs, KEYS)


@pytest.mark.parametrize(
    ("kind", "count"), [(3, 2**32 - 1), (2, 2**32 - 1), (1, 2**32 - 1), (0, 2**32 - 1), (3, 1)]
)
def test_added_postings_of_a_patch_are_verified_before_another_one_moves_them(
    monkeypatch: pytest.MonkeyPatch, kind: int, count: int
) -> None:
    names = [f"{letter}{number:02}" for letter in "abc" for number in range(40)]
    middle = [*names[1:], "zz"]
    first, last = Pair(names, middle), Pair(middle, [*middle, "zzz"])
    entries = np.zeros(1, ENTRY)
    entries["key"], entries["kind"], entries["count"], entries["joined"] = 255, kind, count, 1
    words = np.zeros(bit_words(len(middle)) if kind >= 2 else 0, "<u4")
    added = StoredPostings(*PLACE, NO_SELECTORS.digest, len(middle), entries, words)
    forged = first.between(replace(first.run, added=added))
    moved = Mock(side_effect=carried_postings)
    monkeypatch.setattr(segment_patch, "carried_postings", moved)
    with pytest.raises(InvalidGeneration, match=r"no kind|outside of|fewer words|bitmap|shorter"):
        patched_segment([forged, last.patch], last.successor, first.runs, KEYS)
    assert moved.call_count == 1, "the second patch moves nothing"
