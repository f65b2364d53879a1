"""The plugin as the core loads it."""

from __future__ import annotations

from broker_core.plugins import PluginRegistry
from broker_core_postgres.settings import PostgresSettings


def test_the_entry_point_is_a_plugin_without_warnings() -> None:
    registry = PluginRegistry.load(["postgres"], {"postgres": {"property_keys": ["region"]}})
    plugin = registry["postgres"]
    assert plugin.distribution == "broker-core-postgres"
    assert plugin.depends_on == {"pattern", "properties"}
    assert registry.warnings == []
    assert isinstance(plugin.options.settings, PostgresSettings)
