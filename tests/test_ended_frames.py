"""What failed or cancelled work had is free at once, without the cyclic collector."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Iterator

import pytest

from broker_core.ended_frames import let_go, let_go_of_cancelled


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


def test_an_error_that_its_own_frame_knows() -> None:
    kept: list[weakref.ref[Thing]] = []

    def inner() -> None:
        thing = Thing()
        kept.append(weakref.ref(thing))
        raise ValueError(str(thing))

    def outer() -> None:
        try:
            inner()
        except ValueError as error:
            failure = RuntimeError("failed")
            failure.__cause__ = error
            raise failure from error

    with pytest.raises(RuntimeError) as caught:
        outer()
    let_go(caught.value)
    assert kept[0]() is None


def test_the_error_is_not_asked() -> None:
    class Evil(Exception):
        @property
        def __cause__(self) -> BaseException:  # type: ignore[override]
            raise KeyboardInterrupt

        __context__ = __traceback__ = __cause__  # type: ignore[assignment]

    let_go(Evil())


def test_a_chain_may_be_a_ring() -> None:
    first, second = ValueError(), ValueError()
    first.__cause__, second.__cause__ = second, first
    let_go(first)
