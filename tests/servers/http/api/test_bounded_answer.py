"""Answers that are bounded in bytes, and wait for permits before they are made."""

from __future__ import annotations

from pathlib import Path

from broker_core.servers.http.api.bounded_answer import MOST_BYTES, within_bytes
from broker_core.servers.http.api.json_object import JsonObject
from tests.support.api_serving import NAMESPACE, api_served


class _Text(JsonObject):
    text: str


def test_items_are_shown_as_far_as_the_bytes_go() -> None:
    half, whole = _Text(text="x" * (MOST_BYTES // 2 - 20)), _Text(text="é" * (MOST_BYTES // 6))
    assert within_bytes([]) == ([], True)
    assert within_bytes([half, half]) == ([half, half], True)
    assert within_bytes([half, half, half]) == ([half, half], False)
    assert within_bytes([whole, half]) == ([whole], False)  # six bytes for each letter
    assert within_bytes(_Text(text="") for _ in range(3))[1] is True


async def test_without_permits_there_is_no_answer(tmp_path: Path) -> None:
    async with api_served(tmp_path, limits={"heap_permits": "1MB", "permit_timeout": "50ms"}) as served:
        paths = (
            f"{NAMESPACE}/topics/orders/history",
            f"{NAMESPACE}/properties/region",
            f"{NAMESPACE}/properties",
        )
        heap = served.broker.pipeline.permits.heap
        taken = await heap.acquire(heap.maximum)
        for path in paths:
            said = await served.ask(path)
            assert (said.status, said.json["cause"]) == (503, "PERMITS")
        taken.release()
        for path in paths:
            assert (await served.ask(path)).status == 200
