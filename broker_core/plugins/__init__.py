"""Plugins: finding them, checking them before the start, asking them so that none can hurt the broker."""

from __future__ import annotations

from broker_core.plugins.answer_memory import Recalled, Remembers
from broker_core.plugins.chain import ChainResult, Keeps
from broker_core.plugins.dispatcher import Dispatcher
from broker_core.plugins.failures import BehindFailed, ChainStep, PluginFailed, PluginLoadError, Refusal
from broker_core.plugins.load.installed import InstalledPlugin, did_you_mean, installed_plugins
from broker_core.plugins.load.options import PluginOptions
from broker_core.plugins.load.registry import RESERVED, LoadedPlugin, PluginRegistry, chain_order
from broker_core.plugins.problems import as_problems
from broker_core.plugins.raised import in_words

__all__ = [
    "RESERVED",
    "BehindFailed",
    "ChainResult",
    "ChainStep",
    "Dispatcher",
    "InstalledPlugin",
    "Keeps",
    "LoadedPlugin",
    "PluginFailed",
    "PluginLoadError",
    "PluginOptions",
    "PluginRegistry",
    "Recalled",
    "Refusal",
    "Remembers",
    "as_problems",
    "chain_order",
    "did_you_mean",
    "in_words",
    "installed_plugins",
]
