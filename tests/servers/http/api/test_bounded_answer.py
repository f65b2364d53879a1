"""Answers that are bounded in bytes, and wait for permits before they are made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker_core import HttpSite
from broker_core.memory import SMALL_ANSWER
from broker_core.servers.http.api import bounded_answer
from broker_core.servers.http.api.bounded_answer import MOST_BYTES, filled, json_of, within_bytes
from broker_core.servers.http.api.json_object import JsonObject
from tests.support.api_serving import NAMESPACE, api_served, catalog_of
from tests.support.eventually import eventually
from tests.support.plugins import PluginOf
from tests.support.silent_reader import silent_reader


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


async def test_a_large_answer_is_what_it_was(tmp_path: Path) -> None:
    many = [f"persistent://acme/{'n' * 900}-{number}/a" for number in range(150)]
    async with api_served(tmp_path, topics={name: (0, {}) for name in many}) as served:
        for path in ("/v1/namespaces", "/admin/v2/namespaces/acme"):
            said = await served.ask(path)
            assert len(said.json["items"] if path.startswith("/v1") else said.json) == 150
            assert len(said.body) > SMALL_ANSWER
            head = await served.ask(path, "HEAD")
            assert (head.status, head.body) == (200, b"")
            packed = await served.ask(path, headers={"Accept-Encoding": "gzip"})
            assert (packed.headers["Content-Encoding"], packed.json) == ("gzip", said.json)
        assert (await served.ask("/v1/namespaces?limit=140")).headers["Link"]
        assert int((await served.ask("/v1/namespaces", "HEAD")).headers["Content-Length"]) > SMALL_ANSWER


def large_answers() -> HttpSite:
    site = HttpSite("/large")
    site.route(
        "GET",
        "/zeros",
        lambda _request: bytes(8 * MOST_BYTES),
        needs="nothing",
        content_type="application/octet-stream",
    )
    return site


async def test_a_large_answer_of_any_operation_is_held_until_it_is_read(tmp_path: Path) -> None:
    """Of a plugin's too, which may be larger than what the kernel takes."""
    async with api_served(tmp_path, plugins={"p": PluginOf(http_routes=large_answers)}) as served:
        permits = served.broker.pipeline.permits
        assert (await served.ask("/large/zeros")).body == bytes(8 * MOST_BYTES)
        await eventually(lambda: permits.heap.acquired == 0)
        silent = await silent_reader(served, "/large/zeros")
        await eventually(lambda: permits.heap.acquired == 8 * MOST_BYTES)
        silent.close()
        await eventually(lambda: permits.heap.acquired == 0)


async def test_what_clients_ask_fills_an_answer_in_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_answer, "MOST_BYTES", 700)
    async with api_served(tmp_path, http={"questions": True}) as served:
        for number in range(8):
            await served.ask(f"{NAMESPACE}/topics", params={"pattern": f"public/default/{number}-{'x' * 80}"})
        for path, total in (
            ("questions", 8),
            ("metrics", None),
            ("clients", 1),
        ):
            said = await served.ask(f"/v1/server/{path}")
            assert len(said.body) < 800
            assert said.json["total"] == total or len(said.json["items"]) < said.json["total"]
        asked = {"pattern": "public/default/.*", "names": 10}
        said = await served.ask(f"{NAMESPACE}/explain", "POST", json=asked)
        assert len(said.json["names"]) == 3
        monkeypatch.setattr(bounded_answer, "MOST_BYTES", 100)
        said = await served.ask(f"{NAMESPACE}/explain", "POST", json=asked)
        assert (len(said.json["names"]), said.json["topics"]) == (2, 3)
