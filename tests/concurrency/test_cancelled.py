"""Whether whoever waits still wants what it waits for."""

from __future__ import annotations

import asyncio

import pytest

from broker_core.concurrency.cancelled import is_over, watch
from tests.support.eventually import eventually


def test_nothing_cancels_nothing() -> None:
    assert not is_over(None)
    watch(None, lambda: pytest.fail("called"))()


async def test_a_future_and_an_event_tell_once() -> None:
    told: list[str] = []
    future = asyncio.get_running_loop().create_future()
    event = asyncio.Event()
    watch(future, lambda: told.append("future"))
    watch(event, lambda: told.append("event"))
    assert not is_over(future)
    assert not is_over(event)
    future.set_result(None)
    event.set()
    assert is_over(future)
    assert is_over(event)
    await eventually(lambda: sorted(told) == ["event", "future"])


async def test_a_watch_that_ended_tells_nothing() -> None:
    told: list[str] = []
    future = asyncio.get_running_loop().create_future()
    event = asyncio.Event()
    for each in (future, event):
        watch(each, lambda: told.append("told"))()
    future.set_result(None)
    event.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert told == []
