"""Answers that are bounded in bytes, and wait for permits before they are made."""

from __future__ import annotations

import json
from pathlib import Path

from broker_core.servers.http.api.bounded_answer import MOST_BYTES, filled, json_of, within_bytes
from broker_core.servers.http.api.json_object import JsonObject
from tests.support.api_serving import NAMESPACE, api_served, catalog_of


class _Text(JsonObject):
    text: str


class _Texts(JsonObject):
    before: str
    items: list[_Text]
    after: str


def test_items_are_shown_as_far_as_the_bytes_go() -> None:
    half, whole = _Text(text="x" * (MOST_BYTES // 2 - 20)), _Text(text="é" * (MOST_BYTES // 6))
    assert within_bytes([]) == ([], True)
    assert within_bytes([half, half]) == ([json_of(half)] * 2, True)
    assert within_bytes([half, half, half]) == ([json_of(half)] * 2, False)
    assert within_bytes([whole, half]) == ([json_of(whole)], False)  # six bytes for each letter
    assert within_bytes(_Text(text="") for _ in range(3))[1] is True


def test_an_object_is_filled_with_items_whatever_its_texts_are() -> None:
    content = _Texts(before='"items":[]', items=[], after='\\"items":[]')
    items = [_Text(text="a"), _Text(text='"items":[]')]
    for number in range(3):
        filled_with = filled(content, "items", map(json_of, items[:number]))
        assert json.loads(filled_with) == content.content() | {
            "items": [each.content() for each in items[:number]]
        }
        assert filled_with.endswith(b"}\n")


async def test_without_permits_there_is_no_answer(tmp_path: Path) -> None:
    async with api_served(tmp_path, limits={"heap_permits": "1MB", "permit_timeout": "50ms"}) as served:
        paths = (
            f"{NAMESPACE}/topics/orders/history",
            f"{NAMESPACE}/properties/region",
            f"{NAMESPACE}/properties",
            f"{NAMESPACE}/changes?since={catalog_of(served).catalog_id}:0",
        )
        heap = served.broker.pipeline.permits.heap
        taken = await heap.acquire(heap.maximum)
        for path in paths:
            said = await served.ask(path)
            assert (said.status, said.json["cause"]) == (503, "PERMITS")
        taken.release()
        for path in paths:
            assert (await served.ask(path)).status == 200
