"""Background tasks of plugins: contained, restarted, reported by name, and ended with the broker."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from broker_core.plugins import background_tasks as module
from broker_core.plugins.background_tasks import BackgroundTasks
from broker_core.plugins.call.event_loop_time import BLOCKED
from broker_core.plugins.call.plugin_runner import Abandoned
from tests.support.eventually import eventually


@asynccontextmanager
async def of_plugin() -> AsyncIterator[BackgroundTasks]:
    tasks = BackgroundTasks("p", Abandoned("p"))
    try:
        yield tasks
    finally:
        await tasks.close()


def spawn(
    tasks: BackgroundTasks, factory: Callable[..., Any], name: str = "t", *, restart: bool = True
) -> None:
    tasks.claim(factory, name, restart=restart)()


def shown(tasks: BackgroundTasks, name: str = "t") -> dict[str, Any]:
    (found,) = [each for each in tasks.describe() if each["name"] == name]
    return found


async def forever() -> None:
    await asyncio.Event().wait()


async def test_a_coroutine_function_runs_until_it_returns() -> None:
    done = asyncio.Event()
    async with of_plugin() as tasks:
        spawn(tasks, done.wait)
        assert shown(tasks)["state"] == "running"
        done.set()
        await eventually(lambda: shown(tasks)["state"] == "ended")
        assert (shown(tasks)["failures"], tasks.dead) == (0, [])


async def test_a_plain_function_runs_in_a_thread_of_its_own_until_it_is_told_to_stop() -> None:
    seen: list[str] = []

    def follow(stop: threading.Event) -> None:
        seen.append(threading.current_thread().name)
        stop.wait()
        seen.append("stopped")

    async with of_plugin() as tasks:
        spawn(tasks, follow, "follow")
        await eventually(lambda: len(seen) == 1)
        assert seen[0].startswith("plugin-p-follow")
    assert seen[1] == "stopped"


async def test_a_plain_function_that_returns_a_coroutine() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def work(number: int) -> None:
        loops.append(asyncio.get_running_loop())
        assert number == 3

    async with of_plugin() as tasks:
        spawn(tasks, lambda: work(3))
        await eventually(lambda: shown(tasks)["state"] == "ended")
    assert loops == [asyncio.get_running_loop()]


async def test_a_task_that_dies_is_in_the_log_and_started_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.001)
    runs = 0

    async def dies() -> None:
        nonlocal runs
        runs += 1
        if runs < 4:
            raise OSError("password=secret")
        await forever()

    with capture_logs() as logs:
        async with of_plugin() as tasks:
            spawn(tasks, dies, "refresh")
            await eventually(lambda: runs == 4 and shown(tasks, "refresh")["state"] == "running")
            found = shown(tasks, "refresh")
    assert (found["failures"], found["error"]) == (3, "OSError")
    failed = [each for each in logs if each["event"] == "plugin task failed"]
    assert [each["again_in"] for each in failed] == [0.001, 0.002, 0.004]
    assert failed[0]["plugin"] == "p"
    assert failed[0]["task"] == "refresh"
    assert "OSError: password=secret" in failed[0]["exception"]


async def test_it_waits_ever_longer_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 9:
            await forever()

    monkeypatch.setattr(asyncio, "sleep", pause)

    async def dies() -> None:
        raise KeyError

    with capture_logs():
        async with of_plugin() as tasks:
            spawn(tasks, dies)
            await eventually_without_sleep(lambda: len(pauses) == 9)
            assert shown(tasks)["state"] == "waiting"
            assert tasks.dead == ["task 't' failed: KeyError"]
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


async def eventually_without_sleep(condition: Callable[[], bool]) -> None:
    loop = asyncio.get_running_loop()
    while not condition():
        turn = loop.create_future()
        loop.call_soon(turn.set_result, None)
        await turn


async def test_without_restart_it_stays_dead() -> None:
    def dies() -> None:
        raise SystemExit(3)

    with capture_logs() as logs:
        async with of_plugin() as tasks:
            spawn(tasks, dies, restart=False)
            await eventually(lambda: shown(tasks)["state"] == "failed")
            assert tasks.dead == ["task 't' failed: SystemExit"]
            spawn(tasks, forever)  # its name is free
            assert shown(tasks)["state"] == "running"
            assert tasks.dead == []
    assert logs[0]["again_in"] is None


async def test_a_cancellation_that_nobody_asked_for_is_a_failure() -> None:
    async def cancels_itself() -> None:
        raise asyncio.CancelledError

    with capture_logs():
        async with of_plugin() as tasks:
            spawn(tasks, cancels_itself, restart=False)
            await eventually(lambda: shown(tasks)["error"] == "CancelledError")


async def test_names_are_unique_as_long_as_the_task_is_not_over() -> None:
    async with of_plugin() as tasks:
        spawn(tasks, forever)
        spawn(tasks, forever, "u")
        with pytest.raises(ValueError, match="a task 't' of this plugin is there already"):
            spawn(tasks, forever)
        assert [each["name"] for each in tasks.describe()] == ["t", "u"]


async def test_what_cannot_be_a_task_is_told() -> None:
    async with of_plugin() as tasks:
        coroutine = forever()
        with pytest.raises(TypeError, match="give the function, without calling it"):
            spawn(tasks, coroutine)  # type: ignore[arg-type]
        coroutine.close()
        for name in ("", "a b", "x" * 65, "ü"):
            with pytest.raises(ValueError, match="is none for a task"):
                spawn(tasks, forever, name)
        with pytest.raises(TypeError, match="name must be a string"):
            spawn(tasks, forever, 1)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="restart must be a bool"):
            spawn(tasks, forever, restart=None)  # type: ignore[arg-type]
        assert tasks.describe() == []


async def test_the_steps_on_the_event_loop_are_measured() -> None:
    async def blocks() -> None:
        begun = time.thread_time()
        while time.thread_time() - begun < 2 * BLOCKED:
            pass

    with capture_logs() as logs:
        async with of_plugin() as tasks:
            spawn(tasks, blocks)
            await eventually(lambda: shown(tasks)["state"] == "ended")
            assert tasks.loop_times()["spawn:t"].blocked == 1
            assert shown(tasks)["loop"]["blocked"] == 1
    assert logs[0]["hook"] == "spawn:t"


async def test_the_end_gives_time_to_clean_up() -> None:
    seen: list[str] = []

    async def tidy() -> None:
        seen.append("begun")
        try:
            await forever()
        finally:
            turn = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_soon(turn.set_result, None)
            await turn
            seen.append("tidied")

    async with of_plugin() as tasks:
        spawn(tasks, tidy)
        await eventually(lambda: seen == ["begun"])
    assert seen == ["begun", "tidied"]
    with pytest.raises(RuntimeError, match="the broker stops"):
        tasks.claim(forever, "late", restart=True)


async def test_what_does_not_end_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LAST_SECONDS", 0.01)
    release, running = threading.Event(), threading.Event()

    def hangs() -> None:
        running.set()
        release.wait()

    abandoned = Abandoned("p")
    tasks = BackgroundTasks("p", abandoned)
    spawn(tasks, hangs)
    await asyncio.to_thread(running.wait)
    with capture_logs() as logs:
        await tasks.close()
    assert logs[0]["event"] == "plugin task does not end"
    release.set()
    await abandoned.end()


async def test_a_task_that_was_claimed_in_a_thread_and_comes_too_late_is_not_started() -> None:
    async with of_plugin() as tasks:
        start = await asyncio.to_thread(tasks.claim, forever, "t", restart=True)
    start()
    assert shown(tasks)["state"] == "running"  # nobody looks at it any more
    assert tasks._tasks["t"].supervisor is None
