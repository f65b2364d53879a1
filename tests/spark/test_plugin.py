"""The plugin in a broker: found by its entry point, asked over the protocol."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import typer

from broker_core.plugins import PluginRegistry
from broker_core_spark.commands import COMMANDS
from broker_core_spark.plugin import SparkPlugin
from broker_core_spark.settings import SparkSettings
from broker_core_spark.store import open_store
from broker_core_spark.store.publishing import begin_build
from tests.support.generation_builder import build_generation


def test_it_is_found_by_its_entry_point() -> None:
    plugin = PluginRegistry.load(["spark"], {"spark": {"store": "memory:///"}})["spark"]
    assert plugin.distribution == "broker-core-spark"
    assert plugin.depends_on == {"pattern", "properties"}
    assert not plugin.warnings


def test_serving_imports_no_spark() -> None:
    code = "import sys, broker_core_spark.plugin; print([m for m in ('pyspark', 'py4j') if m in sys.modules])"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_its_start_imports_nothing_on_the_event_loop(tmp_path: Path) -> None:
    code = f"""
import asyncio, sys, threading
from broker_core.testing import serve
import broker_core_spark.plugin as plugin

imported = []

class Watch:
    def find_spec(self, name, path=None, target=None):
        if threading.current_thread() is threading.main_thread() and "broker_core_spark" in name:
            imported.append(name)

async def main():
    sys.meta_path.insert(0, Watch())
    async with serve(plugins={{"spark": plugin}}, settings={{"plugins": {{"spark": {{"store": {str(tmp_path)!r}}}}}}}):
        print(imported, "broker_core_spark.serving.generation_refresher" in sys.modules)

asyncio.run(main())
"""
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines()[-1] == "[] True"


def test_what_is_wrong_with_its_generation_is_told(tmp_path: Path) -> None:
    settings = SparkSettings(store=str(tmp_path))
    plugin = SparkPlugin()
    assert plugin.broker_core_problems(settings) == []  # nothing is published: no problem
    store = open_store(str(tmp_path))
    with begin_build(store) as build:
        manifest = build_generation(store, {"t/n": {"persistent": ["a"]}}, [], catalogue_id="one")
        build.publish(manifest)
    assert plugin.broker_core_problems(settings) == []
    segment = tmp_path / manifest.segments[0].name
    segment.chmod(0o644)
    segment.write_bytes(segment.read_bytes()[:-1] + b"x")
    (problem,) = plugin.broker_core_problems(settings)
    assert segment.name in problem
    (problem,) = plugin.broker_core_problems(SparkSettings(store="ftp://x"))
    assert "ftp" in problem


def test_the_commands_are_there() -> None:
    app = typer.Typer()
    SparkPlugin().broker_core_commands(app)
    group: Any = typer.main.get_command(app)
    assert list(group.commands) == [*COMMANDS, "patterns"]
    assert list(group.commands["patterns"].commands) == ["export"]
