"""Plugins as objects for tests, and helpers to call them without a server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from broker_core import ListingRequest, NamespaceName, hookimpl
from broker_core.plugins.load.registry import LoadedPlugin, PluginRegistry

__all__ = ["PluginOf", "asked", "loaded"]


class PluginOf:
    """A plugin of the given functions: ``PluginOf(list_topics=...)`` implements ``broker_core_list_topics``."""

    def __init__(self, **hooks: Callable[..., Any]) -> None:
        for name, function in hooks.items():
            setattr(self, f"broker_core_{name}", hookimpl(function))


def loaded(plugin: object, **table: object) -> LoadedPlugin:
    """The plugin, registered by itself under the name ``p``."""
    return PluginRegistry().register("p", plugin, table)


def asked(
    namespace: str = "acme/orders", properties: Mapping[str, str] | None = None, **fields: Any
) -> ListingRequest:
    """A request as the pipeline would make it."""
    return ListingRequest(NamespaceName.parse(namespace), properties=dict(properties or {}), **fields)
