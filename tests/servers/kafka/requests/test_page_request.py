"""What is asked for stays the bytes of a request, or is decoded: nodes are asked the same."""

from __future__ import annotations

import pytest

from broker_core.servers.kafka.pages.answer_page import AnswerPage, UnitPlace
from broker_core.servers.kafka.pages.page_shapes import shape_of
from broker_core.servers.kafka.pages.raw_units import asked_path
from broker_core.servers.kafka.requests.page_request import page_request
from broker_core.wire.kafka import (
    OFFSET_FETCH,
    Reader,
    Writer,
    read_raw_request,
)
from tests.support.kafka_calls import call_of


class _Units:
    """So many units, of which all are taken that the page has room for."""

    stops = True

    def __init__(self, size: int) -> None:
        self.size = size

    def take(self, count: int) -> None:
        assert count

    def place(self, count: int) -> UnitPlace:
        return UnitPlace((str(count), "", 0))


@pytest.mark.parametrize("each", [1, 5, 300])
async def test_no_more_is_asked_for_than_fills_the_page(each: int) -> None:
    """What each group has is known of those before it: the node's work is that of the whole, however many pages."""
    groups = [{"group_id": f"group-{number:05}", "topics": None} for number in range(2_000)]
    writer = Writer()
    OFFSET_FETCH.write_request(writer, {"groups": groups}, 8)
    path, shape = asked_path(OFFSET_FETCH, 8), shape_of(OFFSET_FETCH, 8)
    assert path is not None
    assert shape is not None
    raw = read_raw_request(path, OFFSET_FETCH, Reader(writer.joined()), 8)
    page = AnswerPage(shape.fields, shape.beginning, 2_000)
    asked = await page_request(call_of(OFFSET_FETCH, 8, raw), OFFSET_FETCH, shape, page)
    steps = []
    for low, high in asked.parts():
        steps.append(high - low)
        page.fill([_Units(high * each)])
        asked.answered(high * each, 0)
        if page.following is not None:
            break
    most = max(2_000 // each, 126)
    assert sum(steps) <= most + 1
    assert len(steps) <= 3
