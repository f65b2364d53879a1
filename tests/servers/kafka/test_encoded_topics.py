from __future__ import annotations

from typing import Any

import numpy as np

from broker_core.listing.topic_table import TopicTable
from broker_core.servers.kafka.encoded_topics import copied_bytes, fragments, is_rendered, rendered
from broker_core.service import VisibleTopics
from broker_core.wire.kafka import Encoded
from broker_core.wire.kafka.topic_fragments import LISTED_FAMILY, Family, metadata_family
from tests.support.topic_chunks import chunk_of

TABLE = TopicTable([chunk_of({"__consumer_offsets": 1, "a": 1}), chunk_of({"b": 2, "c": 3})])


def encoded(visible: VisibleTopics, family: Family, operations: Any = None) -> Encoded:
    return fragments(visible, family, rendered(visible, family), operations)


def joined(visible: VisibleTopics) -> bytes:
    return b"".join(map(bytes, encoded(visible, LISTED_FAMILY).pieces))


def test_a_mask_leaves_topics_out() -> None:
    visible = VisibleTopics(TABLE, [None, np.array([False, True])])
    assert visible.count == encoded(visible, LISTED_FAMILY).count == 3
    assert joined(visible) == b"\0\x12__consumer_offsets\1\0\1a\0\0\1c\0"


def test_what_is_rendered_is_known() -> None:
    table = TopicTable([chunk_of({"a": 1})])
    visible, family = VisibleTopics(table, [None]), metadata_family(12, 1)
    assert not is_rendered(visible, family)
    encoded(visible, family)
    assert is_rendered(visible, family)
    assert is_rendered(VisibleTopics(TopicTable(()), []), family)


def test_bits_of_operations_are_those_of_the_caller() -> None:
    table = TopicTable([chunk_of({"a": 1, "b": 1})])
    visible = VisibleTopics(table, [np.array([False, True])])
    row = encoded(visible, metadata_family(12, 1, 3576), [np.array([1, 2], np.int32)])
    assert bytes(row.pieces[0])[-5:] == b"\0\0\0\2\0"


def test_only_what_is_masked_or_has_other_bits_is_copied() -> None:
    visible = VisibleTopics(TABLE, [None, np.array([False, True])])
    chunks = rendered(visible, LISTED_FAMILY)
    assert copied_bytes(visible, chunks) == len(chunks[1].data)
    assert copied_bytes(visible, chunks, [np.zeros(2, np.int32), None]) == sum(
        len(each.data) for each in chunks
    )
