"""The topics of a table that a selection of names shows: looked for once, for each selection of the same rows."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pyarrow as pa
import pytest

from broker_core.listing.listing import Listing, Selection
from broker_core.listing.topic_table import TopicTable
from broker_core.names import Mode, NamespaceName
from broker_core.service import VisibleTopics, visible_topic_tables
from broker_core.service.visible_topic_tables import SelectionMasks, local_names

NAMESPACE = NamespaceName("a", "b")
PREFIX = "persistent://a/b/"
LOCALS = ["a", "b-partition-0", "b-partition-1", "c", "d-partition-3"]


def listing() -> Listing:
    return Listing.from_names(NAMESPACE, Mode.PERSISTENT, [PREFIX + name for name in LOCALS])


def table() -> TopicTable:
    names = pa.array([b"a", b"b", b"c", b"d"], pa.large_binary())
    return TopicTable.of_columns(names, np.array([0, 2, 0, 4], np.int32), None)


def selected(topics: Listing, *locals_: str) -> Selection:
    return topics.all().mask(np.array([name in locals_ for name in LOCALS]))


def shown(visible: VisibleTopics) -> list[bytes]:
    found: list[bytes] = []
    for chunk, mask in zip(visible.table.chunks, visible.masks, strict=True):
        assert mask is not None
        found += chunk.names.filter(pa.array(mask)).to_pylist()
    return found


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[Selection]:
    """Each look at the names of a selection."""
    looks: list[Selection] = []
    marks = visible_topic_tables._marks

    def counted(topics: TopicTable, selection: Selection) -> np.ndarray:
        looks.append(selection)
        made: np.ndarray = marks(topics, selection)
        return made

    monkeypatch.setattr(visible_topic_tables, "_marks", counted)
    return looks


def test_a_topic_is_shown_by_any_of_its_names(looks: list[Selection]) -> None:
    masks, topics, names = SelectionMasks(), table(), listing()
    assert shown(masks.of(topics, selected(names, "b-partition-1", "c"))) == [b"b", b"c"]
    assert shown(masks.of(topics, selected(names, "d-partition-3"))) == [b"d"]
    assert shown(masks.of(topics, selected(names, "b-partition-1", "c"))) == [b"b", b"c"]
    assert len(looks) == 2, "selections of the same rows are the same"
    other = table()
    assert shown(masks.of(other, selected(names, "d-partition-3"))) == [b"d"]
    assert len(looks) == 3


def test_few_are_kept_and_none_beyond_the_table(
    looks: list[Selection], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(visible_topic_tables, "_KEPT", 2)
    masks, topics, names = SelectionMasks(), table(), listing()
    one, two, three = (selected(names, *some) for some in (("a",), ("a", "c"), ("c",)))
    for each in (one, two, one, three, one, two):
        masks.of(topics, each)
    assert looks == [one, two, three, two]
    gone = weakref.ref(topics)
    del topics
    gc.collect()
    assert gone() is None


def test_of_nothing() -> None:
    assert SelectionMasks().of(TopicTable(()), selected(listing(), "a")).count == 0


def test_names_without_their_namespace() -> None:
    assert local_names(listing().names, NAMESPACE).to_pylist() == LOCALS
