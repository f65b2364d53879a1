"""Rows that are found by columns have the places that they have one after another."""

from __future__ import annotations

import random
from typing import Any, Final

import pytest

from broker_core.wire.kafka import (
    DESCRIBE_CONFIGS,
    DESCRIBE_GROUPS,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_PRODUCERS,
    LIST_GROUPS,
    LIST_OFFSETS,
    OFFSET_FETCH,
    Api,
    Fields,
    row_scan,
)
from broker_core.wire.kafka.fields import Array, Struct
from broker_core.wire.kafka.row_scan import RawPath, compiled_scan, own_places

_NAME: Final = ("name",)
CASES: Final[list[tuple[Api, int, RawPath]]] = [
    (LIST_OFFSETS, 8, (("topics", _NAME), ("partitions", ("partition_index",)))),
    (
        DESCRIBE_LOG_DIRS,
        4,
        (("results", ("log_dir",)), ("topics", _NAME), ("partitions", ("partition_index",))),
    ),
    (OFFSET_FETCH, 8, (("groups", ("group_id",)), ("topics", _NAME), ("partitions", ("partition_index",)))),
    (DESCRIBE_PRODUCERS, 0, (("topics", _NAME), ("partitions", ("partition_index",)))),
    (LIST_GROUPS, 5, (("groups", ("group_id",)),)),
    (DESCRIBE_GROUPS, 5, (("groups", ("group_id",)), ("members", ("member_id",)))),
    (DESCRIBE_CONFIGS, 4, (("results", ("resource_name", "resource_type")),)),
]


def _value(kind: Any, chance: random.Random, *, is_even: bool) -> Any:
    """A random value; ``is_even``: most rows have one layout."""
    if isinstance(kind, Struct):
        return {
            each.name: _value(each.kind, chance, is_even=is_even) for each in kind.fields if each.tag is None
        }
    if isinstance(kind, Array):
        counts = [1] * 30 + [0, 2, 40] if is_even else [0, 1, 2, 5]
        return [_value(kind.of, chance, is_even=is_even) for _ in range(chance.choice(counts))]
    name = getattr(kind, "name", "")
    if name in ("string", "bytes"):
        size = chance.choice([5] * 60 + [0, 6, 126, 127, 300] if is_even else [0, 1, 5, 126, 127, 300])
        return "n" * size if name == "string" else b"b" * size
    return 0


@pytest.mark.parametrize("is_even", [True, False])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].name}-{case[1]}")
def test_rows_by_columns_are_those_one_after_another(
    case: tuple[Api, int, RawPath], is_even: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    api, version, path = case
    rows_of = api.response.kind_of(path[0][0])
    assert isinstance(rows_of, Array)
    own = own_places(api.response, version, path)
    scans = []
    for few in (2, 10**9):
        monkeypatch.setattr(row_scan, "FEW_ROWS", few)
        scans.append(compiled_scan(rows_of.of, version, path, own, compact=True))
    chance = random.Random(repr(case))
    for count in [0, 1, 2, 3, *(chance.randrange(200) for _ in range(4))]:
        rows: list[Fields] = []
        for _ in range(count):
            row = _value(rows_of.of, chance, is_even=is_even)
            # Names have all lengths, and the rest of most rows is the same.
            rows.append(
                _named(row, path[0][1], chance)
                if not rows or chance.random() < 0.05
                else _named(rows[-1], path[0][1], chance)
            )
        message = _encoded(api, version, path[0][0], rows)
        found, wanted = [scan(message, 0, count) for scan in scans]
        assert found == wanted
        for end in {*(chance.randrange(len(message) + 1) for _ in range(5))} if message else ():
            ends: list[Any] = []
            for scan in scans:
                try:
                    ends.append(scan(message[:end], 0, count)[0] > end)
                except IndexError:
                    ends.append(True)
            assert ends[0] == ends[1]


def _named(row: Fields, keys: tuple[str, ...], chance: random.Random) -> Fields:
    size = chance.choice(
        [1, 2, 9, 9, 9, 60, 125, 126, 127, 200] if chance.random() < 0.05 else [3, 9, 20, 100]
    )
    return row | {key: "k" * size for key in keys if isinstance(row[key], str)}


def _encoded(api: Api, version: int, array: str, rows: list[Fields]) -> bytes:
    """The bytes of rows alone."""
    return b"".join(api.response_elements(array, rows, version).pieces)
