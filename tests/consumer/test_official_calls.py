"""Calls back from this thread and from others, failures, cancellation and closed loops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pulsar
import pytest
from pulsar.asyncio import PulsarException

from broker_core.consumer.official_calls import call, on_loop


def _at_once(value: str, callback: Callable[..., None]) -> None:
    callback(pulsar.Result.Ok, value)


def _in_a_thread(value: str, callback: Callable[..., None]) -> None:
    threading.Thread(target=callback, args=(pulsar.Result.Ok, value)).start()


@pytest.mark.parametrize("function", [_at_once, _in_a_thread])
async def test_the_value_is_what_it_calls_back_with(function: Callable[..., None]) -> None:
    assert await call(function, "value") == "value"


async def test_a_result_may_come_without_a_value() -> None:
    assert await call(lambda callback: callback(pulsar.Result.Ok)) is None


async def test_another_result_is_an_error() -> None:
    with pytest.raises(PulsarException, match="Timeout"):
        await call(lambda callback: callback(pulsar.Result.Timeout, None))


async def test_the_outcome_of_a_cancelled_call_is_dropped() -> None:
    callbacks: list[Callable[..., None]] = []
    waiting = asyncio.create_task(call(callbacks.append))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait([waiting])
    callbacks[0](pulsar.Result.Timeout)
    assert waiting.cancelled()


def test_a_call_back_after_the_end_of_the_loop_is_dropped() -> None:
    loop = asyncio.new_event_loop()
    called: list[int] = []
    thread = threading.Thread(target=on_loop(loop, called.append), args=(1,))
    loop.close()
    thread.start()
    thread.join()
    assert not called
