"""What is asked for stays the bytes of a request, or is decoded: nodes are asked the same."""

from __future__ import annotations

from typing import Final

import pytest

from broker_core.servers.kafka.pages.answer_page import AnswerPage, UnitPlace
from broker_core.servers.kafka.pages.page_shapes import shape_of
from broker_core.servers.kafka.pages.raw_units import requested_path
from broker_core.servers.kafka.requests.requested_names import requested_names
from broker_core.wire.kafka import (
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    DESCRIBE_TRANSACTIONS,
    LIST_OFFSETS,
    OFFSET_FETCH,
    Api,
    Fields,
    RawRows,
    Reader,
    Writer,
    read_raw_request,
)
from tests.support.kafka_calls import call_of

_GROUPS: Final = [f"group-{number}" for number in (3, 10, 1, 2, 0)]
_TOPICS: Final = [{"name": name, "partition_indexes": [2, 0, 1]} for name in ("b", "a")]
_CASES: Final[list[tuple[Api, int, Fields, tuple[object, ...]]]] = [
    (DESCRIBE_GROUPS, 5, {"groups": _GROUPS}, ("group-1", "")),
    (DESCRIBE_TRANSACTIONS, 0, {"transactional_ids": _GROUPS}, ("group-1", 5)),
    (
        OFFSET_FETCH,
        8,
        {"groups": [{"group_id": each, "topics": None} for each in _GROUPS]},
        ("group-1", "x", 7),
    ),
    (
        OFFSET_FETCH,
        9,
        {"groups": [{"group_id": each, "topics": _TOPICS} for each in _GROUPS]},
        ("group-1", "a", 1),
    ),
    (
        LIST_OFFSETS,
        8,
        {
            "topics": [
                {"name": name, "partitions": [{"partition_index": each} for each in (5, 1, 3)]}
                for name in ("n", "m", "o")
            ]
        },
        ("n", 2),
    ),
    (
        DESCRIBE_CONFIGS,
        4,
        {"resources": [{"resource_type": kind, "resource_name": each} for each in "cab" for kind in (4, 2)]},
        ("b", 4),
    ),
]


async def _bodies(api: Api, version: int, body: Fields, page: AnswerPage) -> tuple[list[bytes], bool, bool]:
    shape = shape_of(api, version)
    assert shape is not None
    asked = await requested_names(call_of(api, version, body), api, shape, page)
    bodies = []
    for part in [asked.filling()] if shape.one_each else asked.parts():
        writer = Writer()
        api.write_request(writer, await asked.body(part), version)
        bodies.append(writer.joined())
    return bodies, asked.has("group-1"), asked.has("none")


@pytest.mark.parametrize("case", _CASES, ids=lambda case: f"{case[0].name}-{case[1]}")
async def test_nodes_are_asked_the_same(case: tuple[Api, int, Fields, tuple[object, ...]]) -> None:
    api, version, body, key = case
    shape, path = shape_of(api, version), requested_path(api, version)
    assert shape is not None
    assert path is not None
    for limit in (1, 3, 1000):
        for start in (None, UnitPlace(key)):
            writer = Writer()
            api.write_request(writer, body, version)
            decoded = api.read_request(Reader(writer.joined()), version)
            raw = read_raw_request(path, api, Reader(writer.joined()), version)
            assert isinstance(raw[path[0][0]], RawRows)
            assert list(raw[path[0][0]]) == decoded[path[0][0]]
            answers = []
            for each in (raw, decoded):
                page = AnswerPage(shape.fields, shape.beginning, limit, start)
                bodies, known, unknown = await _bodies(api, version, each, page)
                whole = [api.read_request(Reader(one), version)[path[0][0]] for one in bodies]
                answers.append(([row for rows in whole for row in rows], known, unknown, page.following))
            assert answers[0] == answers[1]


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
    path, shape = requested_path(OFFSET_FETCH, 8), shape_of(OFFSET_FETCH, 8)
    assert path is not None
    assert shape is not None
    raw = read_raw_request(path, OFFSET_FETCH, Reader(writer.joined()), 8)
    page = AnswerPage(shape.fields, shape.beginning, 2_000)
    asked = await requested_names(call_of(OFFSET_FETCH, 8, raw), OFFSET_FETCH, shape, page)
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
