"""Names with details in each form, read again by what reads it."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from broker_core.listing.details import Details
from broker_core.listing.rendered.details import (
    SHOWN_DETAILS,
    detail_arrow,
    detail_json_items,
    detail_ndjson,
    detail_schema,
)
from broker_core.listing.rendered.name_blocks import RenderedNames
from tests.support.topics import listing_of, persistent

NAMES = persistent("a", 'b"\\-partition-0', 'b"\\-partition-2', "c\n😀")
DETAILS = Details.of(
    persistent("a", 'b"\\', "c\n😀"),
    partitions=[0, 3, 0],
    topic_id=[None, bytes(range(16)), b"\xff" * 16],
    properties=[{"team": 'o"r'}, {}, None],
)
VALUES: dict[str, list[Any]] = {
    "partitions": [0, 3, 3, 0],
    "topic_id": [None, "AAECAwQFBgcICQoLDA0ODw", "AAECAwQFBgcICQoLDA0ODw", "_" * 21 + "w"],
    "properties": [{"team": 'o"r'}, {}, {}, None],
}
COLUMNS: list[tuple[str, ...]] = [(), ("partitions",), ("properties", "topic_id"), tuple(SHOWN_DETAILS)]


def shown(columns: tuple[str, ...]) -> list[dict[str, Any]]:
    """The objects, as they are read."""
    rows = zip(*(VALUES[column] for column in columns), strict=True) if columns else [()] * len(NAMES)
    return [
        {"name": name, **dict(zip(columns, row, strict=True))} for name, row in zip(NAMES, rows, strict=True)
    ]


@pytest.fixture(params=["page", "whole answer"])
def names(request: pytest.FixtureRequest) -> RenderedNames:
    return pa.array(NAMES, pa.large_string()) if request.param == "page" else listing_of(NAMES).all()


@pytest.mark.parametrize("columns", COLUMNS)
def test_json(names: RenderedNames, columns: tuple[str, ...]) -> None:
    items = json.loads(b"[" + b"".join(detail_json_items(names, DETAILS, columns)) + b"]")
    assert items == shown(columns)
    assert [list(item) for item in items] == [["name", *columns]] * len(items)
    lines = b"".join(detail_ndjson(names, DETAILS, columns)).split(b"\n")
    assert [json.loads(line) for line in lines[:-1]] == items
    assert lines[-1] == b""


@pytest.mark.parametrize("columns", COLUMNS)
def test_arrow(names: RenderedNames, columns: tuple[str, ...]) -> None:
    table = pa.ipc.open_stream(b"".join(detail_arrow(names, DETAILS, columns))).read_all()
    table.validate(full=True)
    assert table.schema == detail_schema(columns)
    assert table.to_pylist(maps_as_pydicts="strict") == shown(columns)


def test_nothing() -> None:
    page, details = pa.array([], pa.large_string()), Details.of([], partitions=[])
    assert b"".join(detail_json_items(page, details, ["partitions"])) == b""
    assert b"".join(detail_ndjson(page, details, ["partitions"])) == b""
    assert len(pa.ipc.open_stream(b"".join(detail_arrow(page, details, ["partitions"]))).read_all()) == 0
