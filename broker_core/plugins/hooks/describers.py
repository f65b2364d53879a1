"""The describers (``broker_core_describe_topics``): plugins' details of topics besides their names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from broker_core.listing import Details
from broker_core.names import NamespaceName
from broker_core.plugin_api import DescribeRequest
from broker_core.plugins.call.hook_caller import HookCaller
from broker_core.plugins.failures import PluginFailed
from broker_core.plugins.load.registry import LoadedPlugin
from broker_core.plugins.namespace_chain import NamespaceChains

__all__ = ["DescribeHook", "checked_details"]

_DESCRIBE: Final = "broker_core_describe_topics"


@dataclass(slots=True, eq=False)
class DescribeHook:
    """Caller of the plugins that describe; ``callers`` are by plugin and hook."""

    _chains: NamespaceChains
    _callers: Mapping[str, Mapping[str, HookCaller]]

    def plugins(self, namespace: NamespaceName) -> tuple[tuple[LoadedPlugin, bool], ...]:
        """The plugins that know topics of a namespace, in the order of the chain; false for one that only lists."""
        if not self._chains.hooks:
            return ()
        return tuple((plugin, caller is not None) for plugin, caller in self._chains.of(namespace).describers)

    async def details(
        self, plugin: str, request: DescribeRequest, accept: Callable[[Details], Awaitable[Any]]
    ) -> Any | None:
        """The result of ``accept`` for the details that a plugin gives; ``None`` if it passes.

        A failure with ``on_failure = "next"`` is ``None`` too; others raise :exc:`PluginFailed`.
        """
        caller = self._callers[plugin][_DESCRIBE]
        try:
            async with caller.calling(request, checked_details) as (details, _):
                return None if details is None else await accept(details)
        except PluginFailed:
            if caller.plugin.options.on_failure != "next":
                raise
            caller.statistics.passed_over += 1
            return None


def checked_details(answer: object, _request: object) -> tuple[Details | None, str]:
    """The details and the word for them; raises :exc:`TypeError` for other answers. Their values are checked later."""
    if answer is None:
        return None, "pass_through"
    if type(answer) is not Details:
        instead = ": write Details(batch)" if isinstance(answer, pa.RecordBatch) else ""
        raise TypeError(f"it returned a {type(answer).__name__}, not broker_core.Details or None{instead}")
    return answer, "success"
