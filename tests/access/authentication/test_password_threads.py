"""Passwords are verified by two threads; hosts take turns, equal ones are one, and the queue is bounded."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator

import pytest

from broker_core.access.authentication import password_threads as module
from broker_core.access.authentication.failures import AuthenticationFailed
from broker_core.access.authentication.password_threads import AT_ONCE, PasswordThreads
from tests.support.eventually import eventually


@pytest.fixture
async def threads() -> AsyncIterator[PasswordThreads[bool]]:
    threads = PasswordThreads[bool]()
    yield threads
    threads.close()


class Gate:
    """Work that waits until it may go on, and tells what has begun."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.opened = threading.Event()

    def work(self, name: str) -> Callable[[], bool]:
        def run() -> bool:
            self.begun.append(name)
            return self.opened.wait(60)

        return run


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.opened.set()


async def test_verdicts_and_errors(threads: PasswordThreads[bool]) -> None:
    assert await threads.run("h", b"1", lambda: True) is True
    assert await threads.run("h", b"2", lambda: False) is False
    with pytest.raises(ZeroDivisionError):
        await threads.run("h", b"3", lambda: 1 // 0 == 1)


async def test_two_at_once_and_hosts_in_turn(threads: PasswordThreads[bool], gate: Gate) -> None:
    tasks = [
        asyncio.create_task(threads.run("storm", b"s%d" % number, gate.work(f"storm{number}")))
        for number in range(6)
    ]
    await eventually(lambda: len(gate.begun) == AT_ONCE)
    tasks.append(asyncio.create_task(threads.run("calm", b"c", gate.work("calm"))))
    await asyncio.sleep(0)
    assert len(gate.begun) == AT_ONCE
    gate.opened.set()
    assert all(await asyncio.gather(*tasks))
    assert gate.begun.index("calm") <= AT_ONCE + 1


async def test_equal_ones_are_one(threads: PasswordThreads[bool], gate: Gate) -> None:
    tasks = [asyncio.create_task(threads.run("h", b"same", gate.work("same"))) for _ in range(5)]
    await eventually(lambda: gate.begun)
    gate.opened.set()
    assert all(await asyncio.gather(*tasks))
    assert gate.begun == ["same"]


async def test_what_nobody_waits_for_is_not_begun(threads: PasswordThreads[bool], gate: Gate) -> None:
    busy = [
        asyncio.create_task(threads.run("h", b"%d" % number, gate.work("busy"))) for number in range(AT_ONCE)
    ]
    await eventually(lambda: len(gate.begun) == AT_ONCE)
    gone = [asyncio.create_task(threads.run("h", b"gone", gate.work("gone"))) for _ in range(2)]
    stays = asyncio.create_task(threads.run("h", b"stays", gate.work("stays")))
    await asyncio.sleep(0)
    for task in (*gone, busy[0]):
        task.cancel()
    await asyncio.gather(*gone, return_exceptions=True)
    gate.opened.set()
    assert await stays
    assert await busy[1]
    assert "gone" not in gate.begun


async def test_the_queue_is_bounded(
    threads: PasswordThreads[bool], gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_WAITING", 4)
    monkeypatch.setattr(module, "_MOST_OF_HOST", 3)
    tasks = [asyncio.create_task(threads.run("a", b"%d" % number, gate.work("a"))) for number in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(AuthenticationFailed) as refused:
        await threads.run("a", b"more", gate.work("a"))
    assert refused.value.reason == "overloaded"
    tasks += [asyncio.create_task(threads.run("b", b"b%d" % number, gate.work("b"))) for number in range(3)]
    await asyncio.sleep(0)
    with pytest.raises(AuthenticationFailed):
        await threads.run("c", b"more", gate.work("c"))
    gate.opened.set()
    assert all(await asyncio.gather(*tasks))
    assert await threads.run("a", b"again", lambda: True)


async def test_closing_refuses_what_waits(threads: PasswordThreads[bool], gate: Gate) -> None:
    tasks = [
        asyncio.create_task(threads.run("h", b"%d" % number, gate.work("h"))) for number in range(AT_ONCE + 2)
    ]
    await eventually(lambda: len(gate.begun) == AT_ONCE)
    threads.close()
    gate.opened.set()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert outcomes[:AT_ONCE] == [True] * AT_ONCE
    assert all(isinstance(outcome, AuthenticationFailed) for outcome in outcomes[AT_ONCE:])
    with pytest.raises(AuthenticationFailed):
        await threads.run("h", b"later", gate.work("h"))
