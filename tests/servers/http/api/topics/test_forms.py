from __future__ import annotations

import json

import pyarrow as pa
import pytest

from broker_core.servers.http.api.body_writer import RenderedBody
from broker_core.servers.http.api.topics.listing_answer import (
    ARROW,
    JSON,
    NAMES,
    NDJSON,
    TEXT,
    ListingEnd,
    names_body,
)

TOPICS = ["persistent://t/n/a", 'persistent://t/n/"b"', "persistent://t/n/ü"]


def whole(body: RenderedBody) -> bytes:
    return b"".join([body.begin, *body.pieces, body.end])


def rendered(media_type: str, names: list[str], end: ListingEnd) -> RenderedBody:
    size = sum(len(name.encode()) for name in names)
    return names_body(media_type, pa.array(names, pa.large_string()), size, end)


@pytest.mark.parametrize("names", [TOPICS, TOPICS[:1], []])
def test_every_form_has_all_names(names: list[str]) -> None:
    end = ListingEnd(filtered=True, next=None, topics_hash="e4a876e3", total=len(names))
    assert json.loads(whole(rendered(JSON, names, end))) == {
        "items": names,
        "filtered": True,
        "next": None,
        "total": len(names),
        "topics_hash": "e4a876e3",
    }
    *lines, trailer = whole(rendered(NDJSON, names, end)).splitlines()
    assert [json.loads(line) for line in lines] == names
    assert json.loads(trailer) == {
        "topics_hash": "e4a876e3",
        "filtered": True,
        "next": None,
        "total": len(names),
    }
    assert whole(rendered(TEXT, names, end)).decode().splitlines() == names
    table = pa.ipc.open_stream(whole(rendered(ARROW, names, end))).read_all()
    assert table.to_pydict() == {"name": names}


def test_the_size_is_about_that_of_the_body() -> None:
    names = [f"persistent://t/n/{number:0100}" for number in range(1000)]
    for media_type in NAMES:
        body = rendered(media_type, names, ListingEnd(filtered=False, next=None, topics_hash="0"))
        size = body.size
        assert 0.9 * size <= len(whole(body)) <= 1.1 * size


def test_the_type_of_text_names_its_encoding() -> None:
    end = ListingEnd(filtered=True, next=None, topics_hash="0")
    assert rendered(TEXT, TOPICS, end).content_type == "text/plain; charset=utf-8"
