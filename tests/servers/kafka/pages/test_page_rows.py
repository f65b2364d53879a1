from __future__ import annotations

from broker_core.servers.kafka.pages.answer_page import AnswerPage
from broker_core.servers.kafka.pages.page_rows import items_of
from broker_core.servers.kafka.pages.page_shapes import PageShape, shape_of
from broker_core.wire.kafka import (
    DESCRIBE_PRODUCERS,
    Api,
    Fields,
)


def shape(api: Api, version: int) -> PageShape:
    found = shape_of(api, version)
    assert found is not None
    return found


def test_a_long_name_is_made_a_key_once_for_all_its_partitions() -> None:
    """Each partition had a key of its own: a request of 400 KB took three gigabytes."""
    kind = shape(DESCRIBE_PRODUCERS, 0)
    asked: Fields = {"topics": [{"name": "é" * 1000, "partition_indexes": list(range(1000))}]}
    page = AnswerPage(kind.fields, kind.beginning, 7, None)
    items = items_of(kind, kind.requested, asked, page)
    assert len(items) == 1000
    assert len({id(item.order[0]) for item in items}) == 1
