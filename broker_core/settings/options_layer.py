"""Settings from options of the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from broker_core.settings.layer import resolve_paths
from broker_core.settings.setting_paths import SettingPath, dotted

__all__ = ["OptionsLayer"]


class OptionsLayer:
    """Options of the command line that override a setting."""

    kind = "option"

    def __init__(self, options: Mapping[str, tuple[SettingPath, object]]) -> None:
        """``options``: option (``--pulsar``) to the path of its setting and its value; ``None`` is not given."""
        self.values: dict[str, Any] = {}
        self._options: dict[SettingPath, str] = {}
        for option, (path, value) in options.items():
            if value is not None:
                self._options[path] = option
                self.values.setdefault(path[0], {})[path[1]] = value
        resolve_paths(self.values, Path.cwd())

    def label(self, path: SettingPath) -> str:
        return self._options.get(path, dotted(path))

    def unknown(self, path: SettingPath) -> str:
        return f"{self.label(path)}: unknown setting {dotted(path)!r}"
