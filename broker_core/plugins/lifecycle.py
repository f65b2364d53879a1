"""Starting plugins and shutting them down."""

from __future__ import annotations

import asyncio
import inspect
from functools import partial
from typing import Any, Final

import structlog

from broker_core.plugins.caller import contained, plain
from broker_core.plugins.failures import PluginLoadError
from broker_core.plugins.registry import LoadedPlugin
from broker_core.plugins.threads import PluginThreads, ThreadsFull

__all__ = ["SHUTDOWN_TIMEOUT", "STARTUP_TIMEOUT", "shut_down", "start_up"]

log = structlog.get_logger(__name__)

#: Seconds that a plugin may take to start; longer, and the broker does not start.
STARTUP_TIMEOUT: Final = 60.0
#: Seconds that a plugin may take to shut down; longer, and it is left behind.
SHUTDOWN_TIMEOUT: Final = 10.0


class _HookFailed(Exception):
    """A hook raised, or took too long; the cause is what it raised."""


async def start_up(
    plugin: LoadedPlugin, broker: object, threads: PluginThreads, timeout: float = STARTUP_TIMEOUT
) -> None:
    """Call ``broker_core_startup``. Raises :exc:`PluginLoadError` for whatever goes wrong."""
    values = {"broker": broker, "settings": plugin.options.settings}
    try:
        await _call(plugin, "broker_core_startup", values, threads, timeout)
    except _HookFailed as error:
        raise PluginLoadError(plugin.name, plugin.origin, f"did not start: {error}") from error.__cause__


async def shut_down(plugin: LoadedPlugin, threads: PluginThreads, timeout: float = SHUTDOWN_TIMEOUT) -> None:
    """Call ``broker_core_shutdown``; a failure is logged, since the broker stops anyway."""
    try:
        await _call(plugin, "broker_core_shutdown", {}, threads, timeout)
    except _HookFailed as error:
        log.warning("plugin did not shut down", plugin=plugin.name, error=str(error))


async def _call(
    plugin: LoadedPlugin, hook: str, values: dict[str, Any], threads: PluginThreads, timeout: float
) -> None:
    implementation = plugin.implementations.get(hook)
    if implementation is None:
        return
    loop = asyncio.get_running_loop()
    values = {name: values[name] for name in implementation.arguments}
    work: asyncio.Future[Any]
    if implementation.is_async:
        work = loop.create_task(contained(implementation.function, values))
    else:
        try:
            work = threads.submit(partial(implementation.function, **values))
        except ThreadsFull as full:
            raise _HookFailed(f"no free thread: {full}") from full
    ends = loop.time() + timeout
    answer = await _within(work, ends - loop.time(), timeout)
    if inspect.isawaitable(answer):
        await _within(loop.create_task(contained(lambda: answer, {})), ends - loop.time(), timeout)


async def _within(work: asyncio.Future[Any], seconds: float, timeout: float) -> Any:
    try:
        done, _ = await asyncio.wait([work], timeout=max(seconds, 0.0))
    except asyncio.CancelledError:
        _give_up(work)
        raise
    if not done:
        _give_up(work)
        raise _HookFailed(f"not within {timeout:g} s")
    if work.cancelled():
        raise _HookFailed("CancelledError")
    error = work.exception()
    if error is not None:
        raise _HookFailed(f"{type(plain(error)).__name__}: {plain(error)}") from plain(error)
    return work.result()


#: Work that was given up and may still run, kept so that it is not collected meanwhile.
_given_up: set[asyncio.Future[Any]] = set()


def _give_up(work: asyncio.Future[Any]) -> None:
    def ended(work: asyncio.Future[Any]) -> None:
        _given_up.discard(work)
        if not work.cancelled():
            work.exception()

    _given_up.add(work)
    work.add_done_callback(ended)
    work.cancel()
