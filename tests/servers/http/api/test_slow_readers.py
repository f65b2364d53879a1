from __future__ import annotations

import asyncio
from contextlib import ExitStack
from functools import partial
from operator import is_
from pathlib import Path

import pytest

from broker_core import ListingRequest, TopicListingResult, hookimpl
from broker_core.memory.permit_budget import PermitBudget
from broker_core.servers.connection import ReaderPace
from broker_core.servers.http.api.slow_readers import SlowReaders
from tests.support.api_serving import NAMESPACE, api_served
from tests.support.eventually import eventually
from tests.support.silent_reader import silent_reader


async def test_the_slowest_that_holds_some_is_cut() -> None:
    loop, heap, other = asyncio.get_running_loop(), PermitBudget(1), PermitBudget(1)
    readers, cut = SlowReaders(), list[str]()
    with ExitStack() as reading:
        for name, seconds, budget in (
            ("slow", 5.0, heap),
            ("slower", 50.0, heap),
            ("slowest, of another", 500.0, other),
            ("new", 0.0, heap),
        ):
            pace = ReaderPace(1, loop.time() - seconds, write_timeout=1.0, min_rate=0)
            reading.enter_context(readers.reading(pace, partial(is_, budget), partial(cut.append, name)))
        readers.make_room(heap)
        assert cut == ["slower"]
    readers.make_room(heap)
    assert cut == ["slower"]


class Large:
    """A listing of its own for each request, of some 25 MB."""

    @hookimpl
    def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult:
        names = [f"persistent://public/default/{number:06d}-{'x' * 200}" for number in range(100_000)]
        return TopicListingResult.success(names, filtered=False)


async def test_others_do_not_wait_for_a_client_that_does_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker_core.servers.connection.reader_pace._SLOW_SECONDS", 0.01)
    limits = {"heap_permits": "40MB", "permit_timeout": "60s"}
    patient = {"enabled": ["large"], "large": {"deadline": "60s"}}
    large = {"large": Large()}
    async with api_served(tmp_path, plugins=large, plugin_settings=patient, limits=limits) as served:
        path = f"{NAMESPACE}/topics"
        with await silent_reader(served, path):
            await eventually(lambda: served.broker.pipeline.permits.direct.acquired > 0)
            assert len((await served.ask(path)).json["items"]) == 100_000
            assert served.sample("connections_closed_total", reason="slow") == 1
