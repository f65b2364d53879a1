"""Differences of parts against sets of names: versions of a listing, patterns, masks, several chunks."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from broker_core.listing.changes import part_difference as part_difference_module
from broker_core.listing.changes.part_difference import bytes_to_compare, part_difference
from broker_core.listing.listing import Listing, Selection, data_of, part_of, selection_of
from broker_core.listing.listing_data import ListingData, Pieces
from broker_core.listing.listing_part import ListingPart
from broker_core.names import Mode, NamespaceName
from broker_core.patterns import compile_pattern
from tests.support.chunks import tiny_chunks
from tests.support.examples import examples

NAMESPACE = NamespaceName("t", "n")


def name(number: int) -> str:
    return f"persistent://t/n/topic-{number:05}"


def differ(new: Selection, old: Selection) -> tuple[set[str], set[str]]:
    added, gone = part_difference(data_of(new.listing), part_of(new), data_of(old.listing), part_of(old))
    mine, theirs = selection_of(new.listing, added), selection_of(old.listing, gone)
    for each in (mine, theirs):
        rows = each.row_array
        assert (rows[1:] > rows[:-1]).all()
    return set(mine.names.to_pylist()), set(theirs.names.to_pylist())


def parts(listing: Listing, rng: random.Random) -> list[Selection]:
    keep = np.random.default_rng(rng.randrange(1000)).random(len(listing)) < 0.7
    low = rng.randrange(len(listing) + 1)
    return [
        listing.all(),
        listing.range(0, 0),
        listing.range(low, len(listing)),
        listing.all().mask(keep),
        listing.matching(compile_pattern("t/n/topic-.*[05]", max_length=100)),
        listing.matching(compile_pattern("t/n/topic-0001.*", max_length=100)),
    ]


@pytest.mark.parametrize("seed", range(examples(4)))
def test_it_is_the_difference_of_the_sets_of_names(seed: int) -> None:
    rng = random.Random(seed)
    with tiny_chunks(rng.choice([60, 200, 2000, 100_000])):
        before = Listing.from_names(NAMESPACE, Mode.ALL, [name(rng.randrange(400)) for _ in range(200)])
        after = before.with_changes(
            [name(rng.randrange(400)) for _ in range(rng.choice([0, 1, 40]))],
            [name(rng.randrange(400)) for _ in range(rng.choice([0, 1, 40]))] + ["non-persistent://t/n/x"],
        )
        for new in parts(after, rng):
            for old in parts(before, rng):
                names, former = set(new.names.to_pylist()), set(old.names.to_pylist())
                assert differ(new, old) == (names - former, former - names)


@pytest.mark.parametrize("seed", range(examples(4)))
def test_of_many_small_changes_it_is_that_of_the_sets_of_names(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    steps = rng.choice([1, 3, 20, 400])  # of so many, those that are known are not enough
    with tiny_chunks(rng.choice([60, 2000, 100_000])):
        before = after = Listing.from_names(
            NAMESPACE, Mode.ALL, [name(rng.randrange(400)) for _ in range(200)]
        )
        for _ in range(steps):
            gone = [name(rng.randrange(100)) for _ in range(rng.choice([0, 1, 2]))]
            after = after.with_changes(gone, [name(rng.randrange(100)), "non-persistent://t/n/x"])
        for new in parts(after, rng):
            for old in parts(before, rng):
                names, former = set(new.names.to_pylist()), set(old.names.to_pylist())
                assert differ(new, old) == (names - former, former - names)
    if steps < 400:  # then nothing is compared
        sets = [set(each.all().names.to_pylist()) for each in (after, before)]
        monkeypatch.setattr(part_difference_module, "_by_rows", None)
        data, former_data = data_of(after), data_of(before)
        whole = ListingPart(0, data.size), ListingPart(0, former_data.size)
        came, went = part_difference(data, whole[0], former_data, whole[1])
        assert (len(came), len(went)) == (len(sets[0] - sets[1]), len(sets[1] - sets[0]))


def test_names_of_shared_chunks_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    pattern = compile_pattern("t/n/topic-.*5", max_length=100)
    with tiny_chunks(2000):
        before = Listing.from_names(NAMESPACE, Mode.PERSISTENT, [name(number) for number in range(3000)])
        after = before.with_changes([name(705)], [name(70_005), name(70_006)])
    read: list[int] = []
    all_names = ListingData.names

    def counted(data: ListingData, pieces: Pieces) -> pa.LargeStringArray:
        read.append(sum(len(rows) for _, rows in pieces))
        return all_names(data, pieces)

    new, old = after.matching(pattern), before.matching(pattern)
    parts_of = (data_of(after), part_of(new), data_of(before), part_of(old))
    assert 0 < bytes_to_compare(*parts_of) < 20_000
    monkeypatch.setattr(ListingData, "names", counted)
    added, gone = part_difference(*parts_of)
    assert sum(read) <= 40
    monkeypatch.undo()
    assert selection_of(after, added).names.to_pylist() == [name(70_005)]
    assert selection_of(before, gone).names.to_pylist() == [name(705)]
