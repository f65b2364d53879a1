"""The sites of plugins (``broker_core_http_routes``): requested once at the start, and calls of their routes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from broker_core.plugin_api import PLACEHOLDER, HttpRequest, HttpRoute, HttpSite
from broker_core.plugins.call.hook_caller import HookCaller
from broker_core.plugins.call.plugin_runner import PluginRunner
from broker_core.plugins.failures import PluginLoadError
from broker_core.plugins.load.hook_implementations import Implementation
from broker_core.plugins.load.registry import LoadedPlugin, PluginRegistry
from broker_core.plugins.raised_exceptions import shown

__all__ = ["PluginSite", "plugin_sites", "site_of"]

_HOOK: Final = "broker_core_http_routes"
#: The first parts of paths that the server has itself; `/-/` is no path of a site.
_RESERVED: Final = ("v1", "metrics", "questions", "plugins", "admin", "lookup")


@dataclass(frozen=True, slots=True)
class PluginSite:
    """The site of one plugin; its routes are called like its hooks: within its deadline, in its threads."""

    plugin: str
    site: HttpSite
    callers: Mapping[HttpRoute, HookCaller]

    async def answer(self, route: HttpRoute, request: HttpRequest) -> Any:
        """The result of a route's handler. Raises :exc:`~broker_core.plugins.failures.PluginFailed`."""
        given: dict[str, Any] = {route.argument: request}
        answer, _ = await self.callers[route].call(request, _answered, **given)
        return answer


def plugin_sites(registry: PluginRegistry, runners: Mapping[str, PluginRunner]) -> list[PluginSite]:
    """The sites of all plugins, in the order of the chain.

    Raises :exc:`PluginLoadError` for an invalid site, and for two plugins, or a plugin and the server, at one path.
    """
    found: list[PluginSite] = []
    for plugin in registry:
        of_plugin = site_of(plugin, found, runners)
        if of_plugin is not None:
            found.append(of_plugin)
    return found


def site_of(
    plugin: LoadedPlugin, others: Sequence[PluginSite], runners: Mapping[str, PluginRunner] | None = None
) -> PluginSite | None:
    """The site of one plugin besides the ``others``, if it has one; without ``runners`` nothing calls its routes.

    Raises :exc:`PluginLoadError` for an invalid site, and for a path that another plugin, or the server, has.
    """
    site = plugin.call_plain(_HOOK, settings=plugin.options.settings)
    if site is None:
        return None
    for problem in _problems(site, others):
        raise PluginLoadError(plugin.name, plugin.origin, problem)
    routes = site.routes if runners is not None else ()
    callers = {route: _caller(plugin, route, (runners or {})[plugin.name]) for route in routes}
    return PluginSite(plugin.name, site, callers)


def _caller(plugin: LoadedPlugin, route: HttpRoute, runner: PluginRunner) -> HookCaller:
    implementation = Implementation(
        _HOOK, route.handler, (route.argument,), inspect.iscoroutinefunction(route.handler), False, False
    )
    return HookCaller(
        plugin, _HOOK, runner, implementation=implementation, part=f"{route.method} {route.path}"
    )


def _problems(site: object, others: Sequence[PluginSite]) -> Iterator[str]:
    if not isinstance(site, HttpSite):
        yield f"returned {shown(site)} from {_HOOK}, not a broker_core.HttpSite"
        return
    for path in (site.prefix, *(site.at(route.path) for route in site.routes)):
        first = PurePosixPath(path).parts[1:2]
        if first and first[0] in _RESERVED:
            yield f"has a site at {path}, which the server has itself"
        if first and PLACEHOLDER.fullmatch(first[0]):
            yield f"has a route at {path}, where the server has /v1 and others: its first part must be a name"
    for other in others:
        if other.site.prefix == site.prefix:
            yield f"has a site at {site.prefix}, and so has plugin {other.plugin!r}"
        taken = {screen.name for screen in other.site.screens}
        for screen in site.screens:
            if screen.name in taken:
                yield f"has a screen {screen.name!r}, and so has plugin {other.plugin!r}"


def _answered(answer: object, _request: object) -> tuple[object, str]:
    return answer, "answered"
