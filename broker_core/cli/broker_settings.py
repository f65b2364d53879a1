"""The few settings of the broker that a plugin's command may read, each by a name of its own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from broker_core.cli.common_options import current_invocation

__all__ = ["BrokerSettings", "broker_settings"]


@dataclass(frozen=True, slots=True)
class BrokerSettings:
    """The settings of ``--config`` as of now, apart from tables of plugins.

    ``file``: the settings file, ``None`` for the defaults. ``catalog``: the embedded catalogue's file, there or not.
    ``max_pattern_length``: the longest topics pattern that is compiled, in UTF-16 code units. ``property_keys``: the
    properties that select topics of the embedded catalogue. ``plugins``: the enabled plugins, in the order of the
    chain.
    """

    file: Path | None
    catalog: Path
    max_pattern_length: int
    property_keys: frozenset[str]
    plugins: tuple[str, ...]

    def plugin_property_keys(self) -> frozenset[str]:
        """The property keys that the enabled plugins select by; they are loaded for it, and not started.

        Raises a :exc:`~broker_core.errors.BrokerCoreError` if one of them cannot be loaded.
        """
        from broker_core.plugins import PluginRegistry

        plugins = current_invocation().load().settings.plugins
        return PluginRegistry.load(plugins.enabled, plugins.tables).property_keys


def broker_settings() -> BrokerSettings:
    """For commands of a plugin: the broker's settings. Raises :exc:`~broker_core.errors.BrokerCoreError`."""
    loaded = current_invocation().load()
    settings = loaded.settings
    return BrokerSettings(
        loaded.file,
        settings.catalog.path,
        settings.patterns.max_length,
        frozenset(settings.catalog.property_keys),
        tuple(settings.plugins.enabled),
    )
