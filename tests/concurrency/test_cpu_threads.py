from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar

import pytest

from broker_core.concurrency import cpu_threads
from broker_core.concurrency.cpu_threads import in_thread


class Work:
    """Calls in threads, which note their names in the order in which they begin."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.threads: set[threading.Thread] = set()
        self._free = threading.Event()

    def start(self, *names: str) -> asyncio.Future[list[str]]:
        """The key of each is the first letter of its name."""
        return asyncio.gather(*(in_thread(name[0], self._call, name) for name in names))

    def end(self) -> None:
        self._free.set()

    def _call(self, name: str) -> str:
        self.begun.append(name)
        self.threads.add(threading.current_thread())
        self._free.wait()
        return name.upper()


async def test_the_first_call_of_each_key_comes_before_any_second_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cpu_threads, "_THREADS", 1)
    work = Work()
    done = work.start("a1", "a2", "a3", "b1", "c1", "b2")
    work.end()
    assert await done == ["A1", "A2", "A3", "B1", "C1", "B2"]
    assert work.begun == ["a1", "a2", "b1", "c1", "a3", "b2"]
    assert len(work.threads) == 1
    assert threading.current_thread() not in work.threads


async def test_the_threads_are_apart_from_those_for_files() -> None:
    work = Work()
    done = work.start(*(f"a{number}" for number in range(50)))
    try:
        assert await asyncio.to_thread(lambda: "read") == "read"
        assert len(work.begun) <= cpu_threads._THREADS
    finally:
        work.end()
    assert len(await done) == 50
    assert {thread.name.partition("_")[0] for thread in work.threads} == {"cpu"}


async def test_work_has_the_context_of_its_caller() -> None:
    caller: ContextVar[str] = ContextVar("caller", default="nobody")
    caller.set("request 1")
    assert await in_thread("a", caller.get) == "request 1"


async def test_an_error_is_raised_and_a_cancelled_call_that_waits_is_not_made() -> None:
    with pytest.raises(LookupError):
        await in_thread("a", {}.__getitem__, "b")
    work = Work()
    full = work.start(*(f"a{number}" for number in range(cpu_threads._THREADS)))
    waits = asyncio.create_task(in_thread("b", work._call, "b1"))
    await asyncio.sleep(0)
    waits.cancel()
    work.end()
    await full
    with pytest.raises(asyncio.CancelledError):
        await waits
    assert "b1" not in work.begun


def test_threads_end_with_their_loop_and_with_the_next_one_where_it_was_only_closed() -> None:
    ended = asyncio.run(in_thread("a", threading.current_thread))
    ended.join(60)
    assert not ended.is_alive()
    of_closed = []
    for _ in range(3):
        loop = asyncio.new_event_loop()
        of_closed.append((loop, loop.run_until_complete(in_thread("a", threading.current_thread))))
        loop.close()
    asyncio.run(in_thread("a", threading.current_thread))
    for loop, thread in of_closed:
        assert loop not in cpu_threads._of_loops
        thread.join(60)
        assert not thread.is_alive()
