"""The difference of two selections, as selections of their own listings."""

from __future__ import annotations

from broker_core.listing.listing import Listing
from broker_core.listing.selections.selection_search import (
    difference_bytes,
    known_changes,
    selection_difference,
)
from broker_core.names import Mode, NamespaceName

NAMESPACE = NamespaceName("t", "n")


def test_each_side_is_of_its_own_listing() -> None:
    names = [f"persistent://t/n/{local}" for local in "abcdef"]
    before = Listing.from_names(NAMESPACE, Mode.PERSISTENT, names)
    after = before.with_changes(names[:1], ["persistent://t/n/x"])
    added, gone = selection_difference(after.all(), before.all())
    assert added.listing is after
    assert gone.listing is before
    assert added.names.to_pylist() == ["persistent://t/n/x"]
    assert gone.names.to_pylist() == names[:1]
    assert difference_bytes(after.all(), before.all()) > sum(map(len, names))
    assert difference_bytes(before.all(), before.all()) == 0
    assert known_changes(after, before) == ["persistent://t/n/x", *names[:1]]
    assert known_changes(before, after) is None
    same = selection_difference(before.all(), before.all())
    assert [len(each) for each in same] == [0, 0]
