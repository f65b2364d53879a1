"""Pages of rows that stay bytes are those of the same rows decoded."""

from __future__ import annotations

import random
from typing import Any, Final

import pytest

from broker_core.servers.kafka.pages import raw_units
from broker_core.servers.kafka.pages.answer_page import AnswerPage, UnitPlace
from broker_core.servers.kafka.pages.page_rows import Taken, item_runs, items_of, message_of
from broker_core.servers.kafka.pages.page_shapes import PageShape, shape_of
from broker_core.servers.kafka.pages.raw_units import RawUnits, raw_path
from broker_core.wire.kafka import (
    CONSUMER_GROUP_DESCRIBE,
    DESCRIBE_ACLS,
    DESCRIBE_GROUPS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    LIST_GROUPS,
    LIST_OFFSETS,
    LIST_PARTITION_REASSIGNMENTS,
    LIST_TRANSACTIONS,
    OFFSET_FETCH,
    Api,
    Fields,
    RawRows,
    read_raw_response,
    read_response,
    response_frame,
)
from tests.support.kafka_random_values import random_value

_CASES: Final = [
    (api, version)
    for api in (
        CONSUMER_GROUP_DESCRIBE,
        DESCRIBE_ACLS,
        DESCRIBE_GROUPS,
        DESCRIBE_LOG_DIRS,
        DESCRIBE_PRODUCERS,
        DESCRIBE_TRANSACTIONS,
        LIST_GROUPS,
        LIST_OFFSETS,
        LIST_PARTITION_REASSIGNMENTS,
        LIST_TRANSACTIONS,
        OFFSET_FETCH,
    )
    for version in range(api.versions.first, api.versions.last + 1)
    if shape_of(api, version) is not None and raw_path(api, version) is not None
]


def _answer(api: Api, version: int, chance: random.Random) -> bytes:
    """A random answer whose names are few, so that some come twice, and of different lengths."""
    shape = shape_of(api, version)
    assert shape is not None

    def keyed(rows: list[Fields], depth: int) -> None:
        level = shape.answered[depth]
        # Up to a tenth of all answers have a key twice.
        distinct, is_last = chance.random() < 0.9, chance.random() < 0.2
        names = chance.sample(range(40), len(rows)) if distinct else chance.choices(range(40), k=len(rows))
        for row, number in zip(rows, names, strict=True):
            for name, inside in level.keys.items():
                most = 2**63 - 1 if name == "producer_id" else 2**31 - 1
                value = most - number if is_last else number
                row[inside] = f"{'n' * (number % 5)}{number}" if isinstance(row[inside], str) else value
                if name == "resource_type":
                    row[inside] = number % 3
            if depth + 1 < len(shape.answered):
                keyed(row[shape.answered[depth + 1].array], depth + 1)

    value = random_value(api.response, version, chance, most=6)
    rows = value[shape.answered[0].array]
    if api is DESCRIBE_LOG_DIRS:
        del rows[chance.randint(1, 2) :]  # two directories are out of the ordinary
    keyed(rows, 0)
    return b"".join(response_frame(api, version, 7, value))[4:]


def _decoded(
    shape: PageShape, fields: Fields, limit: int, start: UnitPlace | None
) -> tuple[Fields, UnitPlace | None]:
    page = AnswerPage(shape.fields, shape.beginning, limit, start)
    taken: list[Taken] = []
    page.fill(item_runs(shape, items_of(shape, shape.answered, fields, page), start, taken, taken))
    return message_of(fields, shape.answered, taken), page.following


@pytest.mark.parametrize("few", [0, 256], ids=["together", "one by one"])
@pytest.mark.parametrize("case", _CASES, ids=lambda case: f"{case[0].name}-{case[1]}")
def test_pages_of_bytes_are_those_of_decoded_rows(
    case: tuple[Api, int], few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(raw_units, "FEW_PIECES", few)
    api, version = case
    shape, path = shape_of(api, version), raw_path(api, version)
    assert shape is not None
    assert path is not None
    chance = random.Random(api.key)
    ordinary = 0
    for _ in range(13):
        message = _answer(api, version, chance)
        fields = read_response(api, version, message)[1]
        raw = read_raw_response(path, api, version, message)[1]
        rows = raw[path[0][0]]
        assert isinstance(rows, RawRows)
        assert list(rows) == fields[path[0][0]]
        assert b"".join(response_frame(api, version, 7, raw))[4:] == message
        if chance.random() < 0.5:  # of several nodes
            cut = chance.randint(0, len(rows))
            parts = [
                b"".join(response_frame(api, version, 7, {**fields, path[0][0]: some}))[4:]
                for some in (list(rows)[:cut], list(rows)[cut:])
            ]
            rows = RawRows.joined(
                [read_raw_response(path, api, version, part)[1][path[0][0]] for part in parts]
            )
            places = chance.sample(range(len(rows)), len(rows))
            assert list(rows.ordered(places)) == [fields[path[0][0]][each] for each in places]
            assert list(rows) == fields[path[0][0]]
        units = RawUnits.of(shape, rows)
        if units is None:
            continue
        ordinary += 1
        start: UnitPlace | None = None
        for limit in (1, 2, 7, 7, 100):
            low = 0 if start is None else units.before(start)
            assert low is not None
            high = min(low + limit, len(units))
            wanted, following = _decoded(shape, fields, limit, start)
            page: dict[str, Any] = {**raw, path[0][0]: units.encoded(low, high)}
            framed = b"".join(response_frame(api, version, 7, page))[4:]
            assert read_response(api, version, framed)[1] == wanted
            assert (units.place(high) if high < len(units) else None) == following
            start = following
            if start is None:
                break
    assert (ordinary >= 3) is not bool(shape.of_body)


@pytest.mark.parametrize("name", ["\u00e9", "a\0", ""])
def test_names_out_of_the_ordinary_are_left_to_those_who_decode(name: str) -> None:
    path, shape = raw_path(LIST_GROUPS, 5), shape_of(LIST_GROUPS, 5)
    assert path is not None
    assert shape is not None
    groups = [{"group_id": each} for each in (name, "b")]
    message = b"".join(response_frame(LIST_GROUPS, 5, 7, {"groups": groups}))[4:]
    rows = read_raw_response(path, LIST_GROUPS, 5, message)[1]["groups"]
    units = RawUnits.of(shape, rows)
    assert (units is None) is bool(name)


def test_memory_has_the_name_at_each_unit() -> None:
    """What is kept of a request counts in the permits: a name of 126 letters stands at each of its partitions."""
    shape, path = shape_of(LIST_OFFSETS, 7), raw_path(LIST_OFFSETS, 7)
    assert shape is not None
    assert path is not None
    rows = [{"partition_index": number, "offset": 0} for number in range(1000)]
    value: Fields = {"throttle_time_ms": 0, "topics": [{"name": "n" * 126, "partitions": rows}]}
    message = b"".join(response_frame(LIST_OFFSETS, 7, 7, value))[4:]
    _, fields = read_raw_response(path, LIST_OFFSETS, 7, message)
    units = RawUnits.of(shape, fields["topics"])
    assert units is not None
    assert units.nbytes > 126 * 1000 > fields["topics"].nbytes
