from __future__ import annotations

import pytest

from broker_core.servers.kafka.pages.answer_page import AnswerPage, UnitPlace
from broker_core.servers.kafka.pages.page_shapes import shape_of
from broker_core.servers.kafka.pages.raw_units import raw_path
from broker_core.servers.kafka.requests.page_parts import PageParts
from broker_core.wire.kafka import (
    LIST_GROUPS,
    Encoded,
    Fields,
    read_raw_response,
    read_response,
    response_frame,
)
from tests.support.kafka_calls import call_of


def _raw(names: list[str]) -> Fields:
    path = raw_path(LIST_GROUPS, 5)
    assert path is not None
    groups = [{"group_id": name} for name in names]
    message = b"".join(response_frame(LIST_GROUPS, 5, 7, {"groups": groups}))[4:]
    return read_raw_response(path, LIST_GROUPS, 5, message)[1]


@pytest.mark.parametrize("odd", ["", "\u00e9"])
async def test_parts_of_bytes_and_of_decoded_rows_are_one_page(odd: str) -> None:
    shape = shape_of(LIST_GROUPS, 5)
    assert shape is not None
    page = AnswerPage(shape.fields, shape.beginning, 5, UnitPlace(("b",)))
    parts = PageParts(call_of(LIST_GROUPS, 5), shape, page)
    await parts.add(_raw(["c", "a", "b"]))
    # What is an error as a whole is told with each part.
    await parts.add(_raw(["c", f"f{odd}", "d", "e"]))
    assert page.following is None
    await parts.add(_raw(["h", "g"]))
    message = await parts.message()
    assert page.following == UnitPlace(("g",))
    assert isinstance(message["groups"], Encoded) is False
    framed = b"".join(response_frame(LIST_GROUPS, 5, 7, message))[4:]
    rows = read_response(LIST_GROUPS, 5, framed)[1]["groups"]
    assert [row["group_id"] for row in rows] == ["b", "c", "d", "e", f"f{odd}"]


async def test_rows_of_parts_stay_bytes() -> None:
    shape = shape_of(LIST_GROUPS, 5)
    assert shape is not None
    page = AnswerPage(shape.fields, shape.beginning, 3)
    parts = PageParts(call_of(LIST_GROUPS, 5), shape, page)
    await parts.add(_raw(["b", "a"]))
    await parts.add(_raw(["d", "c"]))
    message = await parts.message()
    assert page.following == UnitPlace(("d",))
    assert isinstance(message["groups"], Encoded)
    framed = b"".join(response_frame(LIST_GROUPS, 5, 7, message))[4:]
    rows = read_response(LIST_GROUPS, 5, framed)[1]["groups"]
    assert [row["group_id"] for row in rows] == ["a", "b", "c"]
