from __future__ import annotations

import numpy as np

from broker_core.listing.topic_table import TopicTable
from broker_core.service.visible_topic_tables import VisibleTopics, names_of
from tests.support.kafka_topics import names
from tests.support.topic_chunks import chunk_of

TABLE = TopicTable([chunk_of({"__consumer_offsets": 1, "a": 1}), chunk_of({"b": 2, "c": 3})])
VISIBLE = VisibleTopics(TABLE, [None, np.array([False, True])])


def test_a_mask_leaves_topics_out() -> None:
    assert VISIBLE.count == 3
    assert names(VISIBLE) == ["__consumer_offsets", "a", "c"]


def test_names_and_what_is_not_allowed_are_left_out_besides() -> None:
    assert names(VISIBLE.without_names(["__consumer_offsets", "b", "none"])) == ["a", "c"]
    assert names(VisibleTopics(TABLE, [None, None]).without_names(["b"])) == names(VISIBLE)
    allowed = dict(zip(TABLE.chunks, (np.array([False, True]), np.array([True, False])), strict=True))
    assert names(VISIBLE.allowed(allowed.__getitem__)) == ["a"]
    assert names(VISIBLE.allowed(lambda _chunk: None)) == names(VISIBLE)


def test_all_names_in_one_column() -> None:
    assert names_of(TABLE).to_pylist() == [b"__consumer_offsets", b"a", b"b", b"c"]
    assert names_of(TopicTable(())).to_pylist() == []
