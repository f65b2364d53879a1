"""Plugins: finding them, checking them before the start, calling them so that none can harm the broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker_core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from broker_core.plugins.call.hook_caller import HookCaller
    from broker_core.plugins.dispatcher import Dispatcher
    from broker_core.plugins.failures import (
        ChainStep,
        PluginFailed,
        PluginLoadError,
        RefusedByPlugin,
        RestFailed,
    )
    from broker_core.plugins.hooks.http_sites import PluginSite, site_of
    from broker_core.plugins.load.installed_plugins import did_you_mean, installed_plugins
    from broker_core.plugins.load.registry import RESERVED, LoadedPlugin, PluginRegistry, chain_order
    from broker_core.plugins.plugin_state_metrics import show_plugins
    from broker_core.plugins.raised_exceptions import bounded, in_words
    from broker_core.plugins.reported_problems import as_problems

__all__ = [
    "RESERVED",
    "ChainStep",
    "Dispatcher",
    "HookCaller",
    "LoadedPlugin",
    "PluginFailed",
    "PluginLoadError",
    "PluginRegistry",
    "PluginSite",
    "RefusedByPlugin",
    "RestFailed",
    "as_problems",
    "bounded",
    "chain_order",
    "did_you_mean",
    "in_words",
    "installed_plugins",
    "show_plugins",
    "site_of",
]

# A list of plugins needs no dispatcher and no metrics, which take Arrow and more.
__getattr__ = lazy_exports(
    __name__,
    {
        "RestFailed": ".failures",
        "ChainStep": ".failures",
        "Dispatcher": ".dispatcher",
        "HookCaller": ".call.hook_caller",
        "LoadedPlugin": ".load.registry",
        "PluginFailed": ".failures",
        "PluginLoadError": ".failures",
        "PluginRegistry": ".load.registry",
        "PluginSite": ".hooks.http_sites",
        "RESERVED": ".load.registry",
        "RefusedByPlugin": ".failures",
        "as_problems": ".reported_problems",
        "bounded": ".raised_exceptions",
        "chain_order": ".load.registry",
        "did_you_mean": ".load.installed_plugins",
        "in_words": ".raised_exceptions",
        "installed_plugins": ".load.installed_plugins",
        "show_plugins": ".plugin_state_metrics",
        "site_of": ".hooks.http_sites",
    },
)
