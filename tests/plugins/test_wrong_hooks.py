"""Hooks that block the event loop or raise unusual exceptions fail like any other."""

from __future__ import annotations

import asyncio
import time

import pytest
from structlog.testing import capture_logs

from broker_core.errors import ListingFailed, ServerError, TooManyRequests
from broker_core.plugin_api.listing_request import ListingRequest
from broker_core.plugins.call import event_loop_time
from broker_core.plugins.call.circuit_breaker import BreakerState
from broker_core.plugins.call.event_loop_time import BLOCKED
from broker_core.plugins.failures import PluginFailed
from tests.plugins.call.test_hook_caller import anything, caller, fails
from tests.support.clock import AGES, SetClock, time_passes
from tests.support.plugins import asked


async def test_a_hook_that_blocks_the_loop_beyond_its_deadline_has_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SetClock()
    monkeypatch.setattr(event_loop_time, "_clock", clock)
    monkeypatch.setattr(asyncio.get_running_loop(), "time", clock)

    async def function() -> str:
        await asyncio.sleep(0)
        clock.now += 1.5  # as much as it computes or sleeps
        return "too late"

    ask = caller(function, deadline="1s")
    with capture_logs() as logs:
        failures = [await fails(ask) for _ in range(5)]
    assert {failure.reason for failure in failures} == {"plugin_deadline"}
    assert str(failures[0]).startswith("plugin 'p' did not answer within 1 s, and held the event loop: ")
    assert (ask.loop_time.blocked, ask.breaker.state) == (5, BreakerState.OPEN)
    assert [entry["hook"] for entry in logs if "blocks the event loop" in entry["event"]] == ["list_topics"]
    assert ask.describe()["loop"]["blocked"] == 5


async def test_a_hook_that_blocks_within_its_deadline_is_told_and_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SetClock()
    monkeypatch.setattr(event_loop_time, "_clock", clock)

    async def function() -> str:
        clock.now += BLOCKED
        return "answer"

    def plain_function() -> object:
        return function()  # in a thread it makes the coroutine only

    for hook in (function, plain_function):
        ask = caller(hook, deadline="60s")
        with capture_logs() as logs:
            assert (await ask.call(asked(), anything))[0] == "answer"
        assert ["blocks the event loop" in entry["event"] for entry in logs] == [True]
        assert (ask.loop_time.blocked, ask.breaker.failures) == (1, 0)


async def test_a_hook_is_not_to_blame_for_a_loop_that_others_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = asyncio.Event()

    async def function() -> str:
        await gate.wait()
        return "answer"

    ask = caller(function, deadline=AGES)
    call = asyncio.create_task(ask.call(asked(), anything))
    for _ in range(5):
        await asyncio.sleep(0)
    gate.set()
    time_passes(monkeypatch, AGES + 1)  # somebody else holds the loop
    assert (await call)[0] == "answer"
    assert ask.loop_time.blocked == 0


async def test_plain_functions_hold_no_loop() -> None:
    ask = caller(lambda: time.sleep(0.15))
    await ask.call(asked(), anything)
    assert ask.loop_time.seconds == 0


class Broken(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_exception_without_text_is_a_failure_like_any_other(is_async: bool) -> None:
    def function() -> None:
        raise Broken

    async def async_function() -> None:
        raise Broken

    ask = caller(async_function if is_async else function)
    failure = await fails(ask)
    assert str(failure) == "plugin 'p' failed: Broken"
    assert "(its str() raised RuntimeError)" in failure.detail
    assert (ask.runner.threads.busy, ask.breaker.failures) == (0, 1)


@pytest.mark.parametrize(
    ("field", "value"), [("code", "MetadataError"), ("code", 99), ("message", None), ("counts", "x")]
)
async def test_a_listing_failed_that_cannot_be_sent_is_a_failure_like_any_other(
    field: str, value: object
) -> None:
    async def function() -> None:
        error = ListingFailed("text")
        setattr(error, field, value)
        raise error

    failure = await fails(caller(function))
    assert str(failure) == "plugin 'p' failed: ListingFailed"
    assert failure.code is ServerError.MetadataError


async def test_what_the_permits_refuse_is_not_believed_once_the_plugin_has_changed_it() -> None:
    async def reserve(size: int) -> None:
        raise TooManyRequests("no permits", reason="heap")

    async def function(request: ListingRequest) -> None:
        try:
            await request.reserve(1)
        except TooManyRequests as error:
            error.code = "later"  # type: ignore[assignment]
            raise

    with pytest.raises(PluginFailed, match="failed: TooManyRequests"):
        await caller(function).call(asked(reserve_bytes=reserve), anything)


async def test_the_plugins_own_refusal_has_no_reason_of_its_making() -> None:
    async def function() -> None:
        raise TooManyRequests("later", reason="a label for each tenant")

    with pytest.raises(TooManyRequests, match=r"^later$") as caught:
        await caller(function).call(asked(), anything)
    assert caught.value.reason == "plugin_error"


async def test_an_answer_whose_parts_raise_is_a_wrong_answer() -> None:
    def check(answer: object, request: ListingRequest) -> tuple[object, str]:
        raise RuntimeError("len")

    with pytest.raises(PluginFailed, match="gave a wrong answer: RuntimeError: len") as caught:
        await caller(lambda: 1).call(asked(), check)
    assert caught.value.reason == "plugin_answer"


async def test_many_failures_at_once_are_two_lines() -> None:
    gate = asyncio.Event()

    async def function() -> None:
        await gate.wait()
        raise ValueError

    ask = caller(function)
    calls = [asyncio.create_task(fails(ask)) for _ in range(300)]
    for _ in range(5):
        await asyncio.sleep(0)
    with capture_logs() as logs:
        gate.set()
        await asyncio.gather(*calls)
    assert [entry["breaker"] for entry in logs] == ["closed", "open"]
