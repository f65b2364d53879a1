"""Each enabled plugin: whether it is installed and accepts its settings, and its own checks."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from broker_core.cli.startup_checks.bounded_check import bounded
from broker_core.cli.startup_checks.limits import CLIENTS_WAIT
from broker_core.plugin_api import Check

if TYPE_CHECKING:
    from broker_core.plugins import LoadedPlugin, PluginLoadError, PluginRegistry, PluginSite
    from broker_core.settings import PluginsSettings, Settings

__all__ = ["loaded_each", "plugin_checks", "property_checks"]

#: The hooks whose answers decide which topics are listed.
_SHAPES: Final = frozenset({"broker_core_list_topics", "broker_core_visible"})


def loaded_each(plugins: PluginsSettings) -> Iterator[tuple[str, PluginRegistry | PluginLoadError]]:
    """Each enabled plugin by its name: a registry of it alone, or the reason why it cannot be loaded."""
    from broker_core.plugins import PluginLoadError, PluginRegistry

    for name in plugins.enabled:
        tables = {name: plugins.table(name)} if name in plugins.tables else {}
        try:
            yield name, PluginRegistry.load([name], tables)
        except PluginLoadError as error:
            yield name, error


def property_checks(settings: Settings) -> Iterator[Check]:
    """A finding if no property of a request selects topics."""
    upstream = settings.upstream
    if settings.catalog.property_keys if upstream is None else "properties" in upstream.listing_depends_on:
        return
    for name, found in loaded_each(settings.plugins):
        if isinstance(found, Exception):
            return  # nobody knows
        if _selects(found[name]):
            return
    setting = (
        "catalog.property_keys is empty" if upstream is None else "upstream.listing_depends_on names none"
    )
    yield Check.ok(
        "properties", f"no topic is selected by a property of a client ({setting}, and no plugin reads any)"
    )


def plugin_checks(plugins: PluginsSettings, *, serves_http: bool = False) -> Iterator[Check]:
    """Findings about each enabled plugin: whether it is installed and accepts its settings, and its own checks.

    If the server ``serves_http``, also whether the site of each can be served, beside those before it.
    """
    from broker_core.plugins import did_you_mean, installed_plugins

    sites: list[PluginSite] = []
    for name, registry in loaded_each(plugins):
        label = f"plugins.{name}"
        if isinstance(registry, Exception):
            yield Check.error(label, str(registry))
            continue
        plugin = registry[name]
        yield Check.ok(label, f"loaded{f' from {plugin.origin}' if plugin.origin else ''}")
        for warning in registry.warnings:
            yield Check.warning(label, warning)
        if plugin.options.deadline > CLIENTS_WAIT:
            yield Check.warning(
                f"{label}.deadline",
                f"{plugin.options.deadline:g} s is longer than the {CLIENTS_WAIT:g} s that clients wait",
            )
        if (said := _unwatchable(plugin)) is not None:
            yield Check.warning(f"{label}.depends_on", said)
        yield from bounded(label, partial(_of_plugin, plugin))
        if serves_http:
            yield from bounded(label, partial(_site_checks, plugin, sites))
    installed = {plugin.name for plugin in installed_plugins()}
    for name in plugins.tables:
        if name not in plugins.enabled:
            if name in installed:
                yield Check.warning(
                    f"plugins.{name}", "has a table of settings, and plugins.enabled does not name it"
                )
            else:  # the server does not start
                near = did_you_mean(name, installed)
                yield Check.error(f"plugins.{name}", f"has a table of settings, and is not installed{near}")


def _selects(plugin: LoadedPlugin) -> bool:
    """Whether properties of requests decide which topics a plugin lists or shows."""
    from broker_core.plugin_api import is_of_properties

    return bool(_SHAPES & set(plugin.implementations)) and any(map(is_of_properties, plugin.depends_on))


def _unwatchable(plugin: LoadedPlugin) -> str | None:
    """The reason why namespaces of a plugin cannot be watched, if there is one."""
    if not _selects(plugin):
        return None
    if "broker_core_depends_on" in plugin.implementations:
        return "answers depend on properties, which a watch does not have: clients poll in its namespaces"
    return (
        "it does not declare what its answers depend on, so that clients may not watch in its namespaces: let "
        "broker_core_depends_on give the words that do matter, without 'properties'"
    )


def _site_checks(plugin: LoadedPlugin, sites: list[PluginSite]) -> list[Check]:
    """Add the site of a plugin to those before it, as the start does, with the errors of the start."""
    from broker_core.plugins import site_of
    from broker_core.servers.http import check_files

    site = site_of(plugin, sites)
    if site is not None:
        check_files([*sites, site])
        sites.append(site)
    return []


def _of_plugin(plugin: LoadedPlugin) -> Iterator[Check]:
    """The findings of the plugin's own checks; without such a hook, the problems that it reports."""
    settings = plugin.options.settings
    found: Any = plugin.call_plain("broker_core_check", settings=settings)
    if inspect.iscoroutine(found):
        found = asyncio.run(found)
    for check in found or ():
        if not isinstance(check, Check):
            raise TypeError(f"broker_core_check gave a {type(check).__name__}, not a Check")
        yield Check(check.level, f"plugins.{plugin.name}.{check.name}", check.text)
    if "broker_core_check" not in plugin.implementations:
        problems = plugin.call_plain("broker_core_problems", settings=settings)
        for problem in [problems] if isinstance(problems, str) else problems or ():
            yield Check.error(f"plugins.{plugin.name}", str(problem))
