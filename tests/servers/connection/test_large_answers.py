from __future__ import annotations

import asyncio
from contextlib import ExitStack
from functools import partial
from operator import is_
from pathlib import Path

import pytest

from broker_core import ListingRequest, TopicListingResult, hookimpl
from broker_core.memory.permit_budget import Permit, PermitBudget
from broker_core.servers.connection import LargeAnswer, LargeAnswers, ReaderPace
from broker_core.servers.connection.large_answers import WINDOW
from tests.support.api_serving import NAMESPACE, api_served
from tests.support.eventually import eventually
from tests.support.silent_reader import silent_reader


async def test_the_slowest_that_holds_some_is_cut() -> None:
    loop, heap, other = asyncio.get_running_loop(), PermitBudget(1), PermitBudget(1)
    answers, cut = LargeAnswers(), list[str]()
    with ExitStack() as writing:
        for name, seconds, budget in (
            ("slow", 5.0, heap),
            ("slower", 50.0, heap),
            ("slowest, of another", 500.0, other),
            ("new", 0.0, heap),
        ):
            pace = ReaderPace(1, loop.time() - seconds, write_timeout=1.0, min_rate=0)
            answer = LargeAnswer(pace, PermitBudget(1), 1, partial(is_, budget), partial(cut.append, name))
            writing.enter_context(answers.writing(answer))
        answers.make_room(heap)
        assert cut == ["slower"]
    answers.make_room(heap)
    assert cut == ["slower"]


async def test_larger_pieces_leave_half_of_the_permits_and_others_have_turns() -> None:
    loop, direct = asyncio.get_running_loop(), PermitBudget(1000)
    turns: list[str] = []

    def made() -> tuple[LargeAnswer, Permit]:
        pace = ReaderPace(1, loop.time(), write_timeout=1.0, min_rate=0)
        least = direct.try_acquire(100)
        assert least is not None
        return LargeAnswer(pace, direct, 100, lambda _: False, lambda: None), least

    async def others_turn(answer: LargeAnswer) -> bool:
        turns.clear()
        loop.call_soon(turns.append, "other")
        await answer.turn()
        return bool(turns)

    answer, least = made()
    assert answer.piece(60) == (60, None)
    assert answer.piece(100) == (100, None)
    assert answer.piece(502) == (100, None)
    size, larger = answer.piece(500)
    assert (size, larger is None) == (500, False)
    assert larger is not None
    assert (larger.count, direct.acquired) == (400, 500)
    answer.wrote(500)
    assert not await others_turn(answer), "it is alone, with all that it holds"
    answer.wrote(WINDOW)
    assert await others_turn(answer)
    _, other = made()
    assert not await others_turn(answer), "nothing is written since"
    answer.wrote(1)
    assert await others_turn(answer)
    answer.wrote(1)
    answer.waited()
    assert not await others_turn(answer)
    for permit in (larger, least, other):
        permit.release()
    assert direct.acquired == 0


class Large:
    """A listing of its own for each request, of some 25 MB."""

    @hookimpl
    def broker_core_list_topics(self, request: ListingRequest) -> TopicListingResult:
        names = [f"persistent://public/default/{number:06d}-{'x' * 200}" for number in range(100_000)]
        return TopicListingResult.success(names, filtered=False)


async def test_others_do_not_wait_for_a_client_that_does_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker_core.servers.connection.large_answers._SLOW_SECONDS", 0.01)
    limits = {"heap_permits": "40MB", "permit_timeout": "60s"}
    patient = {"enabled": ["large"], "large": {"deadline": "60s"}}
    large = {"large": Large()}
    async with api_served(tmp_path, plugins=large, plugin_settings=patient, limits=limits) as served:
        path = f"{NAMESPACE}/topics"
        with await silent_reader(served, path):
            await eventually(lambda: served.broker.pipeline.permits.direct.acquired > 0)
            assert len((await served.ask(path)).json["items"]) == 100_000
            assert served.sample("connections_closed_total", reason="slow") == 1
