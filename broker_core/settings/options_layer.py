"""Settings from options of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from broker_core.settings.layer import Layer, resolve_paths
from broker_core.settings.setting_paths import SettingPath, dotted

__all__ = ["options_layer"]


def options_layer(options: Mapping[str, tuple[SettingPath, object]]) -> Layer:
    """The options of the command line that override a setting.

    ``options``: option (``--pulsar``) to the path of its setting and its value; ``None`` is not given.
    """
    values: dict[str, Any] = {}
    names: dict[SettingPath, str] = {}
    for option, (path, value) in options.items():
        if value is not None:
            names[path] = option
            values.setdefault(path[0], {})[path[1]] = value
    resolve_paths(values, Path.cwd())

    def label(path: SettingPath) -> str:
        return names.get(path, dotted(path))

    return Layer("option", values, label, lambda path: f"{label(path)}: unknown setting {dotted(path)!r}")
