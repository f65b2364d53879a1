"""What leads from one listing of a cluster to the next: joined updates, and chunks that are shared."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from broker_core.change_log import CatalogVersion
from broker_core.listing.listing import data_of
from broker_core.names import Mode, NamespaceName
from broker_core.upstream.snapshots import TopicUpdate
from broker_core.upstream.snapshots.name_moves import net_moves, snapshot_of
from tests.support.chunks import tiny_chunks

VERSION = CatalogVersion("x", 2)
NAMESPACE = NamespaceName("t", "n")
NAMES = [f"persistent://t/n/{number:05d}" for number in range(2000)]


def test_updates_come_to_what_is_there_after_them() -> None:
    chance = random.Random(7)
    before = set(NAMES[:50])
    for _ in range(200):
        there, updates = set(before), []
        for _ in range(chance.randrange(6)):
            added = chance.sample(sorted(set(NAMES[:100]) - there), chance.randrange(4))
            removed = chance.sample(sorted(there), chance.randrange(4))
            updates.append(TopicUpdate(added, removed, ""))
            there = (there - set(removed)) | set(added)
        moves = net_moves(VERSION, updates)
        assert moves is not None
        assert set(moves.added) == there - before
        assert set(moves.removed) == before - there
        assert moves.count() == len(there ^ before)


@pytest.mark.parametrize("added", [True, False])
def test_updates_that_contradict_each_other_are_none(added: bool) -> None:
    name = (NAMES[0],)
    update = TopicUpdate(name if added else (), () if added else name, "")
    assert net_moves(VERSION, [update, update]) is None


@pytest.mark.parametrize("changed", [0, 3, 1900])
def test_a_snapshot_shares_what_did_not_change(changed: int) -> None:
    def names(first: int) -> pa.LargeStringArray:
        return pa.array(NAMES[first:], pa.large_string())

    with tiny_chunks(1000):
        old, _ = snapshot_of(NAMESPACE, Mode.PERSISTENT, VERSION, None, names(0), most=0)
        new, moves = snapshot_of(NAMESPACE, Mode.PERSISTENT, VERSION, old, names(changed), most=changed)
    assert new.listing.names.to_pylist() == NAMES[changed:]
    assert (new is old) is (not changed)
    assert (moves is None) is (not changed)
    shared = {*data_of(new.listing).chunks} & {*data_of(old.listing).chunks}
    assert bool(shared) is (changed < 1000)
    if changed:
        _, unknown = snapshot_of(NAMESPACE, Mode.PERSISTENT, VERSION, old, names(changed), most=0)
        assert (unknown is None) is (changed > 1000)
