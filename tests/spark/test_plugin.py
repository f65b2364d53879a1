"""The plugin in a broker: found by its entry point, and asked over the protocol."""

from __future__ import annotations

import subprocess
import sys

from broker_core.plugins import PluginRegistry


def test_it_is_found_by_its_entry_point() -> None:
    plugin = PluginRegistry.load(["spark"], {"spark": {"store": "memory:///"}})["spark"]
    assert plugin.distribution == "broker-core-spark"
    assert plugin.depends_on == {"pattern", "properties"}
    assert not plugin.warnings


def test_serving_imports_no_spark() -> None:
    code = "import sys, broker_core_spark.plugin; print([m for m in ('pyspark', 'py4j') if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"
