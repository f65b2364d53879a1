from __future__ import annotations

from typing import Any

import numpy as np

from broker_core.listing.topic_table import TopicTable
from broker_core.servers.kafka.visible_topics import VisibleTopics, names_of
from broker_core.wire.kafka import Encoded
from broker_core.wire.kafka.topic_fragments import LISTED_FAMILY, Family, metadata_family
from tests.support.topic_chunks import chunk_of

TABLE = TopicTable([chunk_of({"__consumer_offsets": 1, "a": 1}), chunk_of({"b": 2, "c": 3})])


def fragments(visible: VisibleTopics, family: Family, operations: Any = None) -> Encoded:
    return visible.fragments(family, visible.rendered(family), operations)


def joined(visible: VisibleTopics) -> bytes:
    return b"".join(map(bytes, fragments(visible, LISTED_FAMILY).pieces))


def test_a_mask_leaves_topics_out() -> None:
    visible = VisibleTopics(TABLE, [None, np.array([False, True])])
    assert visible.count == fragments(visible, LISTED_FAMILY).count == 3
    assert joined(visible) == b"\0\x12__consumer_offsets\1\0\1a\0\0\1c\0"


def test_what_is_marked_is_left_out_besides() -> None:
    visible = VisibleTopics(TABLE, [None, np.array([False, True])])
    assert joined(visible.without_names(["__consumer_offsets", "b", "none"])) == b"\0\1a\0\0\1c\0"
    assert joined(VisibleTopics(TABLE, [None, None]).without_names(["b"])) == joined(visible)
    assert visible.without([np.array([True, True]), np.array([True, False])]).count == 1


def test_what_is_rendered_is_known() -> None:
    table = TopicTable([chunk_of({"a": 1})])
    visible, family = VisibleTopics(table, [None]), metadata_family(12, 1)
    assert not visible.is_rendered(family)
    fragments(visible, family)
    assert visible.is_rendered(family)
    assert VisibleTopics(TopicTable(()), []).is_rendered(family)


def test_bits_of_operations_are_those_of_the_caller() -> None:
    table = TopicTable([chunk_of({"a": 1, "b": 1})])
    visible = VisibleTopics(table, [np.array([False, True])])
    encoded = fragments(visible, metadata_family(12, 1, 3576), [np.array([1, 2], np.int32)])
    assert bytes(encoded.pieces[0])[-5:] == b"\0\0\0\2\0"


def test_all_names_in_one_column() -> None:
    assert names_of(TABLE).to_pylist() == [b"__consumer_offsets", b"a", b"b", b"c"]
    assert names_of(TopicTable(())).to_pylist() == []


def test_only_what_is_masked_or_has_other_bits_is_copied() -> None:
    visible = VisibleTopics(TABLE, [None, np.array([False, True])])
    rendered = visible.rendered(LISTED_FAMILY)
    assert visible.copied_bytes(rendered) == len(rendered[1].data)
    assert visible.copied_bytes(rendered, [np.zeros(2, np.int32), None]) == sum(
        len(each.data) for each in rendered
    )
