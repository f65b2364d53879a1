"""A layer of settings: the common interface of the file, the environment and the options."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any, Protocol

from broker_core.settings.key_source import KeySource
from broker_core.settings.setting_paths import FILES, KEY_SOURCES, SettingPath

__all__ = ["Layer", "resolve_paths"]


class Layer(Protocol):
    """One source of settings, which knows the name of each value there."""

    kind: str
    values: dict[str, Any]

    def label(self, path: SettingPath) -> str:
        """The name of this value's place for errors, such as the file and the key, or the variable."""

    def unknown(self, path: SettingPath) -> str:
        """The error for a value that is no setting: one line, with the nearest setting."""


def resolve_paths(values: dict[str, Any], folder: Path) -> None:
    """Resolve relative paths by their source: in the settings file's folder, or the working directory."""
    for *tables, key in FILES | KEY_SOURCES:
        table: Any = values
        for name in tables:
            table = table.get(name) if isinstance(table, dict) else None
        if (
            not isinstance(table, dict)
            or not isinstance(table.get(key), str | Path)
            or not str(table[key]).strip()
        ):
            continue
        if (*tables, key) in FILES:
            table[key] = folder / Path(table[key]).expanduser()
        else:
            with contextlib.suppress(ValueError):  # its validation says what is wrong
                table[key] = KeySource.parse(table[key]).in_folder(folder)
