"""Memory of failed or cancelled work is freed at once, without the cyclic collector."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from broker_core.memory.ended_frames import let_go_of_cancelled, own_field


class Thing:
    """Something with buffers."""


@pytest.fixture(autouse=True)
def _without_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


async def test_a_cancelled_task_that_a_timeout_knows() -> None:
    kept: list[weakref.ref[Thing]] = []

    async def work() -> None:
        thing = Thing()
        kept.append(weakref.ref(thing))
        budget = asyncio.timeout(60)
        async with budget:
            await asyncio.get_running_loop().create_future()
        assert budget.when()
        assert thing is not None

    task = asyncio.create_task(work())
    task.add_done_callback(let_go_of_cancelled)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert kept[0]() is None


def test_the_error_is_not_asked() -> None:
    class Evil(Exception):
        @property
        def __cause__(self) -> BaseException:  # type: ignore[override]
            raise KeyboardInterrupt

    assert own_field(Evil(), "__cause__") is None
    error = ValueError()
    error.__cause__ = KeyError()
    assert own_field(error, "__cause__") is error.__cause__
