"""Distributions with plugins, as pip leaves them, without pip."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker_core.plugins.call.plugin_threads import PluginThreads

Distribution = Callable[..., Path]


@pytest.fixture(autouse=True)
def _plugin_threads_end(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Parts of a server alone have nothing that ends the threads of their plugins."""
    made: list[PluginThreads] = []
    initialize = PluginThreads.__init__

    def noted(self: PluginThreads, *arguments: Any, **options: Any) -> None:
        initialize(self, *arguments, **options)
        made.append(self)

    monkeypatch.setattr(PluginThreads, "__init__", noted)
    yield
    for threads in made:
        for _ in range(threads._started):
            threads._jobs.put(None)


@pytest.fixture
def distribution(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Distribution:
    """Makes an installed distribution of a name, a version, entry points and modules (the source by the name)."""

    def make(name: str, version: str, entry_points: dict[str, str], **modules: str) -> Path:
        site = tmp_path / name
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        info.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        lines = "".join(f"{plugin} = {value}\n" for plugin, value in entry_points.items())
        info.joinpath("entry_points.txt").write_text(f"[broker_core]\n{lines}")
        for module, source in modules.items():
            site.joinpath(f"{module}.py").write_text(source)
            monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.syspath_prepend(str(site))
        importlib.invalidate_caches()
        return site

    return make
