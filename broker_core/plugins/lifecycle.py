"""Starting plugins and shutting them down."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Final

import structlog

from broker_core.change_log import ChangeLog
from broker_core.plugins.abandoned import Abandoned
from broker_core.plugins.caller import contained, plain
from broker_core.plugins.failures import PluginLoadError
from broker_core.plugins.loop_time import LoopTime
from broker_core.plugins.raised import in_words, is_awaitable, shown
from broker_core.plugins.registry import LoadedPlugin
from broker_core.plugins.threads import PluginThreads, ThreadsFull

__all__ = ["SHUTDOWN_TIMEOUT", "STARTUP_TIMEOUT", "offered_log", "shut_down", "start_up"]

log = structlog.get_logger(__name__)

#: Seconds that a plugin may take to start; longer, and the broker does not start.
STARTUP_TIMEOUT: Final = 60.0
#: Seconds that a plugin may take to shut down; longer, and it is left behind.
SHUTDOWN_TIMEOUT: Final = 10.0


class _HookFailed(Exception):
    """A hook raised, or took too long; the cause is what it raised."""


async def start_up(
    plugin: LoadedPlugin,
    broker: object,
    threads: PluginThreads,
    abandoned: Abandoned,
    timeout: float = STARTUP_TIMEOUT,
) -> None:
    """Call ``broker_core_startup``. Raises :exc:`PluginLoadError` for whatever goes wrong."""
    values = {"broker": broker, "settings": plugin.options.settings}
    try:
        await _call(plugin, "broker_core_startup", values, threads, abandoned, timeout)
    except _HookFailed as error:
        raise PluginLoadError(plugin.name, plugin.origin, f"did not start: {error}") from error.__cause__


async def offered_log(
    plugin: LoadedPlugin, threads: PluginThreads, abandoned: Abandoned, timeout: float = STARTUP_TIMEOUT
) -> ChangeLog | None:
    """What ``broker_core_change_log`` returns. Raises :exc:`PluginLoadError` where that is no change log."""
    try:
        log_of_changes = await _call(plugin, "broker_core_change_log", {}, threads, abandoned, timeout)
    except _HookFailed as error:
        raise PluginLoadError(
            plugin.name, plugin.origin, f"offers no change log: {error}"
        ) from error.__cause__
    if log_of_changes is None or (
        isinstance(log_of_changes, ChangeLog)
        and isinstance(log_of_changes.name, str)
        and log_of_changes.name not in {"", "catalog"}
    ):
        return log_of_changes
    raise PluginLoadError(
        plugin.name,
        plugin.origin,
        f"returned {shown(log_of_changes)} from broker_core_change_log, not a broker_core.change_log.ChangeLog "
        "with a name of its own",
    )


async def shut_down(
    plugin: LoadedPlugin, threads: PluginThreads, abandoned: Abandoned, timeout: float = SHUTDOWN_TIMEOUT
) -> None:
    """Call ``broker_core_shutdown``; a failure is logged, since the broker stops anyway."""
    try:
        await _call(plugin, "broker_core_shutdown", {}, threads, abandoned, timeout)
    except _HookFailed as error:
        log.warning("plugin did not shut down", plugin=plugin.name, error=str(error))


async def _call(
    plugin: LoadedPlugin,
    hook: str,
    values: dict[str, Any],
    threads: PluginThreads,
    abandoned: Abandoned,
    timeout: float,
) -> Any:
    implementation = plugin.implementations.get(hook)
    if implementation is None:
        return None
    loop = asyncio.get_running_loop()
    loop_time = LoopTime(plugin.name, hook.removeprefix("broker_core_"))
    function = partial(implementation.function, **{name: values[name] for name in implementation.arguments})
    work: asyncio.Future[Any]
    if implementation.is_async:
        work = loop.create_task(contained(function, loop_time))
    else:
        try:
            work = threads.submit(function)
        except ThreadsFull as full:
            raise _HookFailed(f"no free thread: {full}") from full
    ends = loop.time() + timeout
    answer = await _within(work, ends, abandoned, timeout)
    if is_awaitable(answer):
        answer = await _within(
            loop.create_task(contained(lambda: answer, loop_time)), ends, abandoned, timeout
        )
    return answer


async def _within(work: asyncio.Future[Any], ends: float, abandoned: Abandoned, timeout: float) -> Any:
    left = max(ends - asyncio.get_running_loop().time(), 0.0)
    try:
        done, _ = await asyncio.wait([work], timeout=left)
    except asyncio.CancelledError:
        abandoned.leave(work)
        raise
    if not done:
        abandoned.leave(work)
        raise _HookFailed(f"not within {timeout:g} s")
    if work.cancelled():
        raise _HookFailed("CancelledError")
    error = work.exception()
    if error is not None:
        raise _HookFailed(in_words(plain(error))) from plain(error)
    return work.result()
