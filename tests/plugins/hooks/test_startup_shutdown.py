"""Startup and shutdown of plugins, plain or async, and their failures."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel
from structlog.testing import capture_logs

from broker_core.plugins.call import event_loop_time
from broker_core.plugins.call.event_loop_time import BLOCKED
from broker_core.plugins.call.plugin_runner import PluginRunner
from broker_core.plugins.call.plugin_threads import PluginThreads
from broker_core.plugins.failures import PluginLoadError
from broker_core.plugins.hooks.startup_shutdown import offered_log, reloaded, shut_down, start_up
from tests.support.clock import SetClock
from tests.support.plugins import PluginOf, loaded


class Own(BaseModel):
    url: str = "x"


async def test_startup_gets_the_broker_and_the_settings() -> None:
    seen: list[object] = []

    async def later(broker: object, settings: object) -> None:
        seen.extend([broker, settings])

    def plain(settings: object) -> None:
        seen.append(settings)

    def passes_on(broker: object, settings: object) -> Any:
        return later(broker, settings)

    broker = object()
    for function in (later, plain, passes_on):
        await start_up(
            loaded(PluginOf(startup=function, settings=lambda: Own)),
            broker,
            PluginRunner("p"),
        )
    assert seen == [broker, Own(), Own(), broker, Own()]
    await start_up(loaded(PluginOf()), broker, PluginRunner("p"))
    await shut_down(loaded(PluginOf()), PluginRunner("p"))


def failing(error: BaseException) -> tuple[Callable[..., Any], Callable[..., Any]]:
    def plain() -> None:
        raise error

    async def later() -> None:
        raise error

    return plain, later


@pytest.mark.parametrize(
    "error", [ValueError("no database"), SystemExit("no database"), TimeoutError("no database")]
)
async def test_a_failed_start_names_the_plugin_and_why(error: BaseException) -> None:
    for function in failing(error):
        with pytest.raises(PluginLoadError) as caught:
            await start_up(loaded(PluginOf(startup=function)), None, PluginRunner("p"))
        assert str(caught.value) == f"plugin 'p' did not start: {type(error).__name__}: no database"
        assert caught.value.__cause__ is error


async def test_a_start_that_hangs_is_given_up() -> None:
    gate = threading.Event()

    async def later() -> None:
        await asyncio.Event().wait()

    async def cancels_itself() -> None:
        raise asyncio.CancelledError

    for function in (later, lambda: gate.wait(30)):
        with pytest.raises(PluginLoadError, match=r"did not start: not within 0\.02 s"):
            await start_up(loaded(PluginOf(startup=function)), None, PluginRunner("p"), 0.02)
    gate.set()
    with pytest.raises(PluginLoadError, match="did not start: CancelledError"):
        await start_up(loaded(PluginOf(startup=cancels_itself)), None, PluginRunner("p"))


async def test_a_start_can_be_cancelled() -> None:
    ended = asyncio.Event()

    async def later() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    starting = asyncio.create_task(start_up(loaded(PluginOf(startup=later)), None, PluginRunner("p")))
    for _ in range(3):
        await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    await asyncio.wait_for(ended.wait(), 60)


async def test_a_failed_end_is_only_logged() -> None:
    async def later() -> None:
        await asyncio.Event().wait()

    with capture_logs() as logs:
        for function in (*failing(ValueError("x")), later):
            await shut_down(loaded(PluginOf(shutdown=function)), PluginRunner("p"), 0.02)
        closed = PluginThreads("p")
        closed.close()
        await shut_down(loaded(PluginOf(shutdown=lambda: None)), PluginRunner("p", closed))
    assert [entry["error"] for entry in logs] == [
        "ValueError: x",
        "ValueError: x",
        "not within 0.02 s",
        "no free thread: its threads have ended",
    ]


class AnyLog:
    def __init__(self, name: object = "p") -> None:
        self.name = name

    async def catalog_id(self) -> str:
        return "x"

    def version_now(self, namespace: object) -> None:
        return None

    async def version(self, namespace: object) -> None: ...

    async def changes(self, namespace: object, since: object) -> None: ...


async def test_a_change_log_is_offered_plainly_or_async_or_not_at_all() -> None:
    log = AnyLog()

    async def later() -> object:
        return log

    def passes_on() -> object:
        return later()

    for function in (later, lambda: log, passes_on):
        offered = await offered_log(loaded(PluginOf(change_log=function)), PluginRunner("p"))
        assert id(offered) == id(log)
    for plugin in (PluginOf(), PluginOf(change_log=lambda: None)):
        assert await offered_log(loaded(plugin), PluginRunner("p")) is None


@pytest.mark.parametrize("offered", [object(), AnyLog(""), AnyLog("catalog"), AnyLog(3)], ids=range(4))
async def test_what_is_no_change_log_stops_the_start(offered: object) -> None:
    plugin = loaded(PluginOf(change_log=lambda: offered))
    with pytest.raises(PluginLoadError, match=r"plugin 'p' returned .* from broker_core_change_log"):
        await offered_log(plugin, PluginRunner("p"))


async def test_a_change_log_that_fails_stops_the_start() -> None:
    def fail() -> None:
        raise OSError("no database")

    plugin = loaded(PluginOf(change_log=fail))
    with pytest.raises(PluginLoadError, match="offers no change log: OSError: no database"):
        await offered_log(plugin, PluginRunner("p"))


@pytest.mark.parametrize("is_async", [False, True])
async def test_an_error_without_text_is_told_like_any_other(is_async: bool) -> None:
    class NoText(Exception):
        def __str__(self) -> str:
            raise RuntimeError

        __repr__ = __str__

    def plain() -> None:
        raise NoText

    async def later() -> None:
        raise NoText

    hook = later if is_async else plain
    plugin = loaded(PluginOf(startup=hook, shutdown=hook))
    runner = PluginRunner("p")
    says = r"NoText: \(its str\(\) raised RuntimeError\)"
    with pytest.raises(PluginLoadError, match=f"did not start: {says}"):
        await start_up(plugin, None, runner)
    with capture_logs() as logs:
        await shut_down(plugin, runner)
    assert re.fullmatch(says, logs[0]["error"])
    await runner.close()


async def test_a_startup_that_blocks_the_loop_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SetClock()
    monkeypatch.setattr(event_loop_time, "_clock", clock)

    async def blocks() -> None:
        clock.now += BLOCKED

    with capture_logs() as logs:
        await start_up(loaded(PluginOf(startup=blocks)), None, PluginRunner("p"))
    assert [(entry["plugin"], entry["hook"]) for entry in logs] == [("p", "startup")]


async def test_what_puts_settings_in_force_is_a_plain_function() -> None:
    class Live(BaseModel):
        live: ClassVar = frozenset({"url"})

        url: str = "x"

    async def later() -> None: ...

    called: list[str] = []
    answers: list[object] = []
    plugin = loaded(PluginOf(settings=lambda: Live, reloaded=lambda settings: answers.pop()))
    for answer, wrong in ((None, ""), (lambda: called.append("x"), ""), (7, "7"), (later, "<function")):
        answers.append(answer)
        if wrong:
            with pytest.raises(PluginLoadError, match=f"'p' returned {wrong}.* not a plain function"):
                await reloaded(plugin, plugin.options, PluginRunner("p"))
        else:
            put_in_force = await reloaded(plugin, plugin.options, PluginRunner("p"))
            assert (put_in_force is None) is (answer is None)
    assert called == []
