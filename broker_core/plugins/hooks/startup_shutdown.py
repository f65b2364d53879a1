"""Starting plugins, giving them other settings, and shutting them down."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import structlog

from broker_core.change_log import ChangeLog
from broker_core.plugins.call.event_loop_time import LoopTime
from broker_core.plugins.call.plugin_runner import Deadline, NotInTime, PluginRunner
from broker_core.plugins.call.plugin_threads import RaisedByPlugin, ThreadsFull
from broker_core.plugins.failures import PluginLoadError
from broker_core.plugins.load.plugin_options import PluginOptions
from broker_core.plugins.load.registry import RELOADED, LoadedPlugin
from broker_core.plugins.raised_exceptions import in_words, shown

__all__ = ["SHUTDOWN_TIMEOUT", "STARTUP_TIMEOUT", "offered_log", "reloaded", "shut_down", "start_up"]

log = structlog.get_logger(__name__)

#: Seconds that a plugin may take to start, or to check other settings; after them it counts as failed.
STARTUP_TIMEOUT: Final = 60.0
#: Seconds that a plugin may take to shut down; after them the broker stops without it.
SHUTDOWN_TIMEOUT: Final = 10.0


class _HookFailed(Exception):
    """A hook raised, or took too long; ``__cause__`` is its exception."""


async def start_up(
    plugin: LoadedPlugin,
    broker: object,
    runner: PluginRunner,
    timeout: float = STARTUP_TIMEOUT,
) -> None:
    """Call ``broker_core_startup``. Raises :exc:`PluginLoadError` for whatever goes wrong."""
    values = {"broker": broker, "settings": plugin.options.settings}
    with _failing(plugin, "did not start"):
        await _call(plugin, "broker_core_startup", values, runner, timeout)


async def offered_log(
    plugin: LoadedPlugin, runner: PluginRunner, timeout: float = STARTUP_TIMEOUT
) -> ChangeLog | None:
    """The change log of ``broker_core_change_log``. Raises :exc:`PluginLoadError` for anything else."""
    with _failing(plugin, "offers no change log"):
        log_of_changes = await _call(plugin, "broker_core_change_log", {}, runner, timeout)
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


async def reloaded(
    plugin: LoadedPlugin, options: PluginOptions, runner: PluginRunner, timeout: float = STARTUP_TIMEOUT
) -> Callable[[], object] | None:
    """The function of ``broker_core_reloaded`` that puts settings in force. Raises :exc:`PluginLoadError`."""
    with _failing(plugin, "refuses its settings"):
        put_in_force = await _call(plugin, RELOADED, {"settings": options.settings}, runner, timeout)
    if put_in_force is None:
        return None
    if callable(put_in_force) and not inspect.iscoroutinefunction(put_in_force):
        return partial(put_in_force)
    raise PluginLoadError(
        plugin.name, plugin.origin, f"returned {shown(put_in_force)} from {RELOADED}, not a plain function"
    )


async def shut_down(plugin: LoadedPlugin, runner: PluginRunner, timeout: float = SHUTDOWN_TIMEOUT) -> None:
    """Call ``broker_core_shutdown``; a failure is logged, since the broker stops anyway."""
    try:
        await _call(plugin, "broker_core_shutdown", {}, runner, timeout)
    except _HookFailed as error:
        log.warning("plugin did not shut down", plugin=plugin.name, error=str(error))


@contextmanager
def _failing(plugin: LoadedPlugin, what: str) -> Iterator[None]:
    """Raise :exc:`PluginLoadError`, which says ``what`` the plugin does, if its hook fails."""
    try:
        yield
    except _HookFailed as error:
        raise PluginLoadError(plugin.name, plugin.origin, f"{what}: {error}") from error.__cause__


async def _call(
    plugin: LoadedPlugin, hook: str, values: dict[str, Any], runner: PluginRunner, timeout: float
) -> Any:
    implementation = plugin.implementations.get(hook)
    if implementation is None:
        return None
    given = {name: values[name] for name in implementation.arguments}
    loop_time = LoopTime(plugin.name, hook.removeprefix("broker_core_"))
    try:
        deadline = Deadline(asyncio.get_running_loop(), timeout)
        return await runner.run(implementation, given, deadline, loop_time)
    except NotInTime:
        raise _HookFailed(f"not within {timeout:g} s") from None
    except ThreadsFull as full:
        raise _HookFailed(f"no free thread: {full}") from full
    except RaisedByPlugin as carried:
        error = carried.error
    raise _HookFailed(in_words(error)) from error
